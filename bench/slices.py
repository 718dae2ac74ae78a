"""What it costs to read, store and append an epoch that many tasks wrote a little of each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.figures import Report, at_most_of_reference
from bench.orders import KEY, RECORD_BYTES, VALUE, build_part, orders
from bench.rounds import Samples, figure, take_turns
from bench.scratch import Scratch
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import Record, TopicSettings
from duolog.log.part import Part

_NOTHING_CACHED = LogOptions(cache_bytes=0)
_A_CALL = 5


@dataclass(frozen=True, slots=True)
class SlicesBenchmark:
    """Records of many tasks beside as many records of few, in as many partitions."""

    name: ClassVar[str] = "slices"
    by_itself: ClassVar[bool] = False

    records: int = 480_000
    partitions: int = 16
    few_tasks: int = 4
    many_tasks: int = 1000
    published: int = 20_000
    rounds: int = 7

    @property
    def disk_bytes(self) -> int:
        return 8 * self.records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("slices") as folder:
            many = self._staged(folder / "many", self.many_tasks)
            few = self._staged(folder / "few", self.few_tasks)
            appended = self._appended(folder, many, few)
            with self._written(folder / "many", many) as log:
                batches, stored = stored_batches(log)
            with self._written(folder / "few", few) as log:
                batches_of_few, stored_of_few = stored_batches(log)
            with self._published(folder / "single") as log:
                batches_of_single, _ = stored_batches(log)
            read = take_turns(
                self.rounds,
                {
                    "many": lambda: self._read(folder / "many"),
                    "few": lambda: self._read(folder / "few"),
                    "single": lambda: self._read(folder / "single"),
                },
            )
        return Report(
            self.name,
            f"One epoch of {self.records:,} records of {RECORD_BYTES} B in {self.partitions} "
            f"partitions, written by {self.many_tasks:,} tasks, and read in order from a log just "
            f"opened. Published singly: {self.published:,} records, {_A_CALL} a call and a sync, "
            "merged meanwhile.",
            f"the same of {self.few_tasks} tasks.",
            (
                figure(
                    "read, a record",
                    "µs",
                    read["many"],
                    read["few"],
                    at_most_of_reference(1.5),
                ),
                figure("stored batches", "", [batches], [batches_of_few]),
                figure("stored", "MB", [stored / 1e6], [stored_of_few / 1e6]),
                figure(
                    "read what was published singly, a record", "µs", read["single"], read["few"]
                ),
                figure("stored batches of what was published singly", "", [batches_of_single]),
                figure("append, a record", "µs", appended["many"], appended["few"]),
            ),
        )

    def _staged(self, folder: Path, tasks: int) -> list[Part]:
        with open_log(folder / "plan") as log:
            topic = log.create_topic("orders", self._settings)
        share = self.records // tasks
        everything = orders(self.records)
        return [
            build_part(topic, [everything.slice(task * share, share)], folder / "parts")
            for task in range(tasks)
        ]

    @property
    def _settings(self) -> TopicSettings:
        return TopicSettings(partitions=self.partitions)

    def _appended(self, folder: Path, many: list[Part], few: list[Part]) -> Samples:
        def append(parts: list[Part]) -> float:
            with Scratch(folder).folder("log") as place, open_log(place) as log:
                log.create_topic("orders", self._settings)
                began = time.perf_counter()
                log.append(WRITER, 0, parts)
                return 1e6 * (time.perf_counter() - began) / self.records

        return take_turns(self.rounds, {"many": lambda: append(many), "few": lambda: append(few)})

    def _written(self, folder: Path, parts: list[Part]) -> EmbeddedLog:
        log = open_log(folder / "log")
        log.create_topic("orders", self._settings)
        log.append(WRITER, 0, parts)
        return log

    def _published(self, folder: Path) -> EmbeddedLog:
        """Records of which each call stores a small batch in one of two partitions."""
        log = open_log(folder / "log")
        log.create_topic("orders", TopicSettings(partitions=2))
        for number in range(self.published // _A_CALL):
            key = b"%0*d" % (len(KEY), number)
            together = [Record(VALUE, key=key, partition=number % 2)] * _A_CALL
            log.publish("orders", together)
        return log

    def _read(self, folder: Path) -> float:
        with open_log(folder / "log", create=False, options=_NOTHING_CACHED) as log:
            began = time.perf_counter()
            read = 0
            for where in log.offsets("orders"):
                at = where.start
                while at < where.next_offset:
                    fetched = log.fetch("orders", where.partition, at)
                    at = fetched.next_offset
                    read += fetched.count
            return 1e6 * (time.perf_counter() - began) / read


def stored_batches(log: EmbeddedLog, topic: str = "orders") -> tuple[int, int]:
    """How many batches a topic's records are stored in, and their bytes."""
    batches = size = 0
    for where in log.offsets(topic):
        at = where.start
        while at < where.next_offset:
            fetched = log.fetch_encoded(topic, where.partition, at)
            batches += len(fetched.batches)
            size += sum(len(batch.encoded) for batch in fetched.batches)
            at = fetched.next_offset
    return batches, size
