"""Reading with another schema, rule by rule."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import decoder_of
from duolog.avro.resolve import Branch, Choice, Members, Refusal, Symbol, resolve
from duolog.avro.varint import varint
from duolog.errors import IncompatibleSchema, InvalidSchema, Undecodable
from tests.unit.avro_cases import parsed, shown


def read(writer: Any, reader: Any, *bodies: bytes) -> list[Any]:
    """What the reader's schema makes of the bodies."""
    decoder = decoder_of(parsed(writer), parsed(reader))
    values = decoder.decode(pa.array(bodies, pa.binary()))
    assert values.type == decoder.type == decoder_of(parsed(reader)).type
    return list(values.to_pylist())


def record(name: str = "R", aliases: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    kinds = [
        {"name": field, **(kind if isinstance(kind, dict) and "fits" in kind else {"type": kind})}
        for field, kind in fields.items()
    ]
    for kind in kinds:
        kind.pop("fits", None)
    return {"type": "record", "name": name, "aliases": list(aliases), "fields": kinds}


def field(kind: Any, **more: Any) -> dict[str, Any]:
    """A field with more than a type."""
    return {"fits": True, "type": kind, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}

LARGE = (1 << 53) + 1


@pytest.mark.parametrize(
    ("writer", "reader", "body", "value"),
    [
        ("int", "long", varint(-5), -5),
        ("int", "float", varint(-5), -5.0),
        ("int", "double", varint(1 << 30), float(1 << 30)),
        ("long", "float", varint(LARGE), float(1 << 53)),
        ("long", "double", varint(LARGE), float(1 << 53)),
        ("float", "double", b"\x00\x00\xc0\x3f", 1.5),
        ("string", "bytes", b"\x04\xc3\xa9", "é".encode()),
        ("bytes", "string", b"\x04\xc3\xa9", "é"),
        ("int", ["null", "int"], varint(3), 3),
        (["null", "int"], ["int", "null"], b"\x00", None),
        (["null", "int"], ["int", "null"], b"\x02\x06", 3),
        (["null", "int"], "int", b"\x02\x06", 3),
        (["int"], "int", b"\x00\x06", 3),
        (["int", "long"], "long", b"\x02\x06", 3),
        (["int", "null"], ["null", "long"], b"\x00\x06", 3),
        ({"type": "array", "items": "int"}, {"type": "array", "items": ["null", "long"]},
         b"\x04\x02\x04\x00", [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "double"},
         b"\x02\x02k\x02\x00", [("k", 1.0)]),
        (enum("A", "B"), enum("C", "B", "A"), b"\x02", "B"),
        (enum("A", "B"), enum("C", "A", default="C"), b"\x02", "C"),
        (enum("A", name="x.E"), enum("A", name="y.E"), b"\x00", "A"),
        (enum("A", name="x.E"), enum("A", name="y.Z", aliases=["x.E"]), b"\x00", "A"),
        (fixed(2), fixed(2), b"ab", b"ab"),
        (fixed(2), fixed(2, name="G", aliases=["F"]), b"ab", b"ab"),
        (MILLIS, "long", varint(7), 7),
        (DATE, "int", varint(7), 7),
        (DATE, "long", varint(7), 7),
        (DATE, "double", varint(7), 7.0),
    ],
)  # fmt: skip
def test_a_value_is_read_as_the_specification_says(
    writer: Any, reader: Any, body: bytes, value: Any
) -> None:
    assert read(writer, reader, body) == [value]
    assert read(writer, reader, *[body] * 50) == [value] * 50


@pytest.mark.parametrize(
    ("writer", "reader"),
    [("int", DATE), ("long", MILLIS), ("int", MILLIS), (MILLIS, MILLIS)],
)
def test_the_readers_logical_type_counts(writer: Any, reader: Any) -> None:
    decoder = decoder_of(parsed(writer), parsed(reader))
    assert decoder.type == decoder_of(parsed(reader)).type
    assert shown(decoder.decode(pa.array([varint(7)]))) == [7]


def test_bytes_become_a_decimal_and_a_decimal_becomes_bytes() -> None:
    decoder = decoder_of(parsed("bytes"), parsed(decimal(4, 2)))
    assert shown(decoder.decode(pa.array([b"\x02\x05"]))) == [5]
    with pytest.raises(
        Undecodable, match=r"Row 0: a number of 3 bytes does not fit decimal\(4, 2\)"
    ):
        decoder.decode(pa.array([b"\x06\x7f\xff\xff"]))
    assert read(decimal(4, 2), "bytes", b"\x02\x05") == [b"\x05"]


def test_fields_are_matched_by_name_and_by_alias() -> None:
    writer = record(a="int", b="string", c="int", d={"type": "array", "items": "string"}, e="int")
    reader = record(e="long", z=field("int", aliases=["a"]), b="string")
    body = varint(1) + b"\x02x" + varint(2) + b"\x04\x02y\x02z\x00" + varint(3)
    assert read(writer, reader, body, body) == [{"e": 3, "z": 1, "b": "x"}] * 2


def test_a_field_of_the_same_name_goes_before_an_alias() -> None:
    writer, reader = record(old="int", new="int"), record(new=field("int", aliases=["old"]))
    assert read(writer, reader, varint(1) + varint(2)) == [{"new": 2}]


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        *((kind, default, default) for kind, default in (("int", -7), ("string", "é"))),
        ("double", 1, 1.0),
        ("double", "NaN", "NaN"),
        ("float", "-Infinity", float("-inf")),
        ("bytes", "\u00ff\u0000", b"\xff\x00"),
        (fixed(2), "\u00ffa", b"\xffa"),
        (["null", "int"], None, None),
        (["null", "int"], 3, 3),
        (["string", "null"], "x", "x"),
        (["string", "int"], 5, {"member0": None, "member1": 5}),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "map", "values": ["null", "int"]}, {"a": None}, [("a", None)]),
        (enum("P", "Q"), "Q", "Q"),
        (record("N", x=field("int", default=4), y="int"), {"y": 5}, {"x": 4, "y": 5}),
    ],
)
def test_a_field_that_was_not_written_has_its_default(kind: Any, default: Any, value: Any) -> None:
    writer, reader = record(a="int"), record(n=field(kind, default=default), a="int")
    rows = read(writer, reader, *[varint(1)] * 3)
    assert [row["a"] for row in rows] == [1] * 3
    if value == "NaN":
        assert all(row["n"] != row["n"] for row in rows)
    else:
        assert [row["n"] for row in rows] == [value] * 3


