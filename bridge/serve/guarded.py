"""What every server of ours has in front: limits for clients that are slow, endless or too many."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.journal import Journal, JournalHandler
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.connections import ConnectionRules, Connections
from duolog.bridge.serve.options import HostOptions
from duolog.bridge.serve.watched import watched_protocol
from duolog.server.run import stoppable_server

if TYPE_CHECKING:
    import uvicorn

_KEEP_ALIVE_SECONDS: Final = 75  # clients think between two polls
_LOGGERS: Final = ("uvicorn.error", "asyncio", "duolog.bridge")


@contextmanager
def guarded_server(
    application: Any,
    rules: ConnectionRules,
    options: HostOptions,
    tally: Tally,
    journal: Journal,
    *,
    before_stopping: Callable[[], Awaitable[object]] | None = None,
    **more: Any,
) -> Iterator[uvicorn.Server]:
    """A server that signals end, and clients do not keep; the rest as `stoppable_server` has it."""
    connections = Connections(rules, tally, journal)

    async def stop() -> None:
        connections.stop(asyncio.get_running_loop())
        if before_stopping is not None:
            await before_stopping()

    with (
        _into_journal(journal),
        stoppable_server(
            application,
            http=watched_protocol(connections),
            before_stopping=stop,
            log_config=None,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            **({} if options.tls is None else options.tls.server_options()),
            **_proxy_options(options.trusted_proxies),
            **more,
        ) as server,
    ):
        yield server


def _proxy_options(trusted: Sequence[str]) -> dict[str, Any]:
    return {"proxy_headers": True, "forwarded_allow_ips": list(trusted)} if trusted else {}


@contextmanager
def _into_journal(journal: Journal) -> Iterator[None]:
    """What the server's libraries complain of goes into the journal too."""
    handler = JournalHandler(journal)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
