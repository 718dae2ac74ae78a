"""The decoder, case by case: what it reads, and what it refuses and how it says so."""

from __future__ import annotations

import math
import pickle
import random
import struct
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import BodyDecoder, decoder_of
from duolog.avro.decode.reader import ROWS_AT_ONCE
from duolog.avro.decode.scan import MAX_EMPTY_ITEMS
from duolog.avro.schema import Array, Field, Kind, Primitive, Record, Reference, Union
from duolog.avro.to_arrow import arrow_type
from duolog.avro.varint import varint
from duolog.errors import InvalidSchema, Undecodable
from tests.unit.avro_cases import Reference as Fastavro
from tests.unit.avro_cases import parsed, shown


def record(**fields: Any) -> dict[str, Any]:
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Row", "fields": kinds}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def decode(schema: Any, bodies: list[bytes | None]) -> pa.Array:
    decoder = decoder_of(parsed(schema))
    values = decoder.decode(pa.array(bodies, pa.binary()))
    values.validate(full=True)
    assert values.type == decoder.type == arrow_type(parsed(schema))
    assert len(values) == len(bodies)
    return values


def refusal(schema: Any, *bodies: bytes) -> str:
    with pytest.raises(Undecodable) as caught:
        decoder_of(parsed(schema)).decode(pa.array(bodies, pa.binary()))
    return str(caught.value)


def text(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(len(raw)) + raw


# What is read


def test_a_null_body_is_a_null_row() -> None:
    schema = record(a="long", b="string")
    values = decode(schema, [None, varint(1) + text("x"), None, varint(2) + text("y"), None])
    assert values.to_pylist() == [None, {"a": 1, "b": "x"}, None, {"a": 2, "b": "y"}, None]


@pytest.mark.parametrize("bodies", [[], [None, None]])
def test_batches_without_bodies_are_read(bodies: list[bytes | None]) -> None:
    schema = record(a="long", b=array("string"), c={"type": "enum", "name": "E", "symbols": ["A"]})
    assert decode(schema, bodies).to_pylist() == bodies


def test_a_part_of_an_array_of_bodies_is_read() -> None:
    bodies = pa.array([varint(n) if n % 3 else None for n in range(30)], pa.binary())
    decoder = decoder_of(Primitive(Kind.LONG))
    assert decoder.decode(bodies.slice(7, 11)).to_pylist() == [
        n if n % 3 else None for n in range(7, 18)
    ]


def test_what_null_rows_hold_in_memory_is_passed_over() -> None:
    content, offsets = pa.py_buffer(b"\x02junk\x04"), pa.py_buffer(np.array([0, 1, 5, 6], np.int32))
    bodies = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), offsets, content])
    assert decoder_of(Primitive(Kind.LONG)).decode(bodies).to_pylist() == [1, None, 2]


def test_a_record_without_fields_has_as_many_rows_as_bodies() -> None:
    assert decode(record(), [b"", None, b""]).to_pylist() == [{}, None, {}]
    assert refusal(record(), b"", b"\x00").startswith("Row 1: 1 bytes are left over")


def test_a_decoder_can_be_pickled() -> None:
    decoder = decoder_of(parsed(record(a="int")), parsed(record(a="long")))
    again = pickle.loads(pickle.dumps(decoder))
    assert isinstance(again, BodyDecoder)
    assert again.decode(pa.array([varint(5)])).to_pylist() == [{"a": 5}]


@pytest.mark.parametrize("rows", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1])
def test_batches_of_any_number_of_rows_are_read(rows: int) -> None:
    schema = record(a="long", b=["null", "string"], c=array("int"), d=["int", "string", "null"])
    written = [
        {
            "a": n - 1000,
            "b": None if n % 5 else f"b{n}",
            "c": list(range(n % 4)),
            "d": (n, f"d{n}", None)[n % 3],
        }
        for n in range(rows)
    ]
    reference = Fastavro(schema)
    values = decode(schema, [reference.body(row) for row in written])
    assert values.slice(0, 3).to_pylist()[1] == {
        "a": -999, "b": None, "c": [0], "d": {"member0": None, "member1": "d1"},
    }  # fmt: skip
    assert values.field("a").to_pylist() == [row["a"] for row in written]
    assert values.field("b").to_pylist() == [row["b"] for row in written]
    assert values.field("c").to_pylist() == [row["c"] for row in written]
    assert values.field("d").is_null().to_pylist() == [row["d"] is None for row in written]


