"""How fast records are read: all of them in order, and single ones anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.figures import Report, at_least, at_most
from bench.orders import RECORD_BYTES, stage
from bench.raw import raw_database, scan_all
from bench.reading import ReadThrough, read_in_order, read_points
from bench.rounds import figure, percentile, take_turns
from bench.scratch import Scratch
from duolog.log import open_log


@dataclass(frozen=True, slots=True)
class FetchBenchmark:
    """A log that was closed and opened again, so that nothing is decoded yet."""

    name: ClassVar[str] = "fetch"
    by_itself: ClassVar[bool] = False

    records: int = 5_000_000
    point_fetches: int = 2000
    rounds: int = 5

    @property
    def disk_bytes(self) -> int:
        return 3 * self.records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("fetch") as folder:
            with open_log(folder / "log") as log:
                parts = stage(log.create_topic("orders"), self.records, folder / "parts")
                log.append(WRITER, 0, parts)
            stored_gb = sum(part.length for part in parts) / 1e9
            reads: list[ReadThrough] = []

            def read() -> float:
                with open_log(folder / "log", create=False) as log:
                    reads.append(read_in_order(log, "orders"))
                return reads[-1].seconds

            def read_raw() -> float:
                with raw_database(folder / "log" / "db", read_only=True) as database:
                    return scan_all(database)[0]

            seconds = take_turns(self.rounds, {"log": read, "raw": read_raw})
            points = [self._points(folder / "log", seed) for seed in range(self.rounds)]
        return Report(
            self.name,
            f"{self.records:,} records of {RECORD_BYTES} B, read in order with default limits from "
            "a log just opened, then one at a time at random.",
            "raw rocksdict, a scan of the same stored batches.",
            (
                figure(
                    "in order, decoded Arrow",
                    "GB/s",
                    [read.arrow_bytes / 1e9 / read.seconds for read in reads],
                    target=at_least(1),
                ),
                figure(
                    "in order, keys and values",
                    "GB/s",
                    [read.records * RECORD_BYTES / 1e9 / read.seconds for read in reads],
                ),
                figure(
                    "in order, stored batches",
                    "GB/s",
                    [stored_gb / taken for taken in seconds["log"]],
                    [stored_gb / taken for taken in seconds["raw"]],
                ),
                figure("one record, p50", "ms", [percentile(p, 0.5) * 1000 for p in points]),
                figure(
                    "one record, p99",
                    "ms",
                    [percentile(p, 0.99) * 1000 for p in points],
                    target=at_most(2),
                ),
            ),
        )

    def _points(self, folder: Path, seed: int) -> list[float]:
        with open_log(folder, create=False) as log:
            return read_points([log], "orders", self.point_fetches, seed)
