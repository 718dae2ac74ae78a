"""Rows as JSON for people who look for what was wrong with them. Never refuses one.

As the format json writes them, but for values that it has no form for: these are written as text.
Runs in Spark tasks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.errors import DuologError
from duolog.log.model import Op
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.json_codec import JsonCodec

if TYPE_CHECKING:
    from duolog.log.routing.changes import Changes

_NO_FORM = (DuologError, pa.ArrowException, ValueError, OverflowError, TypeError)
_SUBJECT = Subject("", "", Part.VALUE)
_CUT = "…"


def rows_as_json(rows: pa.RecordBatch) -> list[bytes]:
    """Each row as a JSON object."""
    try:
        return _encoded(rows)
    except _NO_FORM:
        return [_one_as_json(rows.slice(at, 1)) for at in range(rows.num_rows)]


def cut_to_size(text: bytes, limit_bytes: int) -> bytes:
    """A JSON object whose longest values are cut, as text, until all of it fits."""
    if len(text) <= limit_bytes:
        return text
    members = json.loads(text)
    room = limit_bytes // max(1, len(members)) // 2
    while True:
        short = json.dumps(
            {name[: max(8, room)]: _cut(value, room) for name, value in members.items()},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        if len(short) <= limit_bytes or not room:
            return short if len(short) <= limit_bytes else b"{}"
        room //= 2


def change_rows(changes: Changes) -> pa.RecordBatch:
    """Changes as rows with `op`, `before` and `after`, null where they are without meaning."""
    op, known = changes.op.to_numpy(), changes.known()
    words = pa.array([each.word for each in Op]).take(pa.array(op))
    gone = known & (op == Op.DELETE)
    before = pa.nulls(len(changes), pa.struct(list(changes.schema)))
    if changes.before is not None:
        before = _image(changes.before, ~known)
    return pa.RecordBatch.from_arrays(
        [words, before, _image(changes.after, gone)], names=["op", "before", "after"]
    )


def _image(rows: pa.RecordBatch, missing: Any) -> pa.StructArray:
    fields = [field.with_nullable(True) for field in rows.schema]
    return pa.StructArray.from_arrays(rows.columns, fields=fields, mask=pa.array(missing))


def _encoded(rows: pa.RecordBatch) -> list[bytes]:
    fields = [field.with_nullable(True) for field in rows.schema]
    encoder = JsonCodec().prepare(pa.schema(fields), _SUBJECT)
    texts: list[bytes] = encoder.encode(
        pa.StructArray.from_arrays(rows.columns, fields=fields)
    ).to_pylist()
    return texts


def _one_as_json(row: pa.RecordBatch) -> bytes:
    members = [
        json.dumps(name, ensure_ascii=False).encode() + b":" + _value(row.column(at), name)
        for at, name in enumerate(row.schema.names)
    ]
    return b"{" + b",".join(members) + b"}"


def _value(column: pa.Array, name: str) -> bytes:
    """The only value of a column."""
    try:
        (text,) = _encoded(pa.RecordBatch.from_arrays([column], names=[name]))
        return text[len(json.dumps(name, ensure_ascii=False).encode()) + 2 : -1]
    except _NO_FORM:
        return json.dumps(_as_text(column), ensure_ascii=False).encode()


def _as_text(column: pa.Array) -> str | None:
    try:
        value = column[0].as_py()
    except _NO_FORM:  # a time that Python has no form for either
        return str(column.view(pa.int64())[0]) if pa.types.is_temporal(column.type) else "?"
    return None if value is None else str(value)


def _cut(value: Any, room: int) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text.encode()) <= room else text[:room] + _CUT
