"""Parts: what a task has encoded and nobody has committed yet.

A part is a run of encoded batches, in memory or in a staged file, and a message that says what is
in it. The message travels from the task to the driver and on to the owner of the log; it carries
the length and checksum of the whole, so a part that was cut short, mixed up or damaged on its way
is found before anything is written.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.errors import DamagedPart, UnsupportedFormat
from duolog.log import batch
from duolog.log.batch_check import check_sizes
from duolog.log.batch_values import record_sizes
from duolog.log.model import MAX_RECORD_BYTES, Topic
from duolog.log.open_files import is_too_many, too_many_open_files
from duolog.log.routing.content_hash import content_sum
from duolog.log.staging import LocalStaging, StagedFile, StagingPlace

MESSAGE_VERSION = 1
_READ_BYTES = 1 << 18
_HASHES = 2**64
_ROW_BYTES = 26  # what a record takes at least, beside its contents

_Range = Mapping[str, range]
_NUMBERS, _SIZES = range(2**32), range(2**63)
_OF_BATCHES: _Range = {
    "topic_id": _NUMBERS,
    "partition": _NUMBERS,
    "order": range(-(2**31), 2**31),
    "count": range(1, 2**31),
    "length": range(1, 2**40),
    "max_ts_ms": _SIZES,
}
_OF_TOPICS: _Range = {"topic_id": _NUMBERS, "partitions": range(1, 2**32)}
_OF_FINGERPRINTS: _Range = {"routed": _SIZES, "filtered_out": _SIZES, "content": range(_HASHES)}
_OF_PARTS: _Range = {"length": _SIZES, "crc32": _NUMBERS}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an epoch holds for one topic, whatever the order and however rows were split.

    A stored epoch that comes again must have the same: the number of rows that were routed and
    left out, and the sum of the hashes of all keys and values. Times are not part of it, since
    a repeated plan may take new ones.
    """

    routed: int = 0
    filtered_out: int = 0
    content: int = 0

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(
            self.routed + other.routed,
            self.filtered_out + other.filtered_out,
            (self.content + other.content) % _HASHES,
        )


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One encoded batch inside a part. Batches of a lower `order` come first in their partition."""

    topic_id: int
    partition: int
    order: int
    count: int
    length: int
    max_ts_ms: int


@dataclass(frozen=True, slots=True)
class PartTopic:
    """A part's share of one topic, and how many partitions the topic had when it was staged."""

    topic_id: int
    partitions: int
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Part:
    """A part and what is in it. Either `body` or `path` holds the batches."""

    batches: tuple[StagedBatch, ...]
    topics: tuple[PartTopic, ...]
    length: int
    crc32: int
    body: bytes | None = None
    path: str | None = None

    def message(self) -> bytes:
        """The part as it travels from the task to the driver."""
        fields = asdict(self)
        if self.body is not None:
            fields["body"] = b64encode(self.body).decode()
        return json.dumps({"v": MESSAGE_VERSION, **fields}, separators=(",", ":")).encode()

    @classmethod
    def from_message(cls, message: bytes) -> Part:
        """The part of a message, whoever made it; DamagedPart for one that cannot be right."""
        try:
            fields = json.loads(message)
            version = fields.pop("v")
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise DamagedPart("A part's message is not readable. Run the write again.") from None
        if version != MESSAGE_VERSION:
            raise UnsupportedFormat(
                f"A part's message has version {str(version)[:20]!r}; this Duolog reads "
                f"{MESSAGE_VERSION}. Use the same Duolog in tasks, driver and bridge."
            )
        try:
            part = cls(
                batches=tuple(StagedBatch(**staged) for staged in fields["batches"]),
                topics=tuple(
                    PartTopic(t["topic_id"], t["partitions"], Fingerprint(**t["fingerprint"]))
                    for t in fields["topics"]
                ),
                length=fields["length"],
                crc32=fields["crc32"],
                body=None if fields["body"] is None else b64decode(fields["body"], validate=True),
                path=fields["path"],
            )
        except (KeyError, TypeError, ValueError):
            raise DamagedPart("A part's message is incomplete. Run the write again.") from None
        part.check_claims()
        return part

    def check_claims(self) -> None:
        """Refuse numbers that no part has, and those that contradict each other."""
        for staged in self.batches:
            _check_numbers(staged, _OF_BATCHES)
        for topic in self.topics:
            _check_numbers(topic, _OF_TOPICS)
            _check_numbers(topic.fingerprint, _OF_FINGERPRINTS)
        _check_numbers(self, _OF_PARTS)
        if not isinstance(self.body, bytes | None) or not isinstance(self.path, str | None):
            raise DamagedPart("A part's message is incomplete. Run the write again.")
        if self.length != sum(staged.length for staged in self.batches):
            raise DamagedPart(f"{self.shown} does not hold the batches its message names.")

    def verify_sum(self, content: BytesIO | FileIO) -> None:
        """Read the whole part once; what is not as its task wrote it is refused."""
        length = crc32 = 0
        buffer = memoryview(bytearray(_READ_BYTES))
        with self._reading():
            while read := content.readinto(buffer):
                length += read
                crc32 = zlib.crc32(buffer[:read], crc32)
        if length != self.length:
            raise DamagedPart(
                f"{self.shown} has {length} bytes, its task wrote {self.length}. Run the write "
                "again; if it comes back, check the staging folder's disk."
            )
        if crc32 != self.crc32:
            raise DamagedPart(
                f"{self.shown} fails its checksum. Run the write again; if it comes back, check "
                "the staging folder's disk."
            )

    def encoded_batches(self) -> Iterator[tuple[StagedBatch, bytes]]:
        """Each batch with its bytes, in the order of the part."""
        start = 0
        with self.open() as content:
            for staged in self.batches:
                yield staged, self.read_at(content, start, staged.length)
                start += staged.length

    def read_at(self, content: BytesIO | FileIO, start: int, length: int) -> bytes:
        """One batch out of the opened part."""
        with self._reading():
            content.seek(start)
            encoded = content.read(length)
        if len(encoded) != length:
            raise DamagedPart(f"{self.shown} was cut short while it was read.")
        return encoded

    def open(self) -> BytesIO | FileIO:
        """The part's bytes, unbuffered, to be closed by the caller."""
        if self.body is not None:
            return BytesIO(self.body)
        if self.path is None:
            raise DamagedPart("A part names neither bytes nor a file.")
        with self._reading():
            return FileIO(self.path)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if is_too_many(error):
                raise too_many_open_files(f"The staged file {self.path} cannot be read") from error
            raise DamagedPart(
                f"{self.shown} cannot be read ({error.strerror}). Nothing of the write was kept. "
                "The staging folder must be the same for tasks and for the owner of the log; look "
                "at its disk and run the write again."
            ) from error

    @property
    def shown(self) -> str:
        """The part in messages."""
        return "A part" if self.path is None else f"The staged part {self.path}"


