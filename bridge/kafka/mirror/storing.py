"""A partition's mirror as it is now, and as the log has it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from duolog.bridge.kafka.mirror.shared import Shared
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorTarget


class StoredRuns:
    """`now` is changed in memory, and stored when asked for."""

    def __init__(self, shared: Shared, topic_id: int, partition: int) -> None:
        self.now: Mirror | None = None
        self._shared = shared
        self._topic_id = topic_id
        self._partition = partition
        self._stored: Mirror | None = None
        self._one_stores = asyncio.Lock()

    async def load(self) -> Mirror | None:
        """What the log has. What was only in memory is forgotten."""
        log = self._shared.log
        found = await self._shared.in_thread(log.mirror, self._topic_id, self._partition)
        self.now = self._stored = found
        return found

    async def begin(self, target: MirrorTarget, version: int) -> Mirror:
        begin, where = self._shared.log.begin_mirror, (self._topic_id, self._partition)
        begun = await self._shared.in_thread(begin, *where, target, version=version)
        self.now = self._stored = begun
        return begun

    async def store(self) -> None:
        """Store what has changed. Raises MirrorChanged when another worker has been here.

        It comes to its end also when nobody waits for it any more: else the next one would not
        know which version the log has.
        """
        storing = asyncio.create_task(self._store())
        storing.add_done_callback(_seen)
        await asyncio.shield(storing)

    async def _store(self) -> None:
        async with self._one_stores:
            now, stored = self.now, self._stored
            if now is None or stored is None:
                return
            if replace(now, version=stored.version) == stored:
                return
            kept_runs, kept_skips = _alike(stored.runs, now.runs), _alike(stored.skips, now.skips)
            change = MirrorChange(
                stored.version,
                kept_runs,
                kept_skips,
                now.runs[kept_runs:],
                now.skips[kept_skips:],
                offset_headers=now.offset_headers,
                copied_at=now.copied_at,
                settled_upto=now.settled_upto,
            )
            await self._change(stored, change)

    async def prune(self, log_start: int, kafka_start: int) -> tuple[int, int]:
        """Forget what tells of records that both sides have let go; how many runs and skips.

        Only what is stored: what was added since stands behind it, and stays.
        """
        async with self._one_stores:
            stored = self._stored
            if stored is None:
                return 0, 0
            runs, skips = stored.prunable(log_start, kafka_start)
            if not runs and not skips:
                return 0, 0
            kept = len(stored.runs), len(stored.skips)
            change = MirrorChange(stored.version, *kept, pruned_runs=runs, pruned_skips=skips)
            await self._change(stored, change)
            if self.now is not None:
                self.now = self.now.pruned_by(runs, skips)
            return runs, skips

    async def _change(self, stored: Mirror, change: MirrorChange) -> None:
        log, where = self._shared.log, (self._topic_id, self._partition)
        await self._shared.in_thread(log.change_mirror, *where, change)
        self._stored = stored.changed(change)


def _seen(storing: asyncio.Task[None]) -> None:
    if not storing.cancelled():
        storing.exception()  # told to whoever waits


def _alike(before: tuple[Any, ...], now: tuple[Any, ...]) -> int:
    """How many of the first are the same."""
    for at, (one, other) in enumerate(zip(before, now, strict=False)):
        if one != other:
            return at
    return min(len(before), len(now))
