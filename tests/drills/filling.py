"""Fills a small disk with a log, frees some of it, and goes on; says what went wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duolog.errors import DuologError, WritesRefused
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Mode, Record, TopicSettings, Writer
from duolog.log.options import LogOptions
from duolog.log.part import Part
from duolog.log.store import RECOVERY_BYTES
from tests.drills.worker import say
from tests.drills.writing import use_small_files
from tests.support.records import part_of

_STREAM = Writer(Mode.STREAM, "drill", "orders")
_VALUE_BYTES = 40 << 10
_EPOCH_ROWS = 25
_BALLAST_BYTES = RECOVERY_BYTES + (16 << 20)
_REFUSALS_WANTED = 5
_MOST_WRITES = 4000
_MOST_TRIES = 50


def fill(folder: str, *, seed: str, min_free_bytes: int, quota_bytes: int | None) -> None:
    """The role. Without a quota, the folder lies on a disk that is small by itself."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        use_small_files()
    filler = _Filler(Path(folder), chance, min_free_bytes)
    release: Callable[[], None]
    if quota_bytes is None:
        ballast = Path(folder) / "ballast"
        ballast.write_bytes(bytes(_BALLAST_BYTES))
        release = ballast.unlink
    else:
        from tests.support.shim import Shim

        shim = Shim()
        shim.watch(Path(folder))
        shim.limit(quota_bytes)
        release = lambda: shim.limit(None)  # noqa: E731
    filler.run(release)
    say({"violations": filler.wrong, "refused": dict(filler.refused), "writes": filler.writes})


class _Filler:
    def __init__(self, folder: Path, chance: random.Random, min_free_bytes: int) -> None:
        self._path = folder / "log"
        self._options = LogOptions(min_free_bytes=min_free_bytes, cache_bytes=0)
        self._chance = chance
        self._expected: Counter[bytes] = Counter()
        self._sequence = self._epoch = 0
        self.wrong: list[str] = []
        self.refused: Counter[str] = Counter()
        self._held: list[WritesRefused] = []  # as callers keep errors, with all their frames
        self.writes = 0

    def run(self, release: Callable[[], None]) -> None:
        with open_log(self._path, options=self._options) as log:
            log.create_topic("orders", TopicSettings(partitions=2))
            write = self._fill(log)
            if write is None:
                self.wrong.append("the disk was never full")
                return
            self._check(log, in_flight=write)
            release()
            if not self._insist(write):
                self.wrong.append("writes do not work again after space was freed")
                return
            for _ in range(10):
                self._insist(self._next_write(log))
            self._check(log)
        with open_log(self._path, options=self._options) as log:
            self._check(log)

    def _fill(self, log: EmbeddedLog) -> _Write | None:
        """Write until it is refused again and again; the write that was refused."""
        for _ in range(_MOST_WRITES):
            write = self._next_write(log)
            if not self._taken(write):
                for _ in range(_REFUSALS_WANTED):
                    self._check(log, in_flight=write)
                    if self._taken(write):
                        break
                else:
                    return write
        return None

    def _next_write(self, log: EmbeddedLog) -> _Write:
        self.writes += 1
        if self._chance.random() < 0.2:
            self._epoch += 1
            values = [self._chance.randbytes(_VALUE_BYTES) for _ in range(_EPOCH_ROWS)]
            return _Write(log, values, epoch=self._epoch - 1)
        self._sequence += 1
        return _Write(log, [self._chance.randbytes(_VALUE_BYTES)], sequence=self._sequence)

    def _taken(self, write: _Write) -> bool:
        try:
            write()
        except WritesRefused as refused:
            self.refused[refused.code] += 1
            self._held.append(refused)
            return False
        self._expected.update(write.values)
        return True

    def _insist(self, write: _Write) -> bool:
        return any(self._taken(write) for _ in range(_MOST_TRIES))

    def _check(self, log: EmbeddedLog, in_flight: _Write | None = None) -> None:
        """All that was taken can be read, once; what is in flight is there as a whole or not."""
        try:
            found = _content(log)
        except DuologError as refused:
            self.wrong.append(f"reads are refused: {refused.code}: {refused}")
            return
        if in_flight is not None and found == self._expected + Counter(in_flight.values):
            return
        if found != self._expected:
            lost, more = self._expected - found, found - self._expected
            self.wrong.append(f"{lost.total()} records lost, {more.total()} too many")


def _content(log: EmbeddedLog) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for bounds in log.offsets("orders"):
        at = 0
        while at < bounds.next_offset:
            fetched = log.fetch("orders", bounds.partition, at)
            found.update(record.value for record in fetched if record.value is not None)
            at = fetched.next_offset
    return found


class _Write:
    """One publish or epoch that can be sent again."""

    def __init__(self, log: EmbeddedLog, values: list[bytes], **numbered: Any) -> None:
        self._log = log
        self._numbered = numbered
        self.values = values

    def __call__(self) -> None:
        epoch = self._numbered.get("epoch")
        if epoch is None:
            self._log.publish(
                "orders", Record(self.values[0]), writer="w", sequence=self._numbered["sequence"]
            )
        else:
            self._log.append(_STREAM, epoch, [self._part()])

    def _part(self) -> Part:
        topic = self._log.topic("orders")
        half = len(self.values) // 2
        return part_of(topic, {0: self.values[:half], 1: self.values[half:]})
