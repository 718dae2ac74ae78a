"""Columns of JSON values: which there are, and what is in them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import Undecodable
from duolog.log.fetched import FETCHED_SCHEMA
from duolog.sql.select import json_values
from duolog.sql.select.json_kinds import arrow_type, columns_of, has_json_text
from duolog.sql.select.json_values import JsonValues
from duolog.sql.select.record_columns import Page

TEXT, BIGINT, DOUBLE = pa.string(), pa.int64(), pa.float64()

KINDS: list[tuple[list[Any], pa.DataType]] = [
    ([1, None], BIGINT),
    ([None], TEXT),
    ([True, False], pa.bool_()),
    ([1, 2.5], DOUBLE),
    ([2.5, 1], DOUBLE),
    ([2**63 - 1, -(2**63)], BIGINT),
    ([2**63], TEXT),  # as JSON: it fits no number of ours
    (["a"], TEXT),
    (["a", 1], TEXT),
    ([True, 1], TEXT),
    ([[1], [2.5], []], pa.list_(DOUBLE)),
    ([[]], pa.list_(TEXT)),
    ([[1], 1], TEXT),
    ([[1, "a"]], pa.list_(TEXT)),
    ([{"a": 1}, {"b": "x"}], pa.struct([("a", BIGINT), ("b", TEXT)])),
    ([{"a": 1}, {"a": [1]}], pa.struct([("a", TEXT)])),
    ([{}], TEXT),
    ([{"a": 1}, {}], TEXT),
    ([{"\ud800": 1}], TEXT),
    ([{str(number): 1 for number in range(1001)}], TEXT),  # a map, not an object
]


@pytest.mark.parametrize(("values", "expected"), KINDS, ids=[str(each)[:40] for each, _ in KINDS])
def test_the_type_of_a_column(values: list[Any], expected: pa.DataType) -> None:
    found = columns_of({"x": value} for value in values)
    assert arrow_type(found["x"]) == expected
    assert decoded([{"x": value} for value in values], values=[{"x": value} for value in values])


def test_what_lies_too_deep_is_text() -> None:
    deep: Any = 1
    for _ in range(20):
        deep = {"a": deep}
    found = decoded([{"x": deep}])["x"]
    (found,) = found
    for _ in range(8):
        found = found["a"]
    assert found == json.dumps(json.loads(found), separators=(",", ":"))


def page(values: list[bytes | None]) -> Page:
    count = len(values)
    columns = [
        pa.array(range(7, 7 + count), pa.int64()),
        pa.array([0] * count, pa.int64()),
        pa.nulls(count, pa.binary()),
        pa.array(values, pa.binary()),
        pa.nulls(count, FETCHED_SCHEMA.field("headers").type),
        pa.array([0] * count, pa.int8()),
        pa.nulls(count, pa.string()),
        pa.array([0] * count, pa.int8()),
    ]
    return Page("t", 3, 7, pa.Table.from_arrays(columns, schema=FETCHED_SCHEMA))


def as_bytes(values: list[Any]) -> list[bytes | None]:
    return [value if isinstance(value, bytes) else json.dumps(value).encode() for value in values]


def decoded(sample: list[Any], values: list[Any] | None = None) -> dict[str, list[Any]]:
    reader = JsonValues([pa.array(as_bytes(sample), pa.binary())])
    stored = as_bytes(sample if values is None else values)
    columns = reader.decode(page(stored), list(reader.types))
    assert {name: column.type for name, column in columns.items()} == reader.types
    return {name: column.to_pylist() for name, column in columns.items()}


def test_what_is_no_object_has_no_fields() -> None:
    values: list[bytes | None] = [
        *(b'{"a": 1}', None, b"", b"5", b"[1]", b'"x"', b"{", b'{"a": 2} {"a": 3}', b"\xff"),
        *(b'{"a": NaN}', b' {"b": 1}', b'\n{"a":\n4}'),
    ]
    reader = JsonValues([pa.array([b'{"a": 1}'], pa.binary())])
    found = reader.decode(page(values), ["a"])["a"].to_pylist()
    assert found == [1, *[None] * 10, 4]


@pytest.mark.parametrize(
    ("sample", "value", "path", "shown"),
    [
        ({"a": 1}, {"a": "x"}, "`a`", "a bigint"),
        ({"a": 1}, {"a": 1.5}, "`a`", "a bigint"),
        ({"a": "x"}, {"a": 1}, "`a`", "a text"),
        ({"a": "x"}, {"a": "\ud800"}, "`a`", "a text"),
        ({"a": True}, {"a": 1}, "`a`", "a boolean"),
        ({"a": 1.5}, {"a": True}, "`a`", "a double"),
        ({"a": [1]}, {"a": [1, "x"]}, "`a[1]`", "a bigint"),
        ({"a": {"b": 1}}, {"a": {"b": "x"}}, "`a.b`", "a bigint"),
        ({"a": {"b": 1}}, {"a": [1]}, "`a`", "an object"),
        ({"a": [1]}, {"a": 1}, "`a`", "a list"),
    ],
)
def test_a_value_that_does_not_fit_is_named(sample: Any, value: Any, path: str, shown: str) -> None:
    with pytest.raises(Undecodable) as raised:
        decoded([sample], [sample, value])
    assert str(raised.value).startswith(f"Offset 8 of topic 't' partition 3: {path} is ")
    assert f"it is {shown}." in str(raised.value)


def test_a_field_that_the_sample_has_not_is_no_column() -> None:
    assert decoded([{"a": 1}], [{"a": 2, "b": 3}]) == {"a": [2]}


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
fields = st.sampled_from("abc")
objects = st.dictionaries(
    fields,
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(fields, scalars, max_size=2),
    max_size=3,
)


@given(st.lists(st.none() | objects, max_size=5))
def test_arrow_reads_what_we_read(values: list[dict[str, Any] | None]) -> None:
    stored = [None if value is None else json.dumps(value).encode() for value in values]
    column = pa.array(stored, pa.binary())
    reader = JsonValues([column])
    fast = json_values._at_once(column, reader._kinds) if reader._kinds else None
    slow = json_values._one_by_one(page(stored), column, reader._kinds)
    if fast is not None:
        known = {
            name: slow[name] for name, kind in reader._kinds.items() if not has_json_text(kind)
        }
        assert {name: fast[name] for name in known} == known
    for name, cells in slow.items():
        for value, cell in zip(values, cells.to_pylist(), strict=True):
            if value is None or value.get(name) is None:
                assert cell is None
