"""The parts of an epoch as one run of batches, in the order in which they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO, FileIO

from duolog.errors import DamagedPart
from duolog.log.batch import read_header
from duolog.log.model import TopicPartition
from duolog.log.part import Part, StagedBatch

_VERIFIERS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch lies."""

    part: int
    start: int
    staged: StagedBatch

    @property
    def where(self) -> TopicPartition:
        return TopicPartition(self.staged.topic_id, self.staged.partition)


class EpochParts:
    """Reads one epoch's parts, one file open at a time."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def verify(self) -> None:
        """Check every part; what is not as its task wrote it is refused."""
        if len(self.parts) == 1:
            self.parts[0].verify()
            return
        with ThreadPoolExecutor(_VERIFIERS, "duolog-verify") as pool:
            for _ in pool.map(Part.verify, self.parts):
                pass

    @cached_property
    def places(self) -> Sequence[Place]:
        """All batches: those of a lower `order` first, else as the parts come."""
        found = []
        for number, part in enumerate(self.parts):
            start = 0
            for staged in part.batches:
                found.append(Place(number, start, staged))
                start += staged.length
        found.sort(key=lambda place: (place.staged.order, place.part, place.start))
        return found

    def read(self, places: Iterable[Place]) -> Iterator[tuple[StagedBatch, bytes]]:
        """These batches."""
        with ExitStack() as opened:
            current = -1
            content: BytesIO | FileIO | None = None
            for place in places:
                part = self.parts[place.part]
                if place.part != current or content is None:
                    opened.close()
                    current, content = place.part, part.open()
                    opened.push(content.__exit__)
                encoded = part.read_at(content, place.start, place.staged.length)
                _check_header(place.staged, encoded)
                yield place.staged, encoded


def _check_header(staged: StagedBatch, encoded: bytes) -> None:
    header = read_header(encoded)
    if (header.count, header.max_ts_ms) != (staged.count, staged.max_ts_ms):
        raise DamagedPart(
            f"A part's message names a batch of {staged.count} records, the batch has "
            f"{header.count}. Run the write again."
        )
