"""How fast a large epoch is appended, and how fast tasks make its parts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.figures import Report, at_least_of_reference
from bench.orders import RECORD_BYTES, batches_of, build_part, stage
from bench.raw import raw_database, write_all
from bench.rounds import Samples, figure, take_turns
from bench.scratch import Scratch
from duolog.log import open_log
from duolog.log.model import Mode, TopicSettings, Writer

WRITER = Writer(Mode.BATCH, "bench", "orders")


@dataclass(frozen=True, slots=True)
class AppendBenchmark:
    """One epoch from staged parts, against the same batches put into raw rocksdict."""

    name: ClassVar[str] = "append"
    by_itself: ClassVar[bool] = False

    records: int = 3_000_000
    partitions: tuple[int, ...] = (1, 4)
    rounds: int = 5

    @property
    def disk_bytes(self) -> int:
        return 5 * self.records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        figures = []
        for partitions in self.partitions:
            with scratch.folder("append") as folder:
                samples = self._append(folder, partitions)
            figures.append(
                figure(
                    f"appended, {partitions} partition{'s' * (partitions > 1)}",
                    "MB/s",
                    samples["log"],
                    samples["raw"],
                    at_least_of_reference(0.7),
                )
            )
        with scratch.folder("stage") as folder:
            staged = self._stage(folder)
        figures += [
            figure("encoded by one task, in memory", "/s", staged["memory"]),
            figure("encoded and staged by one task", "/s", staged["file"]),
        ]
        return Report(
            self.name,
            f"{self.records:,} records of {RECORD_BYTES} B in one epoch of 4 staged parts; "
            "MB are of encoded batches.",
            "raw rocksdict, same options, the same batches already in memory, calls of 1 MiB, "
            "one sync.",
            tuple(figures),
        )

    def _append(self, folder: Path, partitions: int) -> Samples:
        with open_log(folder / "plan") as log:
            topic = log.create_topic("orders", TopicSettings(partitions=partitions))
        parts = stage(topic, self.records, folder / "parts")
        batches = [encoded for part in parts for _, encoded in part.encoded_batches()]
        size_mb = sum(map(len, batches)) / 1e6

        def append() -> float:
            with Scratch(folder).folder("log") as place, open_log(place) as log:
                log.create_topic("orders", TopicSettings(partitions=partitions))
                began = time.perf_counter()
                log.append(WRITER, 0, parts)
                return size_mb / (time.perf_counter() - began)

        def write_raw() -> float:
            with Scratch(folder).folder("raw") as place, raw_database(place / "db") as database:
                return size_mb / write_all(database, batches)

        return take_turns(self.rounds, {"log": append, "raw": write_raw})

    def _stage(self, folder: Path) -> Samples:
        with open_log(folder / "plan") as log:
            topic = log.create_topic("orders")
        batches = list(batches_of(self.records // 4))

        def stage_in(place: Path | None) -> float:
            began = time.perf_counter()
            part = build_part(topic, batches, place)
            seconds = time.perf_counter() - began
            if part.path is not None:
                Path(part.path).unlink()
            return sum(share.fingerprint.routed for share in part.topics) / seconds

        return take_turns(
            self.rounds,
            {"memory": lambda: stage_in(None), "file": lambda: stage_in(folder / "parts")},
        )
