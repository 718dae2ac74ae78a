"""The decoder, case by case: what it reads."""

from __future__ import annotations

import math
import pickle
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import BodyDecoder, decoder_of
from duolog.avro.decode.reader import ROWS_AT_ONCE
from duolog.avro.schema import Kind, Primitive
from duolog.avro.varint import varint
from tests.unit.avro_bodies import array, block, decode, record, refusal, text
from tests.unit.avro_cases import Reference as Fastavro
from tests.unit.avro_cases import parsed, shown


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