def _check_numbers(of: Any, ranges: _Range) -> None:
    for name, allowed in ranges.items():
        number = getattr(of, name)
        if type(number) is not int or number not in allowed:
            raise DamagedPart(
                f"A part's message names {str(number)[:40]!r} as a {name}. Run the write again."
            )


class PartBuilder:
    """Collects a task's records and makes one part of them.

    Without a place (or a folder) for it, the part stays in memory and travels inside its message.
    """

    def __init__(
        self,
        place: StagingPlace | Path | None = None,
        *,
        target_bytes: int = batch.TARGET_BYTES,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._target_bytes = target_bytes
        self._max_record_bytes = max_record_bytes
        self._waiting: dict[tuple[int, int, int], list[Any]] = {}
        self._waiting_bytes: dict[tuple[int, int, int], int] = {}
        self._batches: list[StagedBatch] = []
        self._topics: dict[int, PartTopic] = {}
        self._length = self._crc32 = 0
        if isinstance(place, Path):
            place = LocalStaging(place)
        self._file: StagedFile | None = None if place is None else place.begin()
        self._memory = BytesIO()

    def add(self, topic: Topic, partition: int, records: Any, *, order: int = 0) -> None:
        """Add records (of batch.RECORD_SCHEMA) of one partition, behind those of the same order."""
        if records.num_rows == 0:
            return
        check_sizes(records, self._max_record_bytes)
        self.count(
            topic,
            Fingerprint(
                routed=records.num_rows,
                content=content_sum(records.column("key"), records.column("value")),
            ),
        )
        where = (topic.id, partition, order)
        for slice_ in _slices(records, self._target_bytes):
            self._waiting.setdefault(where, []).append(slice_)
            size = self._waiting_bytes.get(where, 0) + slice_.nbytes
            self._waiting_bytes[where] = size
            if size >= self._target_bytes:
                self._encode(where)

    def count(self, topic: Topic, fingerprint: Fingerprint) -> None:
        """Add to what the part says of a topic, for rows that leave no record."""
        known = self._topics.get(topic.id)
        if known is None:
            known = PartTopic(topic.id, topic.partitions, Fingerprint())
        self._topics[topic.id] = replace(known, fingerprint=known.fingerprint + fingerprint)

    def finish(self) -> Part:
        """Encode what is waiting and close the part."""
        for where in list(self._waiting):
            self._encode(where)
        return Part(
            batches=tuple(self._batches),
            topics=tuple(self._topics.values()),
            length=self._length,
            crc32=self._crc32,
            body=self._memory.getvalue() if self._file is None else None,
            path=None if self._file is None else self._file.finish(),
        )

    def abort(self) -> None:
        """Throw the part away."""
        if self._file is not None:
            self._file.abort()

    def _encode(self, where: tuple[int, int, int]) -> None:
        slices = self._waiting.pop(where)
        self._waiting_bytes.pop(where)
        records = slices[0] if len(slices) == 1 else _joined(slices)
        encoded = batch.encode(records)
        (self._memory if self._file is None else self._file).write(encoded)
        self._crc32 = zlib.crc32(encoded, self._crc32)
        self._length += len(encoded)
        topic_id, partition, order = where
        header = batch.read_header(encoded)
        self._batches.append(
            StagedBatch(topic_id, partition, order, header.count, len(encoded), header.max_ts_ms)
        )


def _slices(records: Any, target_bytes: int) -> Iterator[Any]:
    """The records in slices, each of which reaches the target size with its last record."""
    if records.nbytes <= target_bytes:
        yield records
        return
    ends = np.cumsum(record_sizes(records) + _ROW_BYTES)
    first = 0
    while first < records.num_rows:
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + target_bytes))
        yield records.slice(first, last + 1 - first)
        first = last + 1


def _joined(slices: list[Any]) -> Any:
    (records,) = pa.Table.from_batches(slices).combine_chunks().to_batches()
    return records
