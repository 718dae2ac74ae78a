"""Rows as Avro: what is refused, and by which words."""

from __future__ import annotations

import io
import json
import tracemalloc
from decimal import Context, Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from duolog.avro.encode.encoder import encoder_of
from duolog.avro.parse import parse_schema
from duolog.errors import DuologError, InvalidRows, InvalidSchema
from tests.unit.avro_encoding import (
    COLORS,
    DATE,
    LOCAL,
    MEMBERS,
    SHAPES,
    TIME,
    TIMES,
    decimal,
    encode,
    fixed,
    record,
)

# Types that do not go together


@pytest.mark.parametrize(
    ("kind", "schema", "words"),
    [
        (pa.int64(), "int", "Avro's int. Cast it to int32"),
        (pa.int32(), "float", "Cast it to float"),
        (pa.int64(), "double", "Cast it to double"),
        (pa.uint64(), "long", "Cast it to int64"),
        (pa.float64(), "float", "Cast it to float"),
        (pa.string(), "long", "Cast it to int64"),
        (pa.int32(), "string", "Cast it to string"),
        (pa.int32(), "null", "Cast it to null"),
        (pa.null(), "int", "Cast it to int32"),
        (pa.bool_(), "bytes", "Cast it to binary"),
        (pa.int64(), TIMES, "Cast it to timestamp[ms, tz=UTC]"),
        (pa.timestamp("ms"), TIMES, "Cast it to timestamp[ms, tz=UTC]"),
        (pa.timestamp("us", "UTC"), LOCAL, "Cast it to timestamp[us]"),
        (pa.timestamp("us", "UTC"), "long", "Cast it to int64"),
        (pa.date32(), TIMES, "Cast it to timestamp"),
        (pa.int32(), DATE, "Cast it to date32"),
        (pa.time64("ns"), {"type": "long", "logicalType": "time-micros"}, "Cast it to time64[us]"),
        (pa.duration("s"), "long", "Cast it to int64"),
        (pa.month_day_nano_interval(), "string", "Make it numbers or a string"),
        (pa.dense_union([pa.field("a", pa.int8())]), "int", "Make it a struct"),
        (pa.decimal128(5, -2), decimal(9, 0), "whose scale is not negative"),
        (pa.decimal128(9, 2), decimal(8, 2), "Cast it to decimal128(8, 2)"),
        (pa.decimal128(9, 2), decimal(9, 3), "Cast it to decimal128(9, 3)"),
        (pa.decimal128(9, 2), decimal(12, 1), "Cast it to decimal128(12, 1)"),
        (pa.decimal128(9, 2), "bytes", "Cast it to binary"),
        (pa.int64(), decimal(20, 0), "Cast it to decimal128(20, 0)"),
        (pa.binary(3), fixed(4), "Cast it to fixed_size_binary[4]"),
        (pa.string(), fixed(4), "Cast it to fixed_size_binary[4]"),
        (pa.int8(), COLORS, "enum 'Color'. Cast it to string"),
        (pa.list_(pa.int8()), {"type": "map", "values": "int"}, "Avro's map"),
        (pa.map_(pa.int8(), pa.int8()), {"type": "map", "values": "int"}, "Avro's map"),
        (pa.struct([("a", pa.int8())]), {"type": "array", "items": "int"}, "Avro's array"),
        (pa.int32(), ["string", "boolean"], "union of string, boolean. Make it a struct"),
        (pa.uuid(), "bytes", "Cast it to fixed_size_binary[16]"),
    ],
)
def test_what_loses_something_is_refused_with_what_to_do(
    kind: pa.DataType, schema: Any, words: str
) -> None:
    columns = pa.schema([pa.field("outer", pa.struct([pa.field("inner", kind)]))])
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "inner", "type": schema}]}
    with pytest.raises(InvalidRows) as refusal:
        encoder_of(columns, parse_schema(json.dumps(record(outer=inner))))
    assert f"Column 'outer.inner' is of type {kind}" in str(refusal.value)
    assert words in str(refusal.value)


def test_an_extension_type_is_refused_even_one_that_cannot_be_hashed() -> None:
    class Celsius(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.float64(), "test.celsius")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Celsius:
            return cls()

    columns = pa.schema([pa.field("t", Celsius())])
    with pytest.raises(InvalidRows, match=r"Column 't' .*Cast it to double"):
        encoder_of(columns, parse_schema(json.dumps(record(t="double"))))


@pytest.mark.parametrize(
    ("column", "schema", "path"),
    [
        (pa.list_(pa.string()), {"type": "array", "items": "int"}, "x[]"),
        (pa.map_(pa.string(), pa.string()), {"type": "map", "values": "int"}, "x[]"),
        (pa.dictionary(pa.int8(), pa.string()), "int", "x"),
    ],
)
def test_refusals_name_the_place(column: pa.DataType, schema: Any, path: str) -> None:
    with pytest.raises(InvalidRows) as refusal:
        encoder_of(pa.schema([("x", column)]), parse_schema(json.dumps(record(x=schema))))
    assert f"Column '{path}'" in str(refusal.value)


