"""What the owner of a log does by itself: retention, expiry of writers and groups, joining small
tables, and sweeping what tasks have staged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Self

from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import (
    RETENTION_BYTES,
    RETENTION_HELD,
    RETENTION_LAST,
    RETENTION_RECORDS,
    RETENTION_RUNS,
    STAGED_SWEPT,
)
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.group_retention import GroupRetention
from duolog.clock import Clock
from duolog.log import EmbeddedLog
from duolog.log.model import HeldBack, LogStats, RetentionRun

SWEEP_EVERY_SECONDS = 3600.0
_JOIN_PAUSE_SECONDS = 0.2


class Duties:
    """A thread that works at intervals, from `start` to `stop`."""

    def __init__(
        self,
        log: EmbeddedLog,
        clock: Clock,
        tally: Tally,
        journal: Journal,
        *,
        retention_every_seconds: float,
        groups: GroupRetention | None = None,
    ) -> None:
        self._groups = groups
        self._log = log
        self._clock = clock
        self._tally = tally
        self._journal = journal
        self._every_seconds = retention_every_seconds
        self._held: dict[str, HeldBack] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="duolog-duties")
        self._sweep_at = clock.monotonic() + SWEEP_EVERY_SECONDS  # opening the log has swept

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave off, in the middle of a run if need be, and wait until it has."""
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._carefully("retention", self.enforce_retention)
            if self._clock.monotonic() >= self._sweep_at:
                self._sweep_at = self._clock.monotonic() + SWEEP_EVERY_SECONDS
                self._carefully("sweep", self.sweep)
            if self._groups is not None:
                self._carefully("groups", partial(self._groups.run_when_due, self._stopped.is_set))
            self._carefully("join", self.join_small_tables)
            self._stopped.wait(self._every_seconds)

    def enforce_retention(self) -> None:
        """One run over all topics."""
        before = self._log.stats()
        run = self._log.enforce_retention(cancelled=self._stopped.is_set)
        self._tell_of_expired(before, self._log.stats())
        for topic, swept in run.by_topic.items():
            if swept.messages_deleted:
                self._tally.add(RETENTION_RECORDS, topic, by=swept.messages_deleted)
                self._tally.add(RETENTION_BYTES, topic, by=swept.bytes_freed)
                self._journal.note(
                    "retention.deleted",
                    topic=topic,
                    records=swept.messages_deleted,
                    bytes=swept.bytes_freed,
                )
        self._tell_of_held(run)
        self._tally.add(RETENTION_RUNS, "cancelled" if run.cancelled else "done")
        if not run.cancelled:
            self._tally.put(RETENTION_LAST, number=self._clock.now_ms() / 1000)

    def _tell_of_expired(self, before: LogStats, now: LogStats) -> None:
        publishers = now.publishers_expired - before.publishers_expired
        batch_writers = now.batch_writers_expired - before.batch_writers_expired
        if publishers or batch_writers:
            self._journal.note(
                "writers.expired", publishers=publishers, batch_writers=batch_writers
            )

    def _tell_of_held(self, run: RetentionRun) -> None:
        """A line when a topic begins to be held back, or is so no more; the metric each time."""
        held = run.held_back if not run.cancelled else {**self._held, **run.held_back}
        self._tally.put_topics(
            RETENTION_HELD, {topic: each.records for topic, each in held.items()}
        )
        for topic in held.keys() | self._held.keys():
            now = held.get(topic, HeldBack())
            if topic not in self._held:
                self._journal.warn(
                    "retention.held",
                    topic=topic,
                    records=now.records,
                    bytes=now.bytes,
                    said="They are kept until they are mirrored. See `duolog mirror status`; "
                    "`duolog mirror detach` lets them go, and so does "
                    "retention_waits_for_mirror = false.",
                )
            elif topic not in held:
                self._journal.note("retention.let_go", topic=topic)
        self._held = held

    def join_small_tables(self) -> None:
        """Bound how many tables the log has; between two steps others have the disk."""
        joined = 0
        while not self._stopped.is_set() and (step := self._log.join_small_tables()):
            joined += step
            self._stopped.wait(_JOIN_PAUSE_SECONDS)
        if joined:
            self._journal.note("tables.joined", tables=joined)

    def sweep(self) -> None:
        """Remove staged parts that nobody needs."""
        swept = self._log.sweep_staged()
        if swept:
            self._tally.add(STAGED_SWEPT, by=swept)
            self._journal.note("staging.swept", folders=swept)

    def _carefully(self, name: str, work: Callable[[], None]) -> None:
        """The next interval tries again, whatever went wrong in this one."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the thread goes on, and the journal says so
            if name == "retention":
                self._tally.add(RETENTION_RUNS, "failed")
            self._journal.error(f"{name}.failed", error)
