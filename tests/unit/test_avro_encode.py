"""Rows as Avro: what is refused, by which words, and what only some schemas ask for."""

from __future__ import annotations

import io
import json
import logging
import pickle
import subprocess
import sys
import tracemalloc
from decimal import Context, Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from bench.avro_encode import peak_bytes, tables_of
from duolog.avro.encode import by_value
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
from duolog.avro.parse import parse_schema
from duolog.errors import DuologError, InvalidRows, InvalidSchema

TIMES = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "int", "logicalType": "time-millis"}
COLORS = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
MEMBERS = pa.struct([("member0", pa.string()), ("member1", pa.int64())])
SHAPES = {"type": "enum", "name": "Shape", "symbols": ["DISC", "CUBE"]}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def fixed(size: int, name: str = "Bytes") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def record(**fields: Any) -> dict[str, Any]:
    members = [
        kind if isinstance(kind, dict) and "default" in kind else {"type": kind}
        for kind in fields.values()
    ]
    named = [{"name": name, **member} for name, member in zip(fields, members, strict=True)]
    return {"type": "record", "name": "Row", "fields": named}


def with_default(kind: Any, default: Any) -> dict[str, Any]:
    return {"type": kind, "default": default}


def encode(schema: dict[str, Any], **columns: pa.Array) -> list[bytes | None]:
    rows = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    encoder = encoder_of(rows.type, parse_schema(json.dumps(schema)))
    bodies: list[bytes | None] = encoder.encode(rows).to_pylist()
    return bodies


def written(schema: dict[str, Any], *rows: dict[str, Any]) -> list[bytes | None]:
    """The bodies that fastavro writes."""
    parsed = fastavro.parse_schema(schema)
    bodies: list[bytes | None] = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, row)
        bodies.append(stream.getvalue())
    return bodies


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


# What only some schemas ask for


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        ("int", -1, b"\1"),
        ("float", 1, b"\0\0\x80?"),
        ("double", "NaN", b"\0\0\0\0\0\0\xf8\x7f"),
        ("bytes", "\u00ff\0", b"\4\xff\0"),
        (fixed(3), "\u00e9ab", b"\xe9ab"),
        (COLORS, "BLUE", b"\2"),
        (["null", "string"], None, b"\0"),
        (["null", "string"], "x", b"\2\2x"),
        ({"type": "array", "items": ["null", "long"]}, [None, 1], b"\4\0\2\2\0"),
        ({"type": "map", "values": "bytes"}, {"k": "v"}, b"\2\2k\2v\0"),
        ({"type": "map", "values": "bytes"}, {}, b"\0"),
        (record(a=with_default("long", 3), b="boolean") | {"name": "In"}, {"b": True}, b"\6\1"),
    ],
)
def test_fields_that_no_column_has_get_their_default(
    kind: Any, default: Any, expected: bytes
) -> None:
    schema = record(before="long", added=with_default(kind, default), after="long")
    bodies = encode(schema, after=pa.array([1, 2]), before=pa.array([3, 4]))
    assert bodies == [b"\6" + expected + b"\2", b"\x08" + expected + b"\4"]


def test_a_default_that_is_not_of_its_type_is_refused() -> None:
    schema = parse_schema(
        json.dumps(record(id="long", x=with_default("long", "one"))), strict=False
    )
    with pytest.raises(InvalidSchema, match="default of field 'x' is no value of its type"):
        encoder_of(pa.schema([("id", pa.int64())]), schema)


def test_a_default_without_end_is_refused() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": "Node"}]}
    node["fields"][0]["default"] = {}  # type: ignore[index]
    schema = parse_schema(json.dumps(record(id="long", x=with_default(node, {}))), strict=False)
    with pytest.raises(InvalidSchema, match="default of a field has no end"):
        encoder_of(pa.schema([("id", pa.int64())]), schema)


