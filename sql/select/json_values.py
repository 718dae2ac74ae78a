"""Columns of the fields of JSON values. What is no object has none of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from duolog.sql.select.json_kinds import (
    ListOf,
    Misfit,
    Object,
    arrow_type,
    columns_of,
    fitted,
    has_json_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duolog.sql.select.json_kinds import Kind
    from duolog.sql.select.record_columns import Page

_SHOWN = 60


class JsonValues:
    """Decodes the values of one topic. Its columns come from a sample of them."""

    def __init__(self, sample: Iterable[pa.BinaryArray]) -> None:
        objects = (_object(each) for values in sample for each in values.to_pylist())
        self._kinds = columns_of(each for each in objects if each is not None)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The columns, by the names of the fields."""
        return {name: arrow_type(kind) for name, kind in self._kinds.items()}

    def decode(self, page: Page, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some of the columns."""
        values = page.records.column("value").combine_chunks()
        kinds = {name: self._kinds[name] for name in names}
        if not any(has_json_text(kind) for kind in kinds.values()):
            columns = _at_once(values, kinds)
            if columns is not None:
                return columns
        return _one_by_one(page, values, kinds)


def _at_once(values: pa.BinaryArray, kinds: dict[str, Kind]) -> dict[str, pa.Array] | None:
    """By Arrow's own reader, ten times as fast; None where it does not understand all of it."""
    objects = values.drop_null()
    if not len(objects) or not pc.all(pc.starts_with(objects, b"{")).as_py():
        return None
    texts = b"\n".join(objects.to_pylist())
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in kinds.items()])
    try:
        found = pa.json.read_json(
            pa.BufferReader(texts),
            pa.json.ReadOptions(use_threads=False, block_size=len(texts) + 1),
            pa.json.ParseOptions(
                explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid:
        return None
    if found.num_rows != len(objects):  # some value is none, or several
        return None
    columns = {name: found.column(name).combine_chunks() for name in kinds}
    if not values.null_count:
        return columns
    present = values.is_valid().to_numpy(zero_copy_only=False)
    place = pa.array(np.cumsum(present) - 1, mask=~present)
    return {name: column.take(place) for name, column in columns.items()}


def _one_by_one(page: Page, values: pa.BinaryArray, kinds: dict[str, Kind]) -> dict[str, pa.Array]:
    """Where a kind is found that Arrow's reader has not, or a mistake has to be named."""
    cells: dict[str, list[Any]] = {name: [] for name in kinds}
    for row, value in enumerate(values.to_pylist()):
        found = _object(value) or {}
        try:
            for name, kind in kinds.items():
                cells[name].append(fitted(found.get(name), kind, name))
        except Misfit as misfit:
            raise page.undecodable(row, _told(misfit)) from None
    return {name: pa.array(cells[name], arrow_type(kind)) for name, kind in kinds.items()}


def _told(misfit: Misfit) -> str:
    text = json.dumps(misfit.value)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return (
        f"`{misfit.path}` is {shown}, while in the topic's first and last records it is "
        f"{_word(misfit.kind)}. Read `value` instead of this column, or leave this offset out."
    )


def _word(kind: Kind) -> str:
    match kind:
        case ListOf():
            return "a list"
        case Object():
            return "an object"
    return f"a {kind.word}"


def _object(value: bytes | None) -> dict[str, Any] | None:
    """The JSON object that a value is, if it is one."""
    if not value or not value.lstrip().startswith(b"{"):
        return None
    try:
        text = value.decode()
        found: dict[str, Any] = _STRICT.decode(text)
    except (ValueError, RecursionError):
        return None
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
