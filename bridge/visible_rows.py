"""Which records a caller may have whose token names a condition (`--where "customer = 7"`).

The condition is about the fields of a record's value, by their exact names, and about `op`. A field
that a value lacks is NULL. A record is given only if the condition is true for it: not if it is
NULL, if the value is none or cannot be decoded, or if the condition cannot be calculated with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

import numpy as np
import pyarrow as pa

from duolog.errors import DuologError, ForbiddenTopic, InvalidRows
from duolog.log.fetched import FetchedBatch
from duolog.log.model import Filter, Format, Op, Topic
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.filter.tree import Column, columns

if TYPE_CHECKING:
    import numpy.typing as npt

    from duolog.avro.reading import ValueReader

    Mask = npt.NDArray[np.bool_]
    Rows = npt.NDArray[np.int64]

_OPS: Final = np.array([op.word for op in Op], dtype=object)
_NOT_CALCULATED: Final = (InvalidRows, pa.ArrowException, OverflowError, ValueError)


class _Fields(Protocol):
    """Reads fields of values: groups of rows whose fields have one type each."""

    def groups(self, records: Any) -> Iterator[tuple[Rows, dict[str, pa.Array]]]: ...


def check_rows_can_be_told(topic: Topic, where: Filter, name: str) -> None:
    """Refuse a topic whose values have no fields that a condition could be about."""
    if topic.settings.value_format is Format.RAW:
        raise ForbiddenTopic(
            f"The token '{name}' is limited to records where {where.text}, and the values of topic "
            f"'{topic.name}' are raw bytes, which have no fields. Only topics in JSON or Avro can "
            "be read with it."
        )


class VisibleRows:
    """Tells the records of one topic apart."""

    def __init__(self, where: Filter, topic: Topic, reader: Callable[[], ValueReader]) -> None:
        self._where = where
        needed = _needed(each.path for each in columns(where.tree) if _is_of_value(each))
        self._names = tuple(sorted(needed))
        is_avro = topic.settings.value_format is Format.AVRO
        self._fields: _Fields = (
            _AvroFields(self._names, reader) if is_avro else _JsonFields(self._names, needed)
        )

    def of(self, batch: FetchedBatch) -> list[FetchedBatch]:
        """The records that may be given, as batches of neighbours."""
        mask = self._mask(batch.records)
        # A copy of them: what is sent of a slice may hold its neighbours' bytes too.
        visible = batch.records.filter(pa.array(mask))
        edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
        runs: list[FetchedBatch] = []
        at = 0
        for first, end in edges.reshape(-1, 2).tolist():
            runs.append(FetchedBatch(batch.base_offset + first, visible.slice(at, end - first)))
            at += end - first
        return runs

    def _mask(self, records: Any) -> Mask:
        mask = np.zeros(records.num_rows, np.bool_)
        ops = pa.array(_OPS[records.column("op").to_numpy()], pa.string())
        for rows, fields in self._fields.groups(records):
            self._judge(rows, fields, ops, mask)
        return mask

    def _judge(self, rows: Rows, fields: dict[str, pa.Array], ops: pa.Array, mask: Mask) -> None:
        """Where a condition cannot be calculated with all rows, with halves of them."""
        count = len(rows)
        given = [fields.get(name, pa.nulls(count)) for name in self._names]
        row = pa.RecordBatch.from_arrays([*given, pa.nulls(count)], [*self._names, ""])
        try:
            passed = evaluate(self._where.tree, row, before=None, op=ops.take(pa.array(rows)))
        except _NOT_CALCULATED:
            if count == 1 or self._never_with_types_of(row):
                return
            half = count // 2
            for part in (slice(0, half), slice(half, count)):
                cut = {name: column[part] for name, column in fields.items()}
                self._judge(rows[part], cut, ops, mask)
            return
        mask[rows] = passed.to_numpy(zero_copy_only=False)

    def _never_with_types_of(self, row: pa.RecordBatch) -> bool:
        """Whether the condition cannot be calculated with any values of these types."""
        try:
            evaluate(self._where.tree, row.slice(0, 0), before=None, op=pa.nulls(0, pa.string()))
        except _NOT_CALCULATED:
            return True
        return False


_Needed = dict[str, "_Needed"]
"""Names of fields, and what is needed of each, where it is an object."""


def _needed(paths: Iterable[tuple[str, ...]]) -> _Needed:
    found: _Needed = {}
    for path in paths:
        inside = found
        for name in path:
            inside = inside.setdefault(name, {})
    return found


def _is_of_value(column: Column) -> bool:
    return column.side == "row"


class _JsonFields:
    def __init__(self, names: Sequence[str], needed: _Needed) -> None:
        self._names = names
        self._needed = needed

    def groups(self, records: Any) -> Iterator[tuple[Rows, dict[str, pa.Array]]]:
        """A field is of one type in a group: JSON has a type for each value."""
        alike: dict[tuple[type, ...], tuple[list[int], list[list[Any]]]] = {}
        for row, value in enumerate(records.column("value").to_pylist()):
            found = _object(value)
            if found is None:
                continue
            # Objects with other names each would make a column of all these names together.
            fields = [_only(found.get(name), self._needed[name]) for name in self._names]
            rows, cells = alike.setdefault(tuple(map(type, fields)), ([], []))
            rows.append(row)
            cells.append(fields)
        for rows, cells in alike.values():
            yield from self._typed(np.array(rows), cells)

    def _typed(
        self, rows: Rows, cells: list[list[Any]]
    ) -> Iterator[tuple[Rows, dict[str, pa.Array]]]:
        try:
            made = [pa.array(column) for column in zip(*cells, strict=True)]
        except _NOT_CALCULATED:
            if len(rows) > 1:
                half = len(rows) // 2
                yield from self._typed(rows[:half], cells[:half])
                yield from self._typed(rows[half:], cells[half:])
            return
        yield rows, dict(zip(self._names, made, strict=True))


class _AvroFields:
    def __init__(self, names: Sequence[str], reader: Callable[[], ValueReader]) -> None:
        self._names = names
        self._reader = reader

    def groups(self, records: Any) -> Iterator[tuple[Rows, dict[str, pa.Array]]]:
        values, headers = (records.column(name) for name in ("value", "headers"))
        yield from self._decoded(np.arange(records.num_rows), values, headers)

    def _decoded(
        self, rows: Rows, values: pa.Array, headers: pa.Array
    ) -> Iterator[tuple[Rows, dict[str, pa.Array]]]:
        try:
            groups = self._reader().decode(values, headers)
        except DuologError:  # one value that cannot be decoded is not given; others are
            if len(rows) > 1:
                half = len(rows) // 2
                for part in (slice(0, half), slice(half, len(rows))):
                    yield from self._decoded(rows[part], values[part], headers[part])
            return
        for group in groups:
            kind = group.values.type
            if pa.types.is_struct(kind):
                batch = pa.RecordBatch.from_struct_array(group.values)
                held = {name: batch.column(name) for name in self._names
                        if kind.get_field_index(name) >= 0}  # fmt: skip
                yield rows[group.rows], held


def _only(value: Any, needed: _Needed) -> Any:
    """A value with the fields that are needed of it. Of a list, only that it is one."""
    if isinstance(value, dict):
        return {
            name: _only(value[name], inside) for name, inside in needed.items() if name in value
        }
    return [] if isinstance(value, list) else value


def _object(value: bytes | None) -> dict[str, Any] | None:
    """The JSON object that a value is, if it is one, and names no field twice."""
    if not value:
        return None
    try:
        found = _STRICT.decode(value.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice: another reader may take the other value")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once)