def test_a_column_that_the_schema_lacks_is_refused_for_it_would_be_lost() -> None:
    columns = pa.schema([("id", pa.int64()), ("größe", pa.int32())])
    with pytest.raises(
        InvalidRows, match=r"Column 'größe' is not in .* 'Row', so it would be lost"
    ):
        encoder_of(columns, parse_schema(json.dumps(record(id="long"))))


def test_a_field_without_column_and_default_is_refused() -> None:
    with pytest.raises(InvalidRows, match="field 'at' has no default"):
        encoder_of(
            pa.schema([("id", pa.int64())]), parse_schema(json.dumps(record(id="long", at="long")))
        )


def test_a_column_that_is_there_twice_is_refused() -> None:
    columns = pa.schema([("id", pa.int64()), ("id", pa.int64())])
    with pytest.raises(InvalidRows, match="Column 'id' is there twice"):
        encoder_of(columns, parse_schema(json.dumps(record(id="long"))))


def test_rows_are_written_as_records_only() -> None:
    with pytest.raises(InvalidSchema, match="as a record, but the schema is Avro's string"):
        encoder_of(pa.schema([("id", pa.int64())]), parse_schema('"string"'))


def test_rows_of_other_columns_are_refused() -> None:
    encoder = encoder_of(
        pa.schema([("id", pa.int64())]), parse_schema(json.dumps(record(id="long")))
    )
    with pytest.raises(InvalidRows, match="rows are of type struct<id: int32>"):
        encoder.encode(pa.StructArray.from_arrays([pa.array([1], pa.int32())], names=["id"]))
    other = pa.StructArray.from_arrays(
        [pa.array([1])], fields=[pa.field("id", pa.int64(), nullable=False)]
    )
    assert encoder.encode(other).to_pylist() == [b"\2"]


def test_columns_nested_too_deeply_are_refused() -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(200):
        kind = pa.list_(kind)
    items: Any = "long"
    for _ in range(60):
        items = {"type": "array", "items": items}
    with pytest.raises(DuologError):
        encoder_of(pa.schema([("deep", kind)]), parse_schema(json.dumps(record(deep=items))))


# Values that have no place


def bad_text(*parts: bytes) -> pa.Array:
    binary = pa.array(parts, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(parts), binary.buffers())


@pytest.mark.parametrize(
    ("schema", "values", "words"),
    [
        ("long", pa.array([1, None]), "Row 1, column 'x': it is null"),
        (
            {"type": "array", "items": "long"},
            pa.array([[1], [], [2, None]]),
            "Row 2, column 'x[]': it is null",
        ),
        (
            {"type": "map", "values": "long"},
            pa.array([[], [("a", None)]], pa.map_(pa.string(), pa.int64())),
            "Row 1, column 'x[]': it is null",
        ),
        (
            TIMES,
            pa.array([0, 10**17], pa.timestamp("s", "UTC")),
            "Row 1, column 'x': 100000000000000000 of type timestamp[s, tz=UTC] has no exact",
        ),
        (
            {"type": "long", "logicalType": "timestamp-nanos"},
            pa.array([0, 2**62], pa.timestamp("us", "UTC")),
            "Row 1, column 'x': 4611686018427387904",
        ),
        (
            TIMES,
            pa.array([1000, -1001], pa.timestamp("us", "UTC")),
            "Row 1, column 'x': -1001 of type timestamp[us, tz=UTC] has no exact place in long",
        ),
        (
            DATE,
            pa.array([0, 86_400_001], pa.date64()),
            "Row 1, column 'x': 86400001 of type date64",
        ),
        (
            DATE,
            pa.array([2**31 * 86_400_000], pa.date64()),
            "Row 0, column 'x': 185542587187200000",
        ),
        (TIME, pa.array([0, 86_400], pa.time32("s")), "Row 1, column 'x': 86400 of type time32[s]"),
        (TIME, pa.array([-1], pa.time32("ms")), "Row 0, column 'x': -1 of type time32[ms]"),
        (TIME, pa.array([1], pa.time64("us")), "Row 0, column 'x': 1 of type time64[us]"),
        (
            {"type": "long", "logicalType": "time-micros"},
            pa.array([86_400_000_000], pa.time64("us")),
            "Row 0, column 'x': 86400000000",
        ),
        (COLORS, pa.array(["RED", "GREEN"]), "Row 1, column 'x': 'GREEN' is no symbol"),
        (
            COLORS,
            pa.array(["RED", "BLUE", "RED", "Grün", "RED"]).dictionary_encode(),
            "Row 3, column 'x': 'Grün' is no symbol of the enum 'Color', which has RED, BLUE.",
        ),
        ("string", bad_text(b"ok", b"\xff"), "Row 1, column 'x': the bytes are not UTF-8"),
        ("string", pa.array([b"ok", b"\xed\xa0\x80"]), "Row 1, column 'x': the bytes are not"),
        ("string", pa.array([b"okay", b"\xc3\xa9\xc3("], pa.binary(4)), "Row 1, column 'x'"),
        (
            {"type": "array", "items": "string"},
            pa.ListArray.from_arrays([0, 1, 3], bad_text(b"a", "é".encode(), b"\x80")),
            "Row 1, column 'x[]': the bytes are not UTF-8",
        ),
        (fixed(2), pa.array([b"ab", b"abc"]), "Row 1, column 'x': 3 bytes, where the schema has"),
        (
            ["null", COLORS, SHAPES],
            pa.array(["RED", "CUBE", "GREEN"]),
            "Row 2, column 'x': 'GREEN' fits no type of the union",
        ),
        (
            ["string", "long"],
            pa.array([{"member0": "a"}, {"member0": "a", "member1": 1}]),
            "Row 1, column 'x': 2 members of the union have a value",
        ),
        (
            ["string", "long"],
            pa.array([("a", None), (None, None)], MEMBERS),
            "Row 1, column 'x': no member of the union has a value",
        ),
    ],
)
def test_a_value_without_a_place_is_named_with_its_row(
    schema: Any, values: pa.Array, words: str
) -> None:
    with pytest.raises(InvalidRows) as refusal:
        encode(record(x=schema), x=values)
    assert words in str(refusal.value)


