"""Columns as SQL writes them, `id BIGINT, note STRING`, for rows whose frame does not tell.

Spark's own parser is in the JVM, which the process that plans a data source's write cannot reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from sqlglot import exp

_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}


def row_columns(text: str) -> pa.Schema:
    """The columns. Raises InvalidSetting where they are not understood."""
    import sqlglot
    from sqlglot import exp

    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except sqlglot.errors.ParseError as error:
        raise _not_understood(text, str(error).split(".")[0]) from None
    columns = statement.find(exp.Schema)
    if columns is None or not all(
        isinstance(column, exp.ColumnDef) and column.kind is not None
        for column in columns.expressions
    ):
        raise _not_understood(text, "not every column has a name and a type")
    return pa.schema([(column.name, _arrow(column.kind, text)) for column in columns.expressions])


def _arrow(kind: exp.DataType, text: str) -> pa.DataType:
    name = kind.this.name
    if name in _PLAIN:
        return _PLAIN[name]
    inner = kind.expressions
    if name == "DECIMAL":
        digits = [int(parameter.this.this) for parameter in inner] or [10]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if name == "ARRAY" and len(inner) == 1:
        return pa.list_(_arrow(inner[0], text))
    if name == "MAP" and len(inner) == 2:
        return pa.map_(_arrow(inner[0], text), _arrow(inner[1], text))
    if name == "STRUCT" and inner:
        return pa.struct([(column.name, _arrow(column.kind, text)) for column in inner])
    raise _not_understood(text, f"the type {kind.sql('spark')} is not known here")


def _not_understood(text: str, why: str) -> InvalidSetting:
    return InvalidSetting(
        f"Option 'rowColumns' is '{text}': {why}. Write columns as SQL does, as in 'id BIGINT, "
        "note STRING, price DECIMAL(10, 2)'."
    )
