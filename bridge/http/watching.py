"""GET healthz, readyz and metrics."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import Response

from duolog.bridge.http.answers import Refusal, json_response
from duolog.bridge.http.degraded import damage_shown, reasons
from duolog.bridge.http.host import Host
from duolog.bridge.metrics.exposition import MEDIA_TYPE, exposition
from duolog.bridge.metrics.looked_up import LookedUp
from duolog.bridge.metrics.names import INFO, START_TIME
from duolog.errors import DuologError

_ANSWERS_WITHIN_SECONDS: Final = 2.0


class Watching:
    """How the host is."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._looked_up = LookedUp(host.log, host.clock, host.metric_rules)
        host.tally.put(INFO, version("duolog"), number=1)
        host.tally.put(START_TIME, number=host.clock.now_ms() / 1000)

    async def health(self) -> Response:
        """The process answers."""
        return json_response({"status": "ok"})

    async def ready(self) -> Response:
        """The log is open and its threads answer. Also says whether writes are taken."""
        host = self._host
        why = await self._unready()
        if why is not None:
            return Refusal(503, "NotReady", why, retry_after_seconds=1).response()
        shown: dict[str, Any] = {"status": "ready", "writes": _writes(host)}
        damaged, workers = await host.watchers.run(host.log.damage), host.workers_shown()
        if damaged:
            shown["damaged"] = damage_shown(damaged)
        if workers:
            shown["workers"] = workers
        degraded = reasons(damaged, workers)
        if degraded:
            shown.update(status="degraded", degraded=degraded)
        is_ready = not degraded or host.ready_when_degraded
        return json_response(shown, 200 if is_ready else 503)

    async def metrics(self) -> Response:
        """All metrics, as Prometheus reads them."""
        text = await self._host.watchers.run(self._metrics)
        return Response(text, media_type=MEDIA_TYPE)

    def _metrics(self) -> str:
        return exposition(self._host.tally, self._looked_up.samples())

    async def _unready(self) -> str | None:
        host = self._host
        if host.room.is_stopping:
            return "The host is stopping."
        if host.log.closed:
            return "The log is closed."
        if not host.log.is_in_place():
            return "The log's folder was moved, removed or replaced while it was served."
        checks: tuple[tuple[str, Callable[[], Awaitable[object]]], ...] = (
            ("read", lambda: host.readers.run(host.log.topics)),
            ("write", lambda: host.writers.run(_nothing)),
            ("commit", lambda: _committer_answers(host)),
        )
        for name, answer in checks:
            try:
                async with asyncio.timeout(_ANSWERS_WITHIN_SECONDS):
                    await answer()
            except TimeoutError:
                return (
                    f"The threads that {name} have not answered for {_ANSWERS_WITHIN_SECONDS:g} "
                    "s: the disk may be stuck."
                )
        return None


async def _committer_answers(host: Host) -> None:
    with suppress(DuologError):  # refusing is an answer
        await host.landing.result(host.log.committer_answers)


def _writes(host: Host) -> str:
    free = shutil.disk_usage(host.log.folder).free
    least = host.log.options.min_free_bytes
    return "ok" if free >= least else f"refused: {free >> 20} MiB are free, {least >> 20} are kept"


def _nothing() -> None:
    """To see that a thread is free."""
