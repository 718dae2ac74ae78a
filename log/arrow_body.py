"""The body of a batch that a task has encoded: one Arrow message, checked before it is unpacked.

Whoever encodes makes the checksum too, so a right one proves nothing. First all that the message
declares is compared with what a batch of ours has, and with how much memory it may take; only then
Arrow unpacks it, and `validate(full=True)` looks at every offset, bitmap and text of the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from duolog.log.arrow_metadata import (
    LZ4_FRAME,
    RECORDS,
    VERSION_5,
    Compression,
    Message,
    WrongBatch,
    read_message,
    read_records,
    unpacked_bytes,
)

_PACKED: Final = Compression(LZ4_FRAME, 0)
# Without Arrow's thread pool: on batches of this size, handing each buffer over and waiting for it
# takes longer than the packing itself (measured: 277 us against 175 to decode, worse when busy).
_UNTHREADED: Final = pa.ipc.IpcReadOptions(use_threads=False)


class ArrowBody:
    """Reads the messages of one schema, which they are stored without."""

    def __init__(self, schema: Any, schema_message: bytes) -> None:
        self._schema_message = schema_message
        self._rows, self._items = _nodes_of(schema)
        self._without_nulls = _without_nulls(schema)
        self._nodes = len(self._rows) + len(self._items)
        self._buffers = sum(_buffers_within(field.type) for field in schema)

    def check(self, content: memoryview, count: int, most_bytes: int) -> int:
        """Compare what a message declares with its batch; how large its buffers become."""
        message = read_message(content)
        if message.end != len(content):
            raise WrongBatch(f"{len(content) - message.end} bytes follow its message")
        if message.kind != RECORDS or message.version != VERSION_5 or message.content is None:
            raise WrongBatch("its message is not one of records")
        if message.has_custom_metadata:
            raise WrongBatch("its message has metadata of its own")
        return self._check_records(message, count, most_bytes)

    def _check_records(self, message: Message, count: int, most_bytes: int) -> int:
        assert message.content is not None  # noqa: S101 - for mypy; `check` has looked
        records = read_records(message.content)
        if records.compression != _PACKED or records.has_variadic_buffers:
            raise WrongBatch("its message is packed in a way that is not known")
        if records.length != count:
            raise WrongBatch(f"its header names {count} records, its message {records.length}")
        lengths, nulls = records.nodes[::2], records.nodes[1::2]
        if len(lengths) != self._nodes or len(records.buffers) != 2 * self._buffers:
            raise WrongBatch("its message has other columns")
        if any(lengths[nth] != count for nth in self._rows):
            raise WrongBatch("its columns have other lengths than it has records")
        if len({lengths[nth] for nth in self._items}) != 1:
            raise WrongBatch("the columns of its headers differ in length")
        # Each item has an offset of four bytes at least, so this bounds them too.
        if any(not 0 <= 4 * length <= most_bytes for length in lengths):
            raise WrongBatch("one of its columns claims more than fits")
        if not all(0 <= missing <= length for missing, length in zip(nulls, lengths, strict=True)):
            raise WrongBatch("one of its columns claims more nulls than values")
        if any(nulls[nth] for nth in self._without_nulls):
            raise WrongBatch("one of its records lacks its time, operation or payload")
        return unpacked_bytes(records, message.body, most_bytes)

    def read(self, content: memoryview, count: int, most_bytes: int) -> Any:
        """The records of a message, a pa.RecordBatch. WrongBatch when anything is not right."""
        self.check(content, count, most_bytes)
        try:
            records = self.read_checked(content)
            records.validate(full=True)
        except pa.ArrowMemoryError:  # of this machine: the batch may be right
            raise
        except (pa.ArrowException, OSError, StopIteration) as error:
            raise WrongBatch(f"Arrow does not take it ({error})") from None
        return records

    def read_checked(self, content: memoryview) -> Any:
        """The records of a message that `read` has taken before. Of another one, anything."""
        buffer = pa.py_buffer(b"".join((self._schema_message, content)))
        with pa.ipc.open_stream(buffer, options=_UNTHREADED) as stream:
            return stream.read_next_batch()


def _nodes_of(schema: Any) -> tuple[list[int], list[int]]:
    """Which nodes have a value for each record, and which one for each header."""
    rows: list[int] = []
    items: list[int] = []
    at = 0
    for field in schema:
        rows.append(at)
        inside = _nodes_within(field.type) - 1
        items += range(at + 1, at + 1 + inside)
        at += 1 + inside
    return rows, items


def _without_nulls(schema: Any) -> list[int]:
    rows, _ = _nodes_of(schema)
    return [at for at, field in zip(rows, schema, strict=True) if not field.nullable]


def _nodes_within(kind: Any) -> int:
    return 1 + sum(_nodes_within(inside) for inside in _inside(kind))


def _buffers_within(kind: Any) -> int:
    return int(kind.num_buffers) + sum(_buffers_within(inside) for inside in _inside(kind))


def _inside(kind: Any) -> Iterable[Any]:
    return [kind.field(nth).type for nth in range(kind.num_fields)]