def test_columns_are_found_by_their_mangled_names_and_by_names_that_only_look_so() -> None:
    columns = {"order id": pa.array([1]), "2nd": pa.array([2]), "_x0041_": pa.array([3])}
    schema = record(_x0032_nd="long", _x0041_="long", order_x0020_id="long")
    assert encode(schema, **columns) == [b"\4\6\2"]


def test_a_type_that_contains_itself_is_as_deep_as_the_columns() -> None:
    schema = record(value="long", next=with_default(["null", "Row"], None))
    rows = pa.array(
        [{"value": 1, "next": {"value": 2, "next": {"value": 3}}}, {"value": 4, "next": None}]
    )
    expected = written(schema, *rows.to_pylist())
    assert encode(schema, value=rows.field("value"), next=rows.field("next")) == expected


def test_a_plain_column_takes_the_branch_of_its_own_type() -> None:
    schema = record(x=["string", "double", "null", "long"])
    assert encode(schema, x=pa.array([7, None])) == [b"\6\x0e", b"\4"]
    assert encode(schema, x=pa.array([7], pa.int16())) == [b"\2" + np.float64(7).tobytes()]
    assert encode(schema, x=pa.array(["a", "a"]).dictionary_encode()) == [b"\0\2a", b"\0\2a"]


def test_a_union_of_null_alone_and_of_one_type() -> None:
    schema = record(nothing=["null"], one=["long"])
    assert encode(schema, nothing=pa.nulls(1), one=pa.array([1])) == [b"\0\0\2"]


def test_maps_with_other_keys_are_arrays_of_records() -> None:
    entry = {"type": "record", "name": "E", "fields": [{"name": "value", "type": "string"}]}
    entry["fields"].append({"name": "key", "type": "long"})  # type: ignore[attr-defined]
    values = pa.array([[(1, "a"), (2, "b")], []], pa.map_(pa.int64(), pa.string()))
    expected = [b"\4\2a\2\2b\4\0", b"\0"]
    assert encode(record(x={"type": "array", "items": entry}), x=values) == expected


def test_uuids_are_text_or_their_bytes() -> None:
    raw = bytes.fromhex("00112233445566778899aabbccddeeff")
    text = b"\x4800112233-4455-6677-8899-aabbccddeeff"
    values = pa.array([raw, raw], pa.uuid())
    in_text = {"type": "string", "logicalType": "uuid"}
    assert encode(record(x=in_text), x=values) == [text, text]
    assert encode(record(x={**fixed(16), "logicalType": "uuid"}), x=values) == [raw, raw]
    assert encode(record(x=in_text), x=values.storage) == [text, text]


