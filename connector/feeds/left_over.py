"""Images of updates whose other half may be in another task, on their way to the driver.

Small ones travel in the message. Large ones are staged as a file, in buckets by the hash of the
key, so that the driver holds one bucket at a time and its memory does not grow with the write.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from duolog.errors import DamagedPart
from duolog.log.routing.kinds import is_binary, is_string
from duolog.log.routing.murmur2 import murmur2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from duolog.log.staging import StagedFile, StagingPlace

BUCKETS = 32
ALL_BUCKETS = -1
MESSAGE_BYTES = 256 << 10  # more than this goes to a file, when there is a folder for it
AT_ONCE_BYTES = 64 << 20  # what the driver pairs in one go


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some images of one bucket, or of all."""

    bucket: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What one task could not pair. Either `body` or the staged file `name` holds the chunks."""

    with_old: tuple[int, ...]  # versions of which the task has seen an old image
    chunks: tuple[Chunk, ...]
    length: int
    crc32: int
    body: bytes | None = None
    name: str | None = None

    def message(self) -> bytes:
        body = None if self.body is None else b64encode(self.body).decode()
        chunks = [[chunk.bucket, chunk.start, chunk.length] for chunk in self.chunks]
        fields = [self.with_old, chunks, self.length, self.crc32, body, self.name]
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_message(cls, message: bytes) -> LeftOver:
        try:
            with_old, chunks, length, crc32, body, name = json.loads(message)
            return cls(
                tuple(with_old),
                tuple(Chunk(*chunk) for chunk in chunks),
                length,
                crc32,
                None if body is None else b64decode(body),
                name,
            )
        except (ValueError, TypeError) as error:
            raise DamagedPart(
                "A task's message of its left-over images is not readable. Run the write again, "
                "with the same Duolog in tasks and driver."
            ) from error

    def content(self, place: StagingPlace | None) -> memoryview:
        """All chunks; what is not as its task wrote it is refused."""
        content: Any = self.body
        if content is None and self.name is not None and place is not None:
            content = place.read(self.name)
        if content is None or len(content) != self.length or zlib.crc32(content) != self.crc32:
            raise DamagedPart(
                f"The staged images {'' if self.name is None else f'in {self.name} '}are not what "
                "their task wrote. Run the write again; if it comes back, check the staging "
                "folder's disk."
            )
        return memoryview(content)


class LeftOverWriter:
    """Collects what one task leaves over."""

    def __init__(self, place: StagingPlace | None, key_columns: tuple[str, ...]) -> None:
        self._place = place
        self._key_columns = key_columns
        self._pieces: list[bytes] = []
        self._chunks: list[Chunk] = []
        self._length = self._crc32 = 0
        self._file: StagedFile | None = None

    def add(self, images: pa.RecordBatch, *, last: bool) -> None:
        """Add images; the last ones stay in one chunk when all fits into the message."""
        if not images.num_rows:
            return
        if self._place is None or (last and not self._chunks and images.nbytes <= MESSAGE_BYTES):
            self._keep(ALL_BUCKETS, images)
            return
        bucket = bucket_of(images, self._key_columns)
        order = np.argsort(bucket, kind="stable")
        ordered = images.take(pa.array(order))
        numbers, starts = np.unique(bucket[order], return_index=True)
        ends = [*starts[1:].tolist(), len(bucket)]
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            self._keep(number, ordered.slice(start, end - start))
        self._spill()

    def finish(self, with_old: set[int]) -> LeftOver:
        return LeftOver(
            tuple(sorted(with_old)),
            tuple(self._chunks),
            self._length,
            self._crc32,
            b"".join(self._pieces) if self._file is None else None,
            None if self._file is None else self._file.finish(),
        )

    def abort(self) -> None:
        """Throw it away."""
        if self._file is not None:
            self._file.abort()

    def _keep(self, bucket: int, images: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, images.schema) as stream:
            stream.write_batch(images)
        written = sink.getvalue().to_pybytes()
        self._pieces.append(written)
        self._chunks.append(Chunk(bucket, self._length, len(written)))
        self._length += len(written)
        self._crc32 = zlib.crc32(written, self._crc32)

    def _spill(self) -> None:
        if self._place is None:
            return
        if self._file is None:
            self._file = self._place.begin()
        for piece in self._pieces:
            self._file.write(piece)
        self._pieces.clear()


def images_by_bucket(
    left_over: Sequence[LeftOver], key_columns: tuple[str, ...], place: StagingPlace | None
) -> Iterator[pa.RecordBatch]:
    """All images, those of one key in one batch."""
    if sum(each.length for each in left_over) <= AT_ONCE_BYTES:
        yield from _read(left_over, key_columns, place, ALL_BUCKETS)
        return
    for bucket in range(BUCKETS):
        yield from _read(left_over, key_columns, place, bucket)


def bucket_of(images: pa.RecordBatch, key_columns: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """The bucket of each row; the same in every task."""
    hashed = np.zeros(images.num_rows, np.uint32)
    for name in key_columns:
        hashed = hashed * np.uint32(31) + murmur2(_as_text(images.column(name))).view(np.uint32)
    return (hashed % np.uint32(BUCKETS)).astype(np.int32)


def _as_text(column: pa.Array) -> pa.Array:
    if is_string(column.type) or is_binary(column.type):
        return column
    if pa.types.is_timestamp(column.type):  # as text it would need a data base of time zones
        column = column.cast(pa.int64())
    return column.cast(pa.string())


def _read(
    left_over: Sequence[LeftOver],
    key_columns: tuple[str, ...],
    place: StagingPlace | None,
    wanted: int,
) -> Iterator[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    for each in left_over:
        chunks = [c for c in each.chunks if ALL_BUCKETS in (wanted, c.bucket) or c.bucket == wanted]
        content = each.content(place) if chunks else memoryview(b"")
        for chunk in chunks:
            view = content[chunk.start : chunk.start + chunk.length]
            images = pa.ipc.open_stream(pa.py_buffer(view)).read_next_batch()
            if wanted != ALL_BUCKETS and chunk.bucket == ALL_BUCKETS:
                images = images.take(
                    pa.array(np.flatnonzero(bucket_of(images, key_columns) == wanted))
                )
            found.append(images)
    if found:
        yield joined(found)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several of one schema."""
    if len(batches) == 1:
        return batches[0]
    columns = [
        pa.concat_arrays([batch.column(at) for batch in batches])
        for at in range(batches[0].num_columns)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
