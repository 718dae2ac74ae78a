"""The streams of a drill: their names, their files, their topics."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duolog.log.embedded import open_log
from duolog.log.model import Envelope, Mode, Op, Route, TopicSettings, Writer
from tests.drills.connector.changes import batch

PARTITIONS = 3
_ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of change rows into a topic of its own.

    Its name stays the same from start to start; with `+mutant` behind it, all that is done for it
    is done by a product with that mutant.
    """

    name: str
    door: str  # "source" or "function"
    log: Path
    files: Path
    checkpoint: Path
    small_batch_rows: int = 0  # above 0: the function encodes smaller batches on the driver

    @property
    def topic(self) -> str:
        return self.name.replace("+", "_")

    @property
    def table(self) -> str:
        return f"drill.{self.topic}"

    @property
    def writer(self) -> Writer:
        return Writer(Mode.STREAM, self.name, f"table:{self.table}")


def streams_of(folder: Path, *names: str, small_batch_rows: int = 0) -> list[Stream]:
    """Streams of the same files; a name begins with its door, and may end with a mutant."""
    streams = [
        Stream(
            name,
            name.partition("+")[0],
            folder / f"{name}.log",
            folder / "files",
            folder / f"{name}.checkpoint",
            small_batch_rows,
        )
        for name in names
    ]
    make_log(streams)
    return streams


def make_log(streams: Sequence[Stream]) -> None:
    """A topic for each stream."""
    for stream in streams:
        with open_log(stream.log) as log:
            settings = TopicSettings(
                partitions=PARTITIONS, envelope=Envelope.DEBEZIUM, tombstones_on_delete=False
            )
            log.create_topic(stream.topic, settings)
            log.add_route(stream.topic, Route(stream.table, _ALL))


def add_files(folder: Path, upto: int) -> None:
    """Let a folder hold the files of so many batches."""
    folder.mkdir(exist_ok=True)
    for number in range(len(list(folder.glob("*.json"))), upto):
        write_file(folder, number, batch(number).lines)


def write_file(folder: Path, number: int, lines: Sequence[str]) -> None:
    """Write the file of one batch at once, so that no stream sees half of it."""
    unfinished = folder / f".{number:05}"
    unfinished.write_text("".join(f"{line}\n" for line in lines))
    os.utime(unfinished, (1_700_000_000 + number,) * 2)  # files are taken in this order
    unfinished.rename(folder / f"{number:05}.json")
