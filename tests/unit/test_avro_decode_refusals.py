"""What the decoder refuses, how it says so, and that hostile bytes take no memory."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import decoder_of
from duolog.avro.decode.reader import ROWS_AT_ONCE
from duolog.avro.decode.scan import MAX_EMPTY_ITEMS
from duolog.avro.schema import Array, Field, Kind, Primitive, Record, Reference, Union
from duolog.avro.varint import varint
from duolog.errors import InvalidSchema, Undecodable
from tests.unit.avro_bodies import array, block, decode, record, refusal, text
from tests.unit.avro_cases import parsed


def test_the_row_and_the_field_are_named() -> None:
    price = record(price="double", paid="boolean")
    schema = record(order=record(items=array({**price, "name": "Item"}), name="string"))
    schema["fields"][0]["type"]["name"] = "Order"
    item = struct.pack("<d", 1.5) + b"\x01"
    good = block([item, item], is_sized=False) + b"\x00" + text("x")
    bad = block([item, item[:-1] + b"\x02"], is_sized=False) + b"\x00" + text("x")
    assert refusal(schema, good, good, bad, bad) == (
        "Row 2, field 'order.items[1].paid': a boolean is the byte 2, neither 0 nor 1. These are "
        "not bytes of the schema that they are read with: find out which schema they were written "
        "with."
    )


def noughts(schema: Any) -> bytes:
    """A body that is good: all noughts, as many as the type takes."""
    kind = schema[0] if isinstance(schema, list) else schema
    name = kind["type"] if isinstance(kind, dict) else kind
    return bytes({"float": 4, "double": 8, "fixed": 4}.get(name, 1))


@pytest.mark.parametrize(
    ("schema", "body", "reason"),
    [
        ("long", b"", "the body ends inside a number"),
        ("long", b"\x80", "the body ends inside a number"),
        ("long", b"\x02\x00", "1 bytes are left over"),
        ("long", b"\xff" * 9 + b"\x02", "a number has more than 64 bits"),
        ("long", b"\xff" * 10 + b"\x01", "a number has more than 64 bits"),
        ("long", b"\x80" * 10 + b"\x00", "a number has more than 64 bits"),
        ("int", varint(1 << 31), "2147483648 is no int"),
        ("int", varint(-(1 << 31) - 1), "-2147483649 is no int"),
        ("boolean", b"\x02", "a boolean is the byte 2"),
        ("boolean", b"", "it takes 1 bytes, but only 0 are left"),
        ("float", b"\x00\x00\x00", "it takes 4 bytes, but only 3 are left"),
        ("double", b"\x00" * 7, "it takes 8 bytes, but only 7 are left"),
        ("string", text("abc")[:-1], "given as 3 bytes, but only 2 are left"),
        ("string", varint(-1), "its length is given as -1"),
        ("bytes", varint(1 << 62) + b"x", "given as 4611686018427387904 bytes"),
        ("bytes", varint(-(1 << 63)), "its length is given as -9223372036854775808"),
        ("string", text(b"ab\xff"), "its text is not UTF-8: invalid start byte at byte 2"),
        ("string", text(b"\xed\xa0\x80"), "its text is not UTF-8"),
        ("string", text(b"\xc3"), "its text is not UTF-8"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc", "it takes 4 bytes"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            b"\x04",
            "it is symbol 2 of an enum",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01", "it is symbol -1"),
        (["null", "int"], b"\x04", "it is branch 2 of a union that has 2"),
        (["null", "int"], b"\x01", "it is branch -1 of a union that has 2"),
        (array("int"), varint(3) + b"\x02\x02", "it has 3 items of at least 1 bytes"),
        (array("int"), varint(1 << 62), "it has 4611686018427387904 items"),
        (array("int"), varint(-(1 << 63)) + b"\x00", "it has 9223372036854775808 items"),
        (array("double"), varint(2) + b"\x00" * 15, "it has 2 items of at least 8 bytes"),
        (
            array("int"),
            varint(-1) + varint(2) + b"\x02\x00",
            "a block of 1 bytes is said to have 2",
        ),
        (array("int"), varint(-1) + varint(-1) + b"\x02\x00", "1 bytes is said to have -1"),
        (array("int"), varint(1) + b"\x02", "the body ends inside a number"),
        (array("null"), varint(1 << 40) + b"\x00", "items without bytes"),
        (array("string"), varint(1) + text("abc"), "the body ends inside a number"),
        (
            {"type": "map", "values": "int"},
            varint(1) + text(b"\xff") + b"\x02\x00",
            "its text is not UTF-8",
        ),
        ({"type": "int", "logicalType": "time-millis"}, varint(86_400_000), "no time of day"),
        ({"type": "long", "logicalType": "time-micros"}, varint(-1), "no time of day"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 60])
def test_what_is_not_of_the_schema_is_refused(
    schema: Any, body: bytes, reason: str, before: int
) -> None:
    written = record(a="int", x=schema)
    good = noughts(schema)
    message = refusal(written, *([b"\x00" + good] * before), b"\x00" + body)
    place = "" if "left over" in reason else ", field 'x"
    assert message.startswith(f"Row {before}{place}"), message
    assert reason in message


def test_a_row_never_reads_what_belongs_to_the_next() -> None:
    # The first takes a byte too many; all the same, all bytes would be used up.
    message = refusal("string", varint(3) + b"ab", text("c")[:1], b"")
    assert message.startswith("Row 0: its length is given as 3 bytes, but only 2 are left")
    message = refusal("double", bytes(7), bytes(9))
    assert message.startswith("Row 0: it takes 8 bytes, but only 7 are left")


HOSTILE: list[tuple[Any, bytes]] = [
    ("string", varint((1 << 31) - 1) + b"x" * 50),
    ("bytes", varint((1 << 62) - 1)),
    (array("long"), varint((1 << 31) - 1) + b"\x00" * 50),
    (array("string"), varint(-(1 << 40)) + varint(1 << 40)),
    (array("null"), varint((1 << 31) - 1)),
    (array("null"), varint(MAX_EMPTY_ITEMS) * 40 + b"\x00"),
    (array("null"), (varint(-MAX_EMPTY_ITEMS) + b"\x00") * 40 + b"\x00"),
    (array(record()), varint(1 << 62)),
    ({"type": "map", "values": "null"}, varint(1 << 50)),
    ({"type": "fixed", "name": "F", "size": (1 << 31) - 1}, b"x" * 50),
    (array({"type": "fixed", "name": "F", "size": (1 << 31) - 1}), varint(1) + b"x" * 50),
    (array(array(array("null"))), (varint(9) + varint(9) + varint(1 << 40)) * 9),
]


@pytest.mark.parametrize(("schema", "body"), HOSTILE)
@pytest.mark.parametrize("rows", [1, 1000])
def test_no_memory_is_taken_because_the_bytes_ask_for_it(
    schema: Any, body: bytes, rows: int
) -> None:
    assert_little_memory(schema, [body] * rows)


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("bytes", varint(100_000)),
        (array("double"), varint(100_000)),
        (array("long"), varint(800_000)),
        (array("string"), varint(800_000)),
        ({"type": "fixed", "name": "F", "size": 100_000}, b""),
    ],
)
def test_rows_cannot_all_ask_for_the_bytes_of_the_last(schema: Any, body: bytes) -> None:
    assert_little_memory(schema, [body] * 200 + [bytes(850_000)])


def assert_little_memory(schema: Any, bodies: list[bytes]) -> None:
    decoder = decoder_of(parsed(schema))
    batch = pa.array(bodies, pa.binary())
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(Undecodable):
            decoder.decode(batch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert pa.total_allocated_bytes() - before < 16 << 20


@pytest.mark.parametrize("rows", [3, 100])
def test_items_without_bytes_are_counted_over_the_whole_batch(rows: int) -> None:
    each = MAX_EMPTY_ITEMS // rows
    body = varint(each) + b"\x00"
    values = decode(array("null"), [body] * rows)
    assert values.value_lengths().to_pylist() == [each] * rows
    message = refusal(array("null"), *[body] * rows, body)
    assert message.startswith(f"Row {rows}: it has {each} items without bytes")


def test_items_without_bytes_are_counted_over_parts_of_a_batch() -> None:
    body = varint(40) + b"\x00"
    rows = MAX_EMPTY_ITEMS // 40
    assert rows > ROWS_AT_ONCE
    decode(array("null"), [body] * rows)
    message = refusal(array("null"), *[body] * (rows + 1))
    assert message.startswith(f"Row {rows}: it has 40 items without bytes")


def test_a_schema_that_contains_itself_is_refused() -> None:
    inner = Union((Primitive(Kind.NULL), Reference("Node")))
    node = Record("Node", (Field("next", inner), Field("all", Array(Reference("Node")))))
    with pytest.raises(InvalidSchema, match="'Node' contains itself"):
        decoder_of(node)


def test_a_schema_too_deep_is_refused() -> None:
    schema: Any = "int"
    for _ in range(200):
        schema = Array(schema if schema != "int" else Primitive(Kind.INT))
    with pytest.raises(InvalidSchema, match="types deep"):
        decoder_of(schema)


def test_the_deepest_schema_is_read() -> None:
    schema: Any = "int"
    for _ in range(60):
        schema = array(schema)
    body = varint(1) * 60 + varint(7) + b"\x00" * 60
    value: Any = 7
    for _ in range(60):
        value = [value]
    assert decode(schema, [body] * 50).to_pylist() == [value] * 50
    assert "[0][0]" in refusal(schema, body[:-30])