def unchecked(kind: pa.DataType, *numbers: int) -> pa.Array:
    """Decimals with more digits than their type has, which Arrow lets through."""
    width = kind.bit_width // 8
    content = b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(content)])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (pa.decimal128(5, 2), decimal(5, 2)),
        (pa.decimal128(5, 2), decimal(9, 6)),
        (pa.decimal128(30, 2), decimal(30, 2)),
        (pa.decimal128(30, 2), decimal(60, 32)),
        (pa.decimal256(70, 2), decimal(70, 2)),
        (pa.decimal128(5, 2), {**decimal(5, 2), **fixed(3)}),
    ],
)
def test_a_decimal_of_too_many_digits_is_named(kind: pa.DataType, schema: Any, sign: int) -> None:
    most = 10**kind.precision - 1
    values = unchecked(kind, sign * most, sign * (most + 1))
    text = json.dumps(record(x=schema))
    rows = pa.StructArray.from_arrays([values], names=["x"])
    encoder = encoder_of(rows.type, parse_schema(text))
    (body,) = encoder.encode(rows.slice(0, 1)).to_pylist()
    parsed = fastavro.parse_schema(json.loads(text))
    back: Any = fastavro.schemaless_reader(io.BytesIO(body), parsed, None)
    assert back["x"] == Decimal(sign * most).scaleb(-2, Context(prec=100))
    with pytest.raises(InvalidRows, match=rf"Row 1, column 'x': {sign * (most + 1)} without"):
        encoder.encode(rows)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (TIMES, pa.array([10**17], pa.timestamp("s", "UTC"))),
        ("string", bad_text(b"\xff")),
        (COLORS, pa.array(["GREEN"])),
        (TIME, pa.array([-1], pa.time32("s"))),
        (decimal(5, 2), unchecked(pa.decimal128(5, 2), 10**30)),
        (fixed(2), pa.array([b"abc"])),
        ("long", pa.array([None], pa.int64())),
        (["null", COLORS, SHAPES], pa.array(["GREEN"])),
        (["string", "long"], pa.array([{"member0": "a", "member1": 1}])),
    ],
)
def test_what_lies_below_a_null_struct_has_no_meaning(schema: Any, values: pa.Array) -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": schema}]}
    outer = pa.StructArray.from_arrays([values], names=["x"], mask=pa.array([True]))
    assert encode(record(outer=["null", inner]), outer=outer) == [b"\0"]
    rows = pa.StructArray.from_arrays([values], names=["x"], mask=pa.array([True]))
    encoder = encoder_of(rows.type, parse_schema(json.dumps(record(x=schema))))
    assert encoder.encode(rows).to_pylist() == [None]


def test_words_that_no_row_uses_do_not_matter() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["RED", "GREEN", "BLUE"]))
    assert encode(record(x=COLORS), x=values) == [b"\2", b"\0"]


def test_rows_are_counted_through_all_steps() -> None:
    numbers = pa.array(np.arange(50_000), mask=np.arange(50_000) == 40_000)
    with pytest.raises(InvalidRows, match="Row 40000, column 'x': it is null"):
        encode(record(x="long"), x=numbers)


def test_bodies_of_more_than_2_gib_are_refused_before_memory_is_taken() -> None:
    text = pa.array(["x" * 1_000_000])
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), text)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRows, match=r"these 3000 rows .* 2 GiB.* fewer rows"):
            encode(record(x="string"), x=values)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
