"""What SQL answers, as values that JSON has."""

from __future__ import annotations

import base64
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def fields(names: tuple[str, ...], row: list[Any]) -> dict[str, Any]:
    """A row as a JSON object. Bytes that are no text are base64, and then <name>_encoding says so.

    Times are ISO 8601, decimals text.
    """
    return _object(zip(names, row, strict=True))


def cell(value: Any) -> Any:
    """A value that stands alone, where a name has no room: bytes that are no text are an object."""
    if isinstance(value, bytes) and text_of(value) is None:
        return {"base64": base64.b64encode(value).decode()}
    return plain(value)


def _object(items: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        found[name] = plain(value)
        if isinstance(value, bytes) and text_of(value) is None:
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
            text = text_of(value)
            return base64.b64encode(value).decode() if text is None else text
        case datetime():
            return moment_of(value)
        case dict():
            return _object(value.items())
        case list() | tuple():
            return [plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def moment_of(moment: datetime) -> str:
    """A time as ISO 8601 has it."""
    text = moment.isoformat(timespec="auto" if moment.microsecond % 1000 else "milliseconds")
    return text.replace("+00:00", "Z") if moment.tzinfo is not None else text


def text_of(content: bytes) -> str | None:
    """The text that these bytes are, if they are one."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
