"""Reads, writes and removes at once, while syncs fail now and then; says what a reader saw wrongly.

Each record says where it lies, so a reader needs no other knowledge to judge it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from duolog.errors import (
    DamagedLog,
    NotWritten,
    OffsetOutOfRange,
    OutcomeUnknown,
    UnknownTopic,
    WritesRefused,
)
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import (
    AtTimestamp,
    Mode,
    Record,
    Retention,
    Topic,
    TopicPartition,
    TopicSettings,
    Writer,
)
from duolog.log.options import FaultPoint, LogOptions
from tests.drills.worker import say
from tests.support.records import part_of

PARTITIONS = 3
_KEPT_BYTES = 20_000
_FAILS = ("store.sync", "removal.shown", "removal.written")
_NOT_NOW = (NotWritten, OutcomeUnknown, WritesRefused)


class _Removing:
    """One life of a log."""

    def __init__(self, log: EmbeddedLog, seconds: float, seed: str) -> None:
        self.log = log
        self.seed = seed
        self.ends_at = time.monotonic() + seconds
        self.wrong: list[str] = []
        self.starts = [0] * PARTITIONS  # as a reader was told
        self.nexts = [0] * PARTITIONS  # as a writer was told
        self.topic = self._sent(
            lambda: log.create_topic("t", _settings(PARTITIONS), if_not_exists=True)
        )

    @property
    def goes_on(self) -> bool:
        return not self.wrong and time.monotonic() < self.ends_at

    def run(self) -> None:
        work: list[Callable[[], None]] = [self._clear, self._drop, self._sweep]
        work += [partial(self._write, number) for number in range(PARTITIONS)]
        work += [self._merge] * 2
        work += [partial(self._read, reader) for reader in range(3)]
        threads = [threading.Thread(target=self._again_and_again, args=(each,)) for each in work]
        for thread in threads:
            thread.start()
        while self.goes_on:
            say(["told", self.starts.copy(), self.nexts.copy()])
            time.sleep(0.02)
        for thread in threads:
            thread.join()

    def _again_and_again(self, work: Callable[[], None]) -> None:
        while self.goes_on:
            try:
                work()
            except _NOT_NOW:
                pass
            except Exception as error:
                self.wrong.append(f"{work}: {type(error).__name__}: {error}")

    def _sent(self, write: Callable[[], Topic]) -> Topic:
        while True:
            try:
                return write()
            except _NOT_NOW:
                continue

    def _write(self, partition: int) -> None:
        chance = random.Random(f"{self.seed} writes {partition}")
        at = self.log.offsets("t")[partition].next_offset
        while self.goes_on:
            values = [_content(partition, at + n) for n in range(chance.choice((1, 1, 5, 30)))]
            if chance.random() < 0.3:
                writer, now_ns = Writer(Mode.BATCH, f"w{partition}", "t"), time.time_ns()
                part = part_of(self.topic, {partition: values}, ts_ms=now_ns // 1_000_000)
                self.log.append(writer, now_ns, [part])
            else:
                self.log.publish("t", [Record(value, partition=partition) for value in values])
            at += len(values)
            self.nexts[partition] = at

    def _read(self, reader: int) -> None:
        chance = random.Random(f"{self.seed} reads {reader}")
        while self.goes_on:
            partition = chance.randrange(PARTITIONS)
            head = self.log.offsets("t")[partition]
            self.starts[partition] = max(self.starts[partition], head.start)
            at = max(
                0, chance.choice((head.start, head.start - 1, (head.start + head.next_offset) // 2))
            )
            try:
                self._read_at(partition, at, chance)
            except OffsetOutOfRange as error:
                if error.offset >= error.earliest:
                    self.wrong.append(str(error))
            for read in (self.log.fetch, self.log.fetch_encoded):
                with suppress(UnknownTopic, OffsetOutOfRange):
                    read("dropped", 0, 0)

    def _read_at(self, partition: int, at: int, chance: random.Random) -> None:
        log = self.log
        fetched = log.fetch("t", partition, at, max_records=chance.choice((1, 7, 1000)))
        encoded = [each.decode() for each in log.fetch_encoded("t", partition, at).batches]
        for batch in (*fetched.batches, *encoded):
            values = batch.records.column("value").to_pylist()
            wanted = [_content(partition, batch.base_offset + n) for n in range(len(values))]
            if values != wanted:
                self.wrong.append(f"{partition}:{batch.base_offset} reads as {values[0]!r}")
        log.resolve("t", partition, AtTimestamp(time.time_ns() // 1_000_000 - 500))

    def _sweep(self) -> None:
        # Much is kept for a while, and merged; then little, so removals cut into what is merged.
        for kept_bytes in (10 * _KEPT_BYTES, _KEPT_BYTES // 10):
            self.log.set_retention("t", Retention(max_bytes=kept_bytes))
            for _ in range(5):
                self.log.enforce_retention()

    def _merge(self) -> None:
        for partition in range(PARTITIONS):
            self.log._merger.merge(TopicPartition(self.topic.id, partition))

    def _clear(self) -> None:
        time.sleep(0.3)
        self.log.clear_topic("t")

    def _drop(self) -> None:
        self.log.create_topic("dropped", _settings(1), if_not_exists=True)
        for _ in range(5):
            self.log.publish("dropped", [Record(b"v")] * 5)
        self.log.drop_topic("dropped")


def remove_beside_readers(
    folder: str, *, seed: str, seconds: float, starts: list[int], nexts: list[int]
) -> None:
    """The role: one life, which begins by looking at what lives before it were told."""
    chance, is_failing = random.Random(f"{seed} fails"), threading.Event()

    def fault(point: FaultPoint) -> None:
        if is_failing.is_set() and point in _FAILS and chance.random() < 0.02:
            raise OSError(5, "Input/output error")

    with open_log(folder, options=LogOptions(fault=fault, cache_bytes=0)) as log:
        life = _Removing(log, seconds, seed)
        for head, start, next_offset in zip(log.offsets("t"), starts, nexts, strict=True):
            if head.start < start or head.next_offset < next_offset:
                life.wrong.append(f"{head} after readers were told of {start} to {next_offset}")
        is_failing.set()
        life.run()
        is_failing.clear()
        log.enforce_retention()
        try:
            log.check_whole()
        except DamagedLog as error:
            life.wrong.append(str(error))
        say(["violations", life.wrong])
    say(["done"])


def _settings(partitions: int) -> TopicSettings:
    return TopicSettings(partitions=partitions, retention=Retention(max_bytes=_KEPT_BYTES))


def _content(partition: int, offset: int) -> bytes:
    return b"%d:%d" % (partition, offset)
