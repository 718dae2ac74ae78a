"""What SQL answers, as text for people."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa

from duolog.printable import one_line, printable_json
from duolog.sql.cells import moment_of, plain, text_of

_NULL = "NULL"


def is_number(kind: pa.DataType) -> bool:
    """Whether a column's cells are aligned at the right."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def shown(value: Any) -> str:
    """A cell for people. It is as wide as it will be in a table."""
    match value:
        case None:
            return _NULL
        case bool():
            return "true" if value else "false"
        case str():
            return one_line(value)
        case bytes():
            return one_line(text_of(value) or f"0x{value.hex()}")
        case datetime():
            return moment_of(value).replace("T", " ")
        case dict() | list():
            return printable_json(json.dumps(plain(value), ensure_ascii=False))
    return str(value)
