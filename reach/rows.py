"""Rows of a table on the wire: one Arrow IPC stream for each image, not packed.

What comes in is a stranger's until it was checked: Arrow would unpack a few kilobytes to gigabytes,
and dictionaries, views and columns of nothing name more than they carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.arrow_metadata import (
    DICTIONARY,
    RECORDS,
    SCHEMA,
    WrongBatch,
    read_messages,
    read_records,
    unpacked_bytes,
)
from duolog.log.routing.given_rows import GivenRows
from duolog.log.routing.kinds import is_list_like, is_string, without_view

MAX_ROWS_BYTES: Final = 256 << 20
"""Of the rows of one call, each value counted as often as it is named."""

_ROW_BYTES: Final = 64  # what a row costs, whatever it holds

_BEFORE = "before"  # one column of whole rows, null where the row before is not known


def rows_to_bytes(batch: pa.RecordBatch) -> bytes:
    """Rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_before_to_bytes(given: GivenRows) -> bytes | None:
    """The rows before, if any are given, as bytes."""
    before = given.before_as_structs()
    return None if before is None else rows_to_bytes(pa.record_batch([before], names=[_BEFORE]))


def rows_from_bytes(table: str, content: Any) -> pa.RecordBatch:
    """The rows that such bytes hold, whoever sent them."""
    try:
        _check_messages(memoryview(content))
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            batch = stream.read_next_batch()
            batch.validate(full=True)
            _read_names(batch.schema)
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, StopIteration, TypeError, OSError, ValueError) as error:
        raise InvalidRows(
            f"The rows for table '{table}' came damaged: {error}. Send them again."
        ) from None
    size = _ROW_BYTES * batch.num_rows + sum(map(_named_bytes, batch.columns))
    if size > MAX_ROWS_BYTES:
        raise InvalidRows(
            f"{batch.num_rows} rows for table '{table}' take {size} bytes, more than the "
            f"{MAX_ROWS_BYTES} that are taken at once. Send fewer rows at a time."
        )
    return batch


def rows_before_from_bytes(table: str, content: Any) -> pa.StructArray | None:
    """The rows before that such bytes hold."""
    if content is None:
        return None
    batch = rows_from_bytes(table, content)
    if batch.schema.names != [_BEFORE] or not pa.types.is_struct(batch.schema.field(0).type):
        raise InvalidRows(
            f"The rows before those of table '{table}' came as {batch.schema}. Use the same Duolog "
            "on both sides."
        )
    return batch.column(0)


def _check_messages(content: memoryview) -> None:
    """WrongBatch for messages that are none of ours, before Arrow unpacks anything."""
    kinds = []
    for message in read_messages(content):
        kinds.append(message.kind)
        if message.kind == SCHEMA or message.content is None:
            continue
        of_dictionary = message.kind == DICTIONARY
        declared = message.content.table(1) if of_dictionary else message.content
        if declared is None or message.kind not in (DICTIONARY, RECORDS):
            raise WrongBatch("it has a message that is not of rows")
        records = read_records(declared)
        if records.compression is not None:
            raise WrongBatch("it is packed, and rows are sent as they are")
        unpacked_bytes(records, message.body, len(message.body))
    if kinds[:1] != [SCHEMA] or kinds[-1:] != [RECORDS] or kinds.count(RECORDS) != 1:
        raise WrongBatch("it is not a schema and one batch of rows")


def _read_names(fields: Iterable[Any]) -> None:
    """UnicodeDecodeError for a name that is no text; Arrow has not looked at them."""
    for field in fields:
        str(field.name)
        _read_names(field.type.field(nth) for nth in range(field.type.num_fields))


def _named_bytes(column: Any) -> int:
    """What the values of a column take when each is written out; one byte each at least."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _named_bytes(column.storage)
    if pa.types.is_dictionary(kind):
        return max(len(column), _named_by_dictionary(column))
    if _is_view(kind):
        return max(len(column), int(_view_lengths(column).sum()))
    if kind.num_fields == 0 and not pa.types.is_struct(kind):
        return int(max(len(column), column.nbytes))
    return len(column) + sum(map(_named_bytes, _inside(column)))


def _inside(column: Any) -> Sequence[Any]:
    kind = column.type
    if pa.types.is_struct(kind):
        return [column.field(nth) for nth in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return column.keys, column.items
    if is_list_like(kind):
        return (column.values,)
    raise _not_sent(kind)


def _named_by_dictionary(column: Any) -> int:
    values = column.dictionary
    if values.type.num_fields or isinstance(values.type, pa.BaseExtensionType):
        raise _not_sent(column.type)
    named = column.indices.drop_null().to_numpy()
    if not len(named):
        return 0
    if _is_view(values.type):
        lengths = _view_lengths(values)
    elif is_string(values.type) or values.type in (pa.binary(), pa.large_binary()):
        is_large = values.type in (pa.large_string(), pa.large_binary())
        offsets = np.frombuffer(values.buffers()[1], np.int64 if is_large else np.int32)
        lengths = np.diff(offsets[values.offset :][: len(values) + 1]).astype(np.int64)
    else:
        return int(len(named) * -(-values.nbytes // len(values)))
    return int(lengths[named].sum())


def _not_sent(kind: Any) -> InvalidRows:
    return InvalidRows(f"Columns of {kind} are not sent to a host. Cast them to plain ones.")


def _is_view(kind: Any) -> bool:
    return not isinstance(kind, pa.BaseExtensionType) and without_view(kind) != kind


def _view_lengths(column: Any) -> Any:
    """Each view is 16 bytes, and begins with how many it shows."""
    views = np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :]
    return views[::4][: len(column)].astype(np.int64)
