"""How much memory a very large epoch takes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.children import child
from bench.figures import Figure, Report, at_most
from bench.orders import batches_of, build_part
from bench.scratch import Scratch
from duolog.log import open_log
from duolog.log.part import Part

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class MemoryBenchmark:
    """One epoch of parts staged beforehand, appended by a process that does nothing else."""

    name: ClassVar[str] = "memory"
    by_itself: ClassVar[bool] = False

    epoch_bytes: int = 2 << 30  # encoded
    records_per_part: int = 2_000_000

    @property
    def disk_bytes(self) -> int:
        return 3 * self.epoch_bytes

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("memory") as folder:
            parts = self._stage(folder)
            with child(append_measured, folder) as appender:
                appender.hear()
                idle = appender.rss_bytes()
                appender.tell("go")
                peak = appender.peak_rss_bytes()
                appender.hear()
        size = sum(part.length for part in parts)
        return Report(
            self.name,
            f"One epoch of {size / 1e9:.2f} GB of encoded batches in {len(parts)} staged parts, "
            "appended by a process of its own.",
            "the process after opening the log and one small append.",
            (
                Figure("peak above idle", (peak - idle) / _MIB, "MiB", target=at_most(300)),
                Figure("peak", peak / _MIB, "MiB", idle / _MIB),
            ),
        )

    def _stage(self, folder: Path) -> list[Part]:
        """A small part, and the parts of the epoch: one is made, the others are its copies."""
        with open_log(folder / "log") as log:
            topic = log.create_topic("orders")
        small = build_part(topic, list(batches_of(1000)), folder / "parts")
        first = build_part(topic, list(batches_of(self.records_per_part)), folder / "parts")
        parts = [first]
        for number in range(1, max(1, self.epoch_bytes // first.length)):
            path = folder / "parts" / f"copy-{number}.part"
            shutil.copyfile(str(first.path), path)
            parts.append(replace(first, path=str(path)))
        for number, part in enumerate([small, *parts]):
            (folder / f"{number:06}.message").write_bytes(part.message())
        return parts


def append_measured(pipe: Connection, folder: Path) -> None:
    """In the child: append something small, say so, then append the epoch when told to."""
    small, *messages = sorted(folder.glob("*.message"))
    with open_log(folder / "log") as log:
        log.append(WRITER, 0, [Part.from_message(small.read_bytes())])
        parts = [Part.from_message(message.read_bytes()) for message in messages]
        pipe.send("idle")
        pipe.recv()
        log.append(WRITER, 1, parts)
        pipe.send("done")
