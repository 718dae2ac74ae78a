"""uvicorn's own protocols for HTTP/1.1, with an eye on what a client leaves unfinished."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.serve.connections import Connections, Progress
from duolog.bridge.serve.hanging_up import NO_HTTP, TOO_LONG, hang_up

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    Base = type[H11Protocol | HttpToolsProtocol]

_MOST_HEADER_BYTES: Final = 64 << 10


def watched_protocol(connections: Connections, base: Base | None = None) -> type[asyncio.Protocol]:
    """For uvicorn's option `http`."""
    watched = _watched(base or _fastest(), connections)
    has_limit_of_its_own = hasattr(watched, "handle_events")  # h11's
    return watched if has_limit_of_its_own else _measured(watched)


def _fastest() -> Base:
    """The one that uvicorn would choose."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        return H11Protocol
    return HttpToolsProtocol


def _watched(base: Any, connections: Connections) -> Any:
    class WatchedProtocol(base):  # type: ignore[misc]
        progress: Progress

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            now = self.loop.time()
            self.progress = Progress(now, now)
            connections.made(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.lost(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            progress = self.progress
            progress.heard_at = self.loop.time()
            if self.timeout_keep_alive_task is not None or not progress.has_spoken:
                progress.begun_at = progress.heard_at  # of a new request
                progress.has_spoken = True
            super().data_received(data)

        def send_400_response(self, _: str) -> None:
            hang_up(self, NO_HTTP)

        def _unsupported_upgrade_warning(self) -> None:
            """The request is answered as if it had not asked."""

    return WatchedProtocol


def _measured(base: Any) -> type[asyncio.Protocol]:
    """With a limit for headers, which httptools collects for ever; and the request that is being
    answered learns that its client has left, also where the client has asked ahead.
    """

    class MeasuredProtocol(base):  # type: ignore[misc]
        answered: Any = None  # uvicorn tells the last request that came

        def _start_asgi_task(self, cycle: Any, app: Any) -> None:
            self.answered = cycle
            super()._start_asgi_task(cycle, app)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.answered is not None and not self.answered.response_complete:
                self.answered.disconnected = True
                self.answered.message_event.set()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            self.progress.undigested_bytes += len(data)
            super().data_received(data)
            if self.progress.undigested_bytes > _MOST_HEADER_BYTES:
                hang_up(self, TOO_LONG)

        def on_headers_complete(self) -> None:
            self.progress.undigested_bytes = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self.progress.undigested_bytes = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self.progress.undigested_bytes = 0
            super().on_message_complete()

    return MeasuredProtocol