def test_a_decimal_has_its_default() -> None:
    reader = record(a="int", n=field(decimal(4, 2), default="\u0004\u00d2"))
    decoder = decoder_of(parsed(record(a="int")), parsed(reader))
    assert shown(decoder.decode(pa.array([varint(1)]))) == [{"a": 1, "n": 1234}]


@pytest.mark.parametrize(
    ("kind", "default"),
    [(decimal(2, 0), "\u0004\u00d2"), (DATE | {"type": "int"}, 1 << 31)],
)
def test_a_default_that_is_no_value_of_its_type_is_refused(kind: Any, default: Any) -> None:
    reader = record(n=field(kind, default=default))
    with pytest.raises(InvalidSchema, match=r"field 'n'"):
        decoder_of(parsed(record()), parsed(reader))


@pytest.mark.parametrize(
    ("writer", "reader", "place", "reason"),
    [
        ("long", "int", "The schema", "long was written, int is to be read"),
        ("double", "float", "The schema", "double was written, float is to be read"),
        ("int", "string", "The schema", "int was written"),
        ("null", "int", "The schema", "null was written"),
        ("bytes", fixed(2), "The schema", "bytes was written, fixed 'F' is to be read"),
        (record(a="int"), record(a="string"), "Field 'a'", "int was written"),
        (record(a="int"), record(b="int"), "Field 'b'", "has no default"),
        (record("X", a="int"), record("Y", a="int"), "The schema", "without an alias"),
        (
            record(a={"type": "array", "items": record("I", b=["null", "int"])}),
            record(a={"type": "array", "items": record("I", b="string")}),
            "Field 'a[].b'",
            "no branch of the union written",
        ),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "bytes"}, "Field '[]'", "int"),
        (enum("A"), enum("A", name="Z"), "The schema", "without an alias"),
        (enum("A"), enum("B"), "The schema", "none of the symbols"),
        (fixed(2), fixed(3), "The schema", "was 2 bytes, not 3"),
        (record(t=MILLIS), record(t=MICROS), "Field 't'", "timestamp-millis would be read as"),
        (DATE, MILLIS, "The schema", "date would be read as timestamp-millis"),
        (
            decimal(4, 2),
            decimal(4, 1),
            "The schema",
            "decimal(4, 2) would be read as decimal(4, 1)",
        ),
        (decimal(4, 2), decimal(5, 2), "The schema", "decimal(5, 2)"),
        ("string", decimal(5, 2), "The schema", "text would be read as a decimal"),
        ("int", ["null", "string"], "The schema", "which the union to be read lacks"),
        (["null", "int"], "string", "The schema", "no branch of the union written"),
        (record("A", x="int"), ["null", record("A", x="string")], "Field 'x'", "int was written"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_field(
    writer: Any, reader: Any, place: str, reason: str
) -> None:
    with pytest.raises(IncompatibleSchema) as caught:
        decoder_of(parsed(writer), parsed(reader))
    assert str(caught.value).startswith(f"{place} cannot be read with the reader's schema: ")
    assert reason in str(caught.value)


def test_where_the_bytes_decide_the_row_is_refused() -> None:
    writer, reader = record(a=["null", "int", "string"]), record(a=["string", "null"])
    assert read(writer, reader, b"\x00", b"\x04\x02x") == [{"a": None}, {"a": "x"}]
    with pytest.raises(Undecodable) as caught:
        read(writer, reader, b"\x00", b"\x02\x02")
    assert str(caught.value) == (
        "Row 1, field 'a': it is branch 1 of its union: int was written, which the union to be "
        "read lacks. The reader's schema has no place for it: read it with the writer's."
    )
    with pytest.raises(Undecodable, match=r"Row 1: it is the symbol 'B'\. The reader's"):
        read(enum("A", "B"), enum("A"), b"\x00", b"\x02")
    with pytest.raises(Undecodable, match=r"Row 0: it is branch 0 of its union: null was written"):
        read(["null", "int"], "int", b"\x00")


def test_of_a_readers_union_the_same_type_goes_before_a_promotion() -> None:
    doubles = ["null", "double", "long"]
    assert read("long", doubles, varint(LARGE)) == [{"member0": None, "member1": LARGE}]
    assert read(doubles, doubles, b"\x04" + varint(LARGE)) == [{"member0": None, "member1": LARGE}]
    assert read("int", doubles, varint(3)) == [{"member0": 3.0, "member1": None}]


def test_of_a_readers_union_the_full_name_goes_before_the_short_one() -> None:
    short, full = record("a.R", x="int"), record("b.R", x="int")
    plan = resolve(parsed(full), parsed([short, full]))
    assert isinstance(plan, Branch)
    assert plan.index == 1
    plan = resolve(parsed(record("c.R", x="int")), parsed([short, full]))
    assert isinstance(plan, Branch)
    assert plan.index == 0


def test_of_a_readers_union_a_record_that_can_be_read_is_taken() -> None:
    fitting, other = record("b.R", x="long"), record("a.R", x="string")
    assert read(record("c.R", x="int"), [other, fitting], varint(3)) == [
        {"member0": None, "member1": {"x": 3}}
    ]


def test_a_field_that_is_passed_over_may_hold_anything_of_its_length() -> None:
    inner = record(
        "I", s="string", e=enum("A"), t={"type": "int", "logicalType": "time-millis"}, b="boolean"
    )
    writer, reader = record(a=inner, z="int"), record(z="int")
    odd = b"\x02\xff" + varint(9) + varint(-1) + b"\x07"
    assert read(writer, reader, odd + varint(5), odd + varint(6)) == [{"z": 5}, {"z": 6}]
    with pytest.raises(Undecodable, match=r"Row 1, field 'a\.s': its length is given as -1"):
        read(writer, reader, odd + varint(5), varint(-1))
    with pytest.raises(Undecodable, match=r"Row 0, field 'z': the body ends inside a number"):
        read(writer, reader, odd)


def test_a_plan_is_in_the_order_of_the_bytes() -> None:
    plan = resolve(
        parsed(record(a="int", b=["null", "int", "string"], c=enum("A", "B"))),
        parsed(record(c=enum("B"), d=field("int", default=1), b=["long", "null"])),
    )
    assert isinstance(plan, Members)
    assert [(step.name, step.place) for step in plan.steps] == [("a", None), ("b", 2), ("c", 0)]
    assert plan.defaults == (1,)
    choice, symbol = plan.steps[1].plan, plan.steps[2].plan
    assert isinstance(choice, Choice)
    assert [type(branch) for branch in choice.branches] == [Branch, Branch, Refusal]
    assert isinstance(symbol, Symbol)
    assert symbol.places == (None, 0)


def test_two_schemas_with_too_many_pairs_of_types_are_refused() -> None:
    def records(space: str, count: int) -> list[Any]:
        def tall(name: str) -> dict[str, Any]:
            fields: dict[str, Any] = {f"f{n}": "int" for n in range(60)}
            return record(f"{space}{name}.R", **fields, last="int" if space == "w" else "string")

        return [tall(f"n{n}") for n in range(count)]

    with pytest.raises(InvalidSchema, match="pairs of types to compare"):
        resolve(parsed(records("w", 100)), parsed(records("r", 100)))