def test_long_values_are_whole_at_every_length() -> None:
    edges = [length + more for length in (0, 32, 63, 128, 1024, 8192) for more in (-1, 0, 1, 33)]
    lengths = [length for length in edges if length >= 0] + [20_000, 70_000]
    texts = [bytes(range(256)) * (length // 256 + 1) for length in lengths]
    values = pa.array([text[:length] for text, length in zip(texts, lengths, strict=True)])
    schema = record(a="bytes", b="boolean", c=["null", "bytes"])
    flags = pa.array([True] * len(lengths))
    expected = written(
        schema, *({"a": value, "b": True, "c": value} for value in values.to_pylist())
    )
    assert encode(schema, a=values, b=flags, c=values.dictionary_encode()) == expected


def test_a_list_view_may_have_its_parts_anywhere() -> None:
    values = pa.ListViewArray.from_arrays(
        [3, 0, 1, 5], [2, 3, 0, 1], pa.array([1, 2, 3, 4, 5, None])
    )
    values = values.slice(0, 3)  # the item that is null is in no list
    schema = record(x={"type": "array", "items": "long"})
    assert encode(schema, x=values) == written(schema, *({"x": x} for x in ([4, 5], [1, 2, 3], [])))


def test_no_rows_and_no_columns_give_what_is_left() -> None:
    assert encode(record(x="long"), x=pa.array([], pa.int64())) == []
    nothing = pa.array([{}, None, {}], pa.struct([]))
    encoder = encoder_of(nothing.type, parse_schema(json.dumps(record())))
    assert encoder.encode(nothing).to_pylist() == [b"", None, b""]


def test_short_rows_leave_nothing_of_one_another() -> None:
    numbers = np.random.default_rng(0).integers(0, 3, (2, 30_000))
    words = pa.array(["", "a", "bcdefghi" * 5]).take(pa.array(numbers[0]))
    flags = pa.array(numbers[1] == 0, mask=numbers[1] == 1)
    schema = record(word="string", flag=["null", "boolean"])
    parsed = {
        (word, flag): written(schema, {"word": word, "flag": flag})[0]
        for word in ("", "a", "bcdefghi" * 5)
        for flag in (True, False, None)
    }
    rows = zip(words.to_pylist(), flags.to_pylist(), strict=True)
    assert encode(schema, word=words, flag=flags) == [parsed[row] for row in rows]


# What depends on each value


def test_values_that_choose_their_branch_are_written_with_fastavro(
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema = record(id="long", x=["null", COLORS, SHAPES])
    words = ["CUBE", None, "RED", "CUBE"]
    with caplog.at_level(logging.DEBUG, "duolog.avro"):
        bodies = encode(schema, id=pa.array(range(4)), x=pa.array(words).dictionary_encode())
    assert bodies == written(schema, *({"id": at, "x": word} for at, word in enumerate(words)))
    assert [line.message for line in caplog.records] == [
        "Column 'x' of type dictionary<values=string, indices=int32, ordered=0> is written row by "
        "row with fastavro: which branch of the union of null, enum 'Color', enum 'Shape' it "
        "takes depends on the value."
    ]


def test_bytes_choose_the_fixed_of_their_size() -> None:
    schema = record(x=[fixed(2, "Two"), fixed(3, "Three")])
    values = [b"ab", b"abc"]
    expected = written(schema, *({"x": value} for value in values))
    assert encode(schema, x=pa.array(values)) == expected


def test_without_fastavro_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    by_value._writer.cache_clear()
    with pytest.raises(InvalidRows, match=r"Column 'x' .*`pip install duolog\[avro\]`"):
        encode(record(x=["null", COLORS, SHAPES]), x=pa.array(["RED"]))


def test_other_columns_need_only_pyarrow_and_numpy() -> None:
    script = """
import sys
import pyarrow as pa
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
rows = pa.array([{"id": 1, "tags": ["a"], "at": None}])
assert len(encoder_of(rows.type, record_of(rows.type, "r")).encode(rows)) == 1
print(sorted({"fastavro", "rocksdict", "pydantic", "fastapi", "httpx"} & {*sys.modules}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"


# In a task


@pytest.mark.parametrize("name", ["plain", "nullable", "nested"])
def test_an_encoder_travels_to_tasks_and_writes_the_same(name: str) -> None:
    rows = tables_of(100)[name]
    encoder = encoder_of(rows.type, record_of(rows.type, "shop.orders"))
    sent = pickle.loads(pickle.dumps(encoder))
    assert sent.encode(rows).equals(encoder.encode(rows))


def test_memory_stays_below_three_times_the_batch_with_long_lists() -> None:
    items = pa.array(np.arange(2_000_000) % 60_000, pa.int32())
    lists = pa.ListArray.from_arrays(np.arange(0, 2_000_001, 1000), items)
    rows = pa.StructArray.from_arrays([lists], names=["x"])
    encoder = encoder_of(rows.type, record_of(rows.type, "r"))
    assert peak_bytes(encoder, rows) < 3 * rows.nbytes


@pytest.mark.parametrize("name", ["plain", "nullable", "nested"])
def test_memory_stays_below_three_times_the_batch(name: str) -> None:
    rows = tables_of(65_536)[name]
    encoder = encoder_of(rows.type, record_of(rows.type, "shop.orders"))
    encoder.encode(rows.slice(0, 10))
    assert peak_bytes(encoder, rows) < 3 * rows.nbytes
