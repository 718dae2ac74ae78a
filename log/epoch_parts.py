"""The parts of an epoch as one run of batches, in the order in which they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO, FileIO
from typing import Any

from duolog.errors import DamagedLog, DamagedPart, RecordTooLarge
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch import BatchHeader, decode_checked
from duolog.log.batch_check import BatchLimits, check_batch
from duolog.log.model import TopicPartition
from duolog.log.part import Part, StagedBatch

_VERIFIERS = 2
_STRETCH_BYTES = 4 << 20  # of batches that one of them checks at a time


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

    def __init__(self, parts: Sequence[Part], limits: BatchLimits) -> None:
        self.parts = tuple(parts)
        self._limits = limits
        self._files: dict[int, tuple[int, ...]] = {}

    def verify(self) -> None:
        """Check every part, and every batch in it whole; what is not right is refused."""
        checks = list(self._checks())
        if len(checks) <= _VERIFIERS:
            for check in checks:
                check()
            return
        with ThreadPoolExecutor(_VERIFIERS, "duolog-verify") as pool:
            try:
                for _ in pool.map(lambda check: check(), checks):
                    pass
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _checks(self) -> Iterator[Callable[[], None]]:
        stretch: list[Place] = []
        size = 0
        for number in range(len(self.parts)):
            yield partial(self._verify_sum, number)
        for place in self._as_they_lie():
            if size and (size >= _STRETCH_BYTES or place.part != stretch[0].part):
                yield partial(self._check_batches, tuple(stretch))
                stretch, size = [], 0
            stretch.append(place)
            size += place.staged.length
        if stretch:
            yield partial(self._check_batches, tuple(stretch))

    def _verify_sum(self, number: int) -> None:
        with self._opened(number) as content:
            self.parts[number].verify_sum(content)

    def _check_batches(self, places: Sequence[Place]) -> None:
        for place, encoded in self._read(places):
            try:
                header, _ = check_batch(encoded, self._limits)
                _check_claims(place.staged, header)
            except WrongBatch as wrong:
                raise self._refused(place, wrong) from None

    def _refused(self, place: Place, wrong: WrongBatch) -> DamagedPart:
        staged = place.staged
        return DamagedPart(
            f"{self.parts[place.part].shown} holds a batch, for topic id {staged.topic_id} "
            f"partition {staged.partition}, that nobody could read: {wrong}. Nothing of the write "
            "was kept. Run the write again, with the same Duolog in tasks and at the log's owner."
        )

    @cached_property
    def places(self) -> Sequence[Place]:
        """All batches: those of a lower `order` first, else as the parts come."""
        return sorted(
            self._as_they_lie(), key=lambda place: (place.staged.order, place.part, place.start)
        )

    def _as_they_lie(self) -> Iterator[Place]:
        for number, part in enumerate(self.parts):
            start = 0
            for staged in part.batches:
                yield Place(number, start, staged)
                start += staged.length

    def read(self, places: Iterable[Place]) -> Iterator[tuple[StagedBatch, bytes]]:
        """These batches, which `verify` has checked."""
        for place, encoded in self._read(places):
            yield place.staged, encoded

    def _read(self, places: Iterable[Place]) -> Iterator[tuple[Place, bytes]]:
        with ExitStack() as opened:
            current = -1
            content: BytesIO | FileIO | None = None
            for place in places:
                if place.part != current or content is None:
                    opened.close()
                    current = place.part
                    content = opened.enter_context(self._opened(current))
                if place.staged.length > self._limits.max_encoded_bytes:
                    raise RecordTooLarge(
                        f"{self.parts[current].shown} names a batch of {place.staged.length} "
                        f"bytes, over the limit of {self._limits.max_encoded_bytes}. Stage smaller "
                        "batches, or raise max_record_bytes."
                    )
                yield (
                    place,
                    self.parts[current].read_at(content, place.start, place.staged.length),
                )

    @contextmanager
    def _opened(self, number: int) -> Iterator[BytesIO | FileIO]:
        """A part's bytes. A file has to be the one that was there before, and unchanged."""
        part = self.parts[number]
        with part.open() as content:
            if isinstance(content, FileIO):
                found = os.fstat(content.fileno())
                file = (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
                if self._files.setdefault(number, file) != file:
                    raise DamagedPart(
                        f"{part.shown} was changed while it was appended. Nothing of the write was "
                        "kept. Run the write again."
                    )
            yield content


def staged_records(encoded: bytes) -> Any:
    """The records of a staged batch, which `verify` has checked; its file did not change since."""
    try:
        return decode_checked(encoded)
    except DamagedLog as error:
        raise DamagedPart(
            "A part holds a batch that cannot be read any more. Run the write again; if it comes "
            "back, check the staging folder's disk."
        ) from error


def _check_claims(staged: StagedBatch, header: BatchHeader) -> None:
    if (header.count, header.max_ts_ms) != (staged.count, staged.max_ts_ms):
        raise WrongBatch(
            f"its part's message names {staged.count} records up to {staged.max_ts_ms} ms, it has "
            f"{header.count} up to {header.max_ts_ms}"
        )