def test_bodies_of_megabytes_are_read() -> None:
    schema = record(a="string", b=array("double"), c=array("long"))
    rows = [
        {"a": "é" * 700_000, "b": [], "c": []},
        {"a": "x", "b": [float(n) for n in range(200_000)], "c": []},
        {"a": "", "b": [0.5], "c": [(-3) ** (n % 40) for n in range(200_000)]},
    ]
    reference = Fastavro(schema)
    assert decode(schema, [reference.body(row) for row in rows]).to_pylist() == rows


LONGS = sorted(
    {
        number
        for bits in range(64)
        for power in (1 << bits, -(1 << bits))
        for number in (power - 1, power, power + 1)
        if -(1 << 63) <= number < 1 << 63
    }
)


@pytest.mark.parametrize("count", [len(LONGS), 3])
def test_numbers_of_every_length_are_read(count: int) -> None:
    values = LONGS[-count:]
    assert decode("long", [varint(value) for value in values]).to_pylist() == values
    many = b"".join(map(varint, values))
    as_list = decode(array("long"), [varint(count) + many + b"\x00"] * 40)
    assert as_list.to_pylist() == [values] * 40


def test_numbers_in_more_bytes_than_they_need_are_read() -> None:
    for zeros in range(1, 10):
        body = b"\x8a" + b"\x80" * (zeros - 1) + b"\x00"
        assert decode("long", [body, body]).to_pylist() == [5, 5]
        assert decode("int", [body, body]).to_pylist() == [5, 5]


FLOATS = (0.0, -0.0, 1.5, math.inf, -math.inf)
SIGNALLING = (b"\x01\x00\xa0\x7f", b"\x01\x00\x00\x00\x00\x00\xf4\x7f")


def test_floats_keep_all_their_bits() -> None:
    bodies: list[bytes | None] = [struct.pack("<f", value) for value in FLOATS]
    bodies.append(SIGNALLING[0])
    stored = decode("float", bodies).buffers()[1].to_pybytes()
    assert stored[: 4 * len(bodies)] == b"".join(body or b"" for body in bodies)
    bodies = [*(struct.pack("<d", value) for value in FLOATS), SIGNALLING[1]]
    stored = decode("double", bodies).buffers()[1].to_pybytes()
    assert stored[: 8 * len(bodies)] == b"".join(body or b"" for body in bodies)


@pytest.mark.parametrize(
    ("schema", "number", "kind"),
    [
        ({"type": "int", "logicalType": "date"}, -1, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, 86_399_999, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, 86_399_999_999, pa.time64("us")),
        ({"type": "long", "logicalType": "timestamp-millis"}, -1, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1 << 62, pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-nanos"}, -(1 << 63), pa.timestamp("ns", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 7, pa.timestamp("ms")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 7, pa.timestamp("us")),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, 7, pa.timestamp("ns")),
        ({"type": "long", "logicalType": "unheard-of"}, 7, pa.int64()),
        ({"type": "int", "logicalType": "timestamp-millis"}, 7, pa.int32()),
    ],
)
def test_numbers_get_the_meaning_that_the_schema_gives_them(
    schema: Any, number: int, kind: pa.DataType
) -> None:
    values = decode(schema, [varint(number)])
    assert values.type == kind
    assert shown(values) == [number]


@pytest.mark.parametrize(
    ("precision", "unscaled", "content"),
    [
        (4, 0, b""),
        (4, 5, b"\x05"),
        (4, -5, b"\xfb"),
        (4, -5, b"\xff" * 40 + b"\xfb"),
        (4, 200, b"\x00\xc8"),
        (18, 10**18 - 1, None),
        (18, 1 - 10**18, None),
        (19, 10**19 - 1, None),
        (38, 10**38 - 1, None),
        (38, 1 - 10**38, b"\xff" * 3 + (1 - 10**38).to_bytes(16, "big", signed=True)),
        (39, 10**39 - 1, None),
        (76, 1 - 10**76, None),
        (76, 10**76 - 1, b"\x00" * 9 + (10**76 - 1).to_bytes(32, "big")),
    ],
)
def test_decimals_are_read_from_as_many_bytes_as_they_have(
    precision: int, unscaled: int, content: bytes | None
) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}
    raw = unscaled.to_bytes(33, "big", signed=True) if content is None else content
    values = decode(schema, [text(raw), text(b"\x01"), text(raw)])
    assert shown(values) == [unscaled, 1, unscaled]
    fixed = {**schema, "type": "fixed", "name": "F", "size": 33}
    if content is None:
        assert shown(decode(fixed, [raw, raw])) == [unscaled, unscaled]


