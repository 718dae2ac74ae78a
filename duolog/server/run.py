"""A server that ends when it is told to, once what is under way is answered."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    import uvicorn

GRACE_SECONDS = 10
_OBJECTS_BEFORE_COLLECTING = 10_000
_M_ARENA_MAX, _MOST_ARENAS = -8, 2


def check_installed(libraries: tuple[str, ...], what: str, extra: str) -> None:
    """Name the first library that is missing, and how to get it."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise InvalidSetting(f"{what} needs {library}: pip install 'duolog[{extra}]'.")


@contextmanager
def stoppable_server(
    application: Any,
    *,
    when_stopping: Callable[[], object] = lambda: None,
    before_stopping: Callable[[], Awaitable[object]] | None = None,
    **options: Any,
) -> Iterator[uvicorn.Server]:
    """A server that SIGINT and SIGTERM end.

    From here on, not only while it runs; and uvicorn's own way, to raise the signal again when it
    has stopped, would end the program before the log is closed. `when_stopping` is called from
    the signal's handler; `before_stopping` is waited for while requests are still answered.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            when_stopping()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if before_stopping is not None:
                await before_stopping()
            await super().shutdown(sockets)

    settings: dict[str, Any] = {
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # anybody could write who they are
        "ws": "none",
        "timeout_graceful_shutdown": GRACE_SECONDS,
        **options,
    }
    server = Server(uvicorn.Config(application, **settings))
    before = {
        number: signal.signal(number, server.handle_exit)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield server
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def keep_files_private() -> None:
    """What this process writes from now on is its owner's alone; what RocksDB writes, too."""
    os.umask(0o077)


def allow_many_connections() -> int:
    """Take as many open files as the system gives, since each waiting client is one; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def keep_memory_together() -> None:
    """Let few of C's arenas grow: threads leave holes in arenas of their own, which then stay."""
    with suppress(AttributeError, OSError):  # another library than glibc has no arenas
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _MOST_ARENAS)


def spare_the_garbage_collector() -> None:
    """Let it look at what requests make, and seldom, and never again at what the start has made.

    A request of a hundred records makes thousands of objects without a cycle. Looking through them,
    and at times through all that was imported, took a third of the host's processor time.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
