"""What SQL answers, as text for people and as JSON for programs."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

_NULL = "NULL"


def rows_of(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """The rows as Python values."""
    columns = [_values(column) for column in batch.columns]
    for row in range(batch.num_rows):
        yield [column[row] for column in columns]


def _values(column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):  # a time that no calendar of Python's has
        return [_value(each) for each in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return f"@{scalar.value}" if hasattr(scalar, "value") else str(scalar)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column's cells are aligned at the right."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def shown(value: Any) -> str:
    """A cell for people. Control characters are escaped, or they would move the cursor."""
    match value:
        case None:
            return _NULL
        case bool():
            return "true" if value else "false"
        case str():
            return _printable(value)
        case bytes():
            return _printable(_text_of(value) or f"0x{value.hex()}")
        case datetime():
            return _moment(value).replace("T", " ")
        case dict() | list():
            return _printable(json.dumps(plain(value), ensure_ascii=False))
    return str(value)


def fields(names: tuple[str, ...], row: list[Any]) -> dict[str, Any]:
    """A row as a JSON object. Bytes that are no text are base64, and then <name>_encoding says so.

    Times are ISO 8601, decimals text.
    """
    return _object(zip(names, row, strict=True))


def _object(items: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        found[name] = plain(value)
        if isinstance(value, bytes) and _text_of(value) is None:
            found[f"{name}_encoding"] = "base64"
    return found


def plain(value: Any) -> Any:
    """The value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            text = _text_of(value)
            return base64.b64encode(value).decode() if text is None else text
        case datetime():
            return _moment(value)
        case dict():
            return _object(value.items())
        case list() | tuple():
            return [plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _moment(moment: datetime) -> str:
    text = moment.isoformat(timespec="auto" if moment.microsecond % 1000 else "milliseconds")
    return text.replace("+00:00", "Z") if moment.tzinfo is not None else text


def _text_of(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
