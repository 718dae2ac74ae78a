"""Whether cost stays the same as a log grows, and how long it takes to open after kill -9."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.children import child
from bench.figures import Figure, Report, at_most, at_most_of_reference
from bench.orders import RECORD_BYTES, batches_of, build_part
from bench.reading import read_in_order, read_points
from bench.rounds import (
    Samples,
    figure,
    percentile,
    seconds_of,
    settle_disk,
    take_turns,
)
from bench.scratch import Scratch
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import Mode, Record, Writer
from duolog.log.part import Part

_FILLER = Writer(Mode.BATCH, "bench-fill", "orders")
_NOTHING_CACHED = LogOptions(cache_bytes=0)


@dataclass(frozen=True, slots=True)
class FlatBenchmark:
    """A large log beside small ones, both appended to and read in turns.

    Reads go to so many small logs that together they are larger than the processor's caches: a
    single one would stay in them, and memory would be compared, not logs. For the same reason all
    logs are read from RocksDB's files, none from its write buffers, and their files are in the
    system's page cache: what a disk costs is not what is asked here.
    """

    name: ClassVar[str] = "flat"
    by_itself: ClassVar[bool] = True

    records: int = 100_000_000
    small_records: int = 100_000
    small_logs: int = 40
    epoch_records: int = 1_000_000  # of the epochs that fill the large log
    point_fetches: int = 2000
    rounds: int = 15

    @property
    def disk_bytes(self) -> int:
        return 2 * self.records * RECORD_BYTES + (1 << 30)

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("flat") as folder:
            large = folder / "large"
            with open_log(large) as log:
                topic = log.create_topic("orders")
            fill = build_part(topic, list(batches_of(self.epoch_records)), folder / "parts")
            small = build_part(topic, list(batches_of(self.small_records)), folder / "parts")
            (folder / "fill.message").write_bytes(fill.message())
            (folder / "small.message").write_bytes(small.message())
            with child(fill_and_hold, folder, self.records // self.epoch_records) as holder:
                holder.hear()
                holder.kill()
            settle_disk()
            began = time.perf_counter()
            with open_log(large, create=False, options=_NOTHING_CACHED) as log:
                opening = time.perf_counter() - began
                figures = self._compare(log, small, folder)
        return Report(
            self.name,
            f"A log of {self.records:,} records of {RECORD_BYTES} B in one partition, its files in "
            "the page cache.",
            f"logs of {self.small_records:,} such records.",
            (*figures, Figure("open after kill -9", opening, "s", target=at_most(1))),
        )

    def _compare(self, large: EmbeddedLog, small: Part, folder: Path) -> tuple[Figure, ...]:
        flat = at_most_of_reference(1.2)
        appended = self._append(large, small, folder)
        with ExitStack() as opened:
            logs = []
            for number in range(self.small_logs):
                place = folder / f"small-{number}"
                with open_log(place) as log:
                    log.create_topic("orders")
                    log.append(WRITER, 0, [small])
                logs.append(opened.enter_context(open_log(place, options=_NOTHING_CACHED)))
            bring_into_page_cache(folder)
            in_order = self._read_in_order(large, logs)
            points = self._read_points(large, logs)
        return (
            figure("append, a record", "µs", appended["large"], appended["small"], flat),
            figure("fetch in order, a record", "µs", in_order["large"], in_order["small"], flat),
            figure("fetch one record, p50", "ms", points["large"], points["small"], flat),
        )

    def _append(self, large: EmbeddedLog, small: Part, folder: Path) -> Samples:
        epochs = itertools.count(1)
        microseconds = 1e6 / self.small_records

        def append_to_large() -> float:
            return microseconds * seconds_of(lambda: large.append(WRITER, next(epochs), [small]))

        def append_to_small() -> float:
            with Scratch(folder).folder("small") as place, open_log(place) as log:
                log.create_topic("orders")
                log.append(WRITER, 0, [small])
                return microseconds * seconds_of(lambda: log.append(WRITER, 1, [small]))

        return take_turns(self.rounds, {"large": append_to_large, "small": append_to_small})

    def _read_in_order(self, large: EmbeddedLog, small: Sequence[EmbeddedLog]) -> Samples:
        chosen = random.Random(0)

        def read(log: EmbeddedLog) -> float:
            end = log.offsets("orders")[0].next_offset
            start = chosen.randint(0, end - self.small_records)
            through = read_in_order(log, "orders", start, self.small_records)
            return 1e6 * through.seconds / through.records

        return take_turns(
            self.rounds,
            {"large": lambda: read(large), "small": lambda: read(chosen.choice(small))},
        )

    def _read_points(self, large: EmbeddedLog, small: Sequence[EmbeddedLog]) -> Samples:
        seeds = itertools.count()

        def read(logs: Sequence[EmbeddedLog]) -> float:
            latencies = read_points(logs, "orders", self.point_fetches, next(seeds))
            return 1000 * percentile(latencies, 0.5)

        return take_turns(
            self.rounds, {"large": lambda: read([large]), "small": lambda: read(small)}
        )


def bring_into_page_cache(folder: Path) -> None:
    for path in folder.rglob("*.sst"):
        with path.open("rb") as file:
            while file.read(1 << 20):
                pass


def fill_and_hold(pipe: Connection, folder: Path, epochs: int) -> None:
    """In the child: fill the log, write a little more, say so, and wait to be killed."""
    fill, small = (
        Part.from_message((folder / name).read_bytes())
        for name in ("fill.message", "small.message")
    )
    with open_log(folder / "large") as log:
        for epoch in range(epochs):
            log.append(_FILLER, epoch, [fill])
        log.append(WRITER, 0, [small])
        log.publish("orders", Record(b"the last one"))
        pipe.send("filled")
        pipe.recv()