@pytest.mark.parametrize("precision", [1, 4, 18, 19, 20, 38, 39, 76])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_decimal_with_a_digit_too_many_is_refused(precision: int, sign: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 1}
    for unscaled in (sign * 10**precision, sign * 10 ** (precision + 30)):
        raw = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
        message = refusal(schema, text(b"\x01"), text(raw))
        assert message.startswith(f"Row 1: a number of {len(raw)} bytes does not fit decimal(")


def test_a_decimal_has_the_scale_of_its_schema() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
    assert decode(schema, [text(b"\xff\x85")]).to_pylist() == [Decimal("-1.23")]


def test_a_union_of_several_types_is_a_struct_with_one_of_them() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    schema = ["int", "null", "long", "string", "bytes", enum]
    bodies = [
        b"\x00" + varint(1),
        b"\x02",
        b"\x04" + varint(2),
        b"\x06" + text("x"),
        b"\x08" + text(b"y"),
        b"\x0a\x00",
    ]
    values = decode(schema, [*bodies])
    assert [None if row is None else [*row.values()] for row in values.to_pylist()] == [
        [1, None, None, None, None],
        None,
        [None, 2, None, None, None],
        [None, None, "x", None, None],
        [None, None, None, b"y", None],
        [None, None, None, None, "A"],
    ]


@pytest.mark.parametrize(
    ("schema", "bodies", "values"),
    [
        (["int"], [varint(0) + varint(4)], [4]),
        (["null"], [varint(0)], [None]),
        (["null", "int"], [varint(0), varint(1) + varint(4)], [None, 4]),
        (["int", "null"], [b"\x82\x00", b"\x80\x80\x00\x08"], [None, 4]),
    ],
)
def test_unions_that_need_no_struct_are_read(
    schema: Any, bodies: list[bytes | None], values: list[Any]
) -> None:
    assert decode(schema, bodies).to_pylist() == values


def block(items: list[bytes], *, is_sized: bool) -> bytes:
    content = b"".join(items)
    if is_sized:
        return varint(-len(items)) + varint(len(content)) + content
    return varint(len(items)) + content


def in_blocks(choice: random.Random, items: list[bytes]) -> bytes:
    """The items in blocks of one to three, some with their size."""
    blocks = []
    while items:
        count = choice.randint(1, 3)
        blocks.append(block(items[:count], is_sized=choice.random() < 0.5))
        items = items[count:]
    return b"".join(blocks) + b"\x00"


@pytest.mark.parametrize("rows", [1, 10, 100])
@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("long", varint, lambda n: n),
        ("string", lambda n: text("s" * (n % 99)), lambda n: "s" * (n % 99)),
        ("double", lambda n: struct.pack("<d", n), float),
        ("null", lambda _: b"", lambda _: None),
        (
            array("int"),
            lambda n: block([varint(n)] * 3, is_sized=True) + b"\x00",
            lambda n: [n] * 3,
        ),
        (["null", "int"], lambda n: b"\x02" + varint(n), lambda n: n),
    ],
)
def test_arrays_in_blocks_are_read(
    rows: int, kind: Any, written: Callable[[int], bytes], value: Callable[[int], Any]
) -> None:
    choice = random.Random(rows)
    numbers = [[choice.randrange(1000) for _ in range(choice.randrange(12))] for _ in range(rows)]
    bodies = [in_blocks(choice, [written(n) for n in row]) for row in numbers]
    assert decode(array(kind), [*bodies]).to_pylist() == [
        [value(n) for n in row] for row in numbers
    ]


def test_maps_in_blocks_are_read() -> None:
    entries = [text(f"k{n}") + varint(n) for n in range(7)]
    bodies = [in_blocks(random.Random(n), entries[:n]) for n in range(8)]
    values = decode({"type": "map", "values": "int"}, [*bodies])
    assert shown(values) == [{f"k{n}": n for n in range(count)} for count in range(8)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("long", lambda n: n**5),
        ("string", lambda n: "é" * (n % 90)),
        ("float", float),
        ("boolean", lambda n: n % 2 == 0),
        (array("string"), lambda n: ["x"] * (n % 5)),
        (array(array("int")), lambda n: [[n]] * (n % 3)),
        (
            {**record(x="string", y=["null", "long"]), "name": "Item"},
            lambda n: {"x": "x" * (n % 9), "y": None if n % 2 else n},
        ),
    ],
)
def test_one_row_may_have_far_more_items_than_the_others(
    kind: Any, value: Callable[[int], Any]
) -> None:
    schema = record(a="int", b=array(kind), c="int")
    rows = [
        {"a": n, "b": [value(i) for i in range(6000 if n == 50 else n % 7)], "c": -n}
        for n in range(100)
    ]
    reference = Fastavro(schema)
    assert decode(schema, [reference.body(row) for row in rows]).to_pylist() == rows


# What is refused


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
