"""Rows as Avro: what only some schemas ask for, and how much memory it takes."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.avro_encode import peak_bytes, tables_of
from duolog.avro.encode import by_value
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
from duolog.avro.parse import parse_schema
from duolog.errors import InvalidRows, InvalidSchema
from tests.unit.avro_encoding import COLORS, SHAPES, encode, fixed, record, with_default, written


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
