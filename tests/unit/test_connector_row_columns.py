"""Columns as SQL writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from duolog.connector.row_columns import row_columns
from duolog.errors import InvalidSetting


def test_columns_of_every_kind() -> None:
    assert row_columns(
        "id BIGINT NOT NULL, n string, i int, s smallint, t tinyint, b boolean, f float, d double,"
        "x binary, day date, at timestamp, local timestamp_ntz, price decimal(10, 2), "
        "whole decimal, tags array<string>, by map<string, int>, "
        "`odd name` struct<a: int, b: string>"
    ) == pa.schema(
        [
            ("id", pa.int64()),
            ("n", pa.string()),
            ("i", pa.int32()),
            ("s", pa.int16()),
            ("t", pa.int8()),
            ("b", pa.bool_()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("x", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("local", pa.timestamp("us")),
            ("price", pa.decimal128(10, 2)),
            ("whole", pa.decimal128(10, 0)),
            ("tags", pa.list_(pa.string())),
            ("by", pa.map_(pa.string(), pa.int32())),
            ("odd name", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ]
    )


@pytest.mark.parametrize("text", ["id", "id NOSUCHTYPE", "id INTERVAL", ")", "1 2"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="Option 'rowColumns' is"):
        row_columns(text)
