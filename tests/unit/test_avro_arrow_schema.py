from __future__ import annotations

import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duolog.avro.from_arrow import record_of
from duolog.avro.parse import parse_schema
from duolog.avro.schema import (
    NULL,
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    expanded,
)
from duolog.avro.text import schema_text
from duolog.avro.to_arrow import arrow_field, arrow_type, columns_of
from duolog.errors import InvalidRows, InvalidSchema
from duolog.log.routing.optional import optional_field
from tests.unit.avro_schemas import Draw, records

UUID = {b"avro.logical": b"uuid"}
SUIT = {b"avro.enum": b'["HEARTS","SPADES"]'}
WORDS = pa.dictionary(pa.int32(), pa.string())
INT = Primitive(Kind.INT)
STRING = Primitive(Kind.STRING)

# Arrow, Avro, Arrow again: the table.
PLAIN: list[tuple[pa.DataType, Schema, pa.DataType]] = [
    (pa.bool_(), Primitive(Kind.BOOLEAN), pa.bool_()),
    *((kind, INT, pa.int32()) for kind in (pa.int8(), pa.int16(), pa.int32())),
    *((kind, INT, pa.int32()) for kind in (pa.uint8(), pa.uint16())),
    *((kind, Primitive(Kind.LONG), pa.int64()) for kind in (pa.int64(), pa.uint32())),
    (
        pa.uint64(),
        Primitive(Kind.BYTES, Logical("decimal", 20, 0)),
        pa.decimal128(20, 0),
    ),
    *((kind, Primitive(Kind.FLOAT), pa.float32()) for kind in (pa.float16(), pa.float32())),
    (pa.float64(), Primitive(Kind.DOUBLE), pa.float64()),
    *((kind, STRING, pa.string()) for kind in (pa.string(), pa.large_string())),
    *((kind, Primitive(Kind.BYTES), pa.binary()) for kind in (pa.binary(), pa.large_binary())),
    *(
        (kind, Primitive(Kind.BYTES, Logical("decimal", kind.precision, kind.scale)), back)
        for kind, back in [
            (pa.decimal128(9, 2), pa.decimal128(9, 2)),
            (pa.decimal128(38, 38), pa.decimal128(38, 38)),
            (pa.decimal256(12, 0), pa.decimal128(12, 0)),
            (pa.decimal256(76, 3), pa.decimal256(76, 3)),
        ]
    ),
    (pa.date32(), Primitive(Kind.INT, Logical("date")), pa.date32()),
    (pa.date64(), Primitive(Kind.INT, Logical("date")), pa.date32()),
    *(
        (pa.time32(unit), Primitive(Kind.INT, Logical("time-millis")), pa.time32("ms"))
        for unit in ("s", "ms")
    ),
    (pa.time64("us"), Primitive(Kind.LONG, Logical("time-micros")), pa.time64("us")),
    *(
        (
            pa.timestamp(unit, zone),
            Primitive(Kind.LONG, Logical(f"{'' if zone else 'local-'}timestamp-{avro}")),
            pa.timestamp("ms" if unit == "s" else unit, "UTC" if zone else None),
        )
        for unit, avro in [("s", "millis"), ("ms", "millis"), ("us", "micros"), ("ns", "nanos")]
        for zone in (None, "UTC", "Europe/Berlin")
    ),
    (pa.dictionary(pa.int8(), pa.large_string()), STRING, pa.string()),
    (pa.dictionary(pa.uint16(), pa.int64()), Primitive(Kind.LONG), pa.int64()),
]
if hasattr(pa, "string_view"):
    PLAIN += [
        (pa.string_view(), STRING, pa.string()),
        (pa.binary_view(), Primitive(Kind.BYTES), pa.binary()),
    ]
if hasattr(pa, "decimal32"):
    PLAIN += [
        (kind, Primitive(Kind.BYTES, Logical("decimal", 7, 1)), pa.decimal128(7, 1))
        for kind in (pa.decimal32(7, 1), pa.decimal64(7, 1))
    ]


PLAIN_KEYS = [row for row in PLAIN if row[2] != pa.string()]


def _only_field(*columns: pa.Field) -> Field:
    return record_of(pa.schema(columns), "shop.Order").fields[0]


@pytest.mark.parametrize(("kind", "avro", "back"), PLAIN, ids=lambda value: str(value)[:40])
def test_a_plain_type_goes_as_the_table_says(
    kind: pa.DataType, avro: Schema, back: pa.DataType
) -> None:
    assert _only_field(pa.field("a", kind, nullable=False)) == Field("a", avro)
    assert _only_field(pa.field("a", kind)) == Field("a", Union((NULL, avro)), "null")
    assert arrow_type(avro) == back
    assert arrow_field(avro, "a") == pa.field("a", back, nullable=False)
    assert arrow_field(Union((avro, NULL)), "a") == pa.field("a", back)


def test_named_types_are_named_by_their_path() -> None:
    place = pa.struct([pa.field("hash", pa.binary(2), False), pa.field("suit", WORDS, False, SUIT)])
    order = record_of(
        pa.schema(
            [
                pa.field("id", pa.binary(4), False),
                pa.field("ship to", place, False),
                pa.field("more", pa.list_(pa.field("item", place, False)), False),
                pa.field("by", pa.map_(pa.string(), pa.field("value", place, False)), False),
                pa.field("int", pa.binary(1), False),
            ]
        ),
        "shop.Order",
    )

    def inner(name: str) -> Record:
        return Record(
            f"shop.Order.{name}",
            (
                Field("hash", Fixed(f"shop.Order.{name}.hash", 2)),
                Field("suit", Enum(f"shop.Order.{name}.suit", ("HEARTS", "SPADES"))),
            ),
        )

    assert order == Record(
        "shop.Order",
        (
            Field("id", Fixed("shop.Order.id", 4)),
            Field("ship_x0020_to", inner("ship_x0020_to")),
            Field("more", Array(inner("more"))),
            Field("by", Map(inner("by"))),
            Field("int", Fixed("shop.Order._x0069_nt", 1)),  # a type may not be named int
        ),
    )


def test_a_map_with_other_keys_is_an_array_of_records() -> None:
    value = pa.field("value", pa.struct([pa.field("n", pa.int32())]))
    by = pa.field("by", pa.map_(pa.date32(), value), False)
    inner = Record("R.by.value", (Field("n", Union((NULL, INT)), "null"),))
    entry = Record(
        "R.by",
        (
            Field("key", Primitive(Kind.INT, Logical("date"))),
            Field("value", Union((NULL, inner)), "null"),
        ),
    )
    record = record_of(pa.schema([by]), "R")
    assert record.fields[0].type == Array(entry)
    assert columns_of(record).field("by").type == pa.list_(
        pa.field(
            "item",
            pa.struct([pa.field("key", pa.date32(), False), pa.field("value", value.type)]),
            False,
        )
    )


@pytest.mark.parametrize(
    ("field", "avro"),
    [
        (pa.field("u", pa.string(), False, UUID), Primitive(Kind.STRING, Logical("uuid"))),
        (pa.field("u", pa.large_string(), False, UUID), Primitive(Kind.STRING, Logical("uuid"))),
        (pa.field("u", pa.binary(16), False, UUID), Fixed("shop.Order.u", 16, Logical("uuid"))),
        (pa.field("u", pa.binary(16), False), Fixed("shop.Order.u", 16)),
    ],
)
def test_a_uuid_is_one_by_its_metadata(field: pa.Field, avro: Schema) -> None:
    assert _only_field(field) == Field("u", avro)
    back = columns_of(Record("shop.Order", (Field("u", avro),))).field("u")
    assert (back.metadata or {}) == (field.metadata or {})
    assert back.type == (pa.string() if field.type == pa.large_string() else field.type)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (pa.field("a", pa.int32(), False, {b"avro.default": b" 7 "}), Field("a", INT, "7")),
        (
            pa.field("a", pa.int32(), True, {b"avro.default": b"7"}),
            Field("a", Union((INT, NULL)), "7"),
        ),
        (
            pa.field("a", pa.int32(), True, {b"avro.default": b"null", b"comment": b"how many"}),
            Field("a", Union((NULL, INT)), "null", doc="how many"),
        ),
        (
            pa.field("a", pa.list_(pa.string()), False, {b"avro.default": b'[ null, "\\u00e9" ]'}),
            Field("a", Array(Union((NULL, STRING))), '[null,"é"]'),
        ),
        (pa.field("a", pa.null(), True), Field("a", NULL, "null")),
    ],
)
def test_defaults_and_docs_come_from_the_metadata(field: pa.Field, expected: Field) -> None:
    assert _only_field(field) == expected
    record = Record("shop.Order", (expected,))
    assert record_of(columns_of(record), "shop.Order") == record


def test_a_column_that_rows_may_lack_is_a_nullable_one() -> None:
    column = optional_field(pa.field("a", pa.int32(), nullable=False))
    assert _only_field(column) == Field("a", Union((NULL, INT)), "null")


def test_an_arrow_uuid_is_a_string() -> None:
    if not hasattr(pa, "uuid"):
        assert pa.__version__ < "18"
        return
    column = pa.field("u", pa.uuid(), nullable=False)
    assert _only_field(column) == Field("u", Primitive(Kind.STRING, Logical("uuid")))


@pytest.mark.parametrize(
    ("column", "path", "advice"),
    [
        (pa.field("a", pa.time64("ns")), "'a'", "Cast it to time64[us]"),
        (pa.field("a", pa.duration("s")), "'a'", "Cast it to int64"),
        (pa.field("a", pa.month_day_nano_interval()), "'a'", "Cast it to a number or a string"),
        (pa.field("a", pa.decimal128(5, -2)), "'a'", "a decimal with a scale of 0 to 5"),
        (pa.field("a", pa.decimal128(5, 6)), "'a'", "a decimal with a scale of 0 to 5"),
        (pa.field("a", pa.dense_union([pa.field("x", pa.int32())])), "'a'", "Make it a struct"),
        (
            pa.field("a", pa.struct([pa.field("b c", pa.list_(pa.duration("s")))])),
            "'a.b c[]'",
            "Cast it",
        ),
        (pa.field("a", pa.map_(pa.duration("s"), pa.int32())), "'a[].key'", "Cast it"),
        (pa.field("a", pa.map_(pa.string(), pa.duration("s"))), "'a[]'", "Cast it"),
        (pa.field("a", pa.dictionary(pa.int8(), pa.duration("s"))), "'a'", "Cast it"),
        (pa.field("a", pa.int32(), True, UUID), "'a'", "remove it"),
        (pa.field("a", pa.string(), True, {b"avro.logical": b"date"}), "'a'", "remove it"),
        (pa.field("a", WORDS, True, {b"avro.enum": b'["A","A"]'}), "'a'", "list of names"),
        (pa.field("a", WORDS, True, {b"avro.enum": b'["A b"]'}), "'a'", "list of names"),
        (pa.field("a", WORDS, True, {b"avro.enum": b"A,B"}), "'a'", "list of names"),
        (pa.field("a", WORDS, True, {b"avro.enum": b"\xff"}), "'a'", "list of names"),
        (pa.field("a", pa.int32(), True, {b"avro.default": b'"x"'}), "'a'", 'the default "x"'),
        (pa.field("a", pa.int32(), False, {b"avro.default": b"null"}), "'a'", "the default null"),
        (pa.field("a", pa.int32(), True, {b"avro.default": b"x"}), "'a'", "no JSON"),
        (pa.field("a", pa.int32(), True, {b"avro.default": b"\xff"}), "'a'", "no JSON"),
        (pa.field("a", pa.struct([pa.field("b", pa.int8())] * 2)), "'a.b'", "Rename one"),
        (pa.field("", pa.int32()), "A column has an empty name", "Rename it"),
    ],
    ids=str,
)
def test_what_avro_has_no_form_for_is_refused_by_name(
    column: pa.Field, path: str, advice: str
) -> None:
    with pytest.raises(InvalidRows) as refused:
        record_of(pa.schema([column]), "R")
    assert path in str(refused.value)
    assert advice in str(refused.value)


def test_another_extension_type_is_refused_with_its_storage() -> None:
    class Money(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.int64(), "shop.money")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Money:
            return cls()

    with pytest.raises(InvalidRows, match=r"Column 'a' .* Cast it to int64"):
        record_of(pa.schema([pa.field("a", Money())]), "R")


def test_columns_nested_deeper_than_any_table_are_refused() -> None:
    def nested(levels: int) -> pa.Schema:
        kind = pa.int32()
        for _ in range(levels):
            kind = pa.list_(kind)
        return pa.schema([pa.field("a", kind)])

    record = record_of(nested(30), "R")
    assert parse_schema(schema_text(record)) == record
    assert columns_of(record) == nested(30)
    with pytest.raises(InvalidRows, match=r"Column 'a(\[\])+' is nested too deeply"):
        record_of(nested(32), "R")


def test_a_path_that_is_too_long_a_name_is_refused() -> None:
    inner = pa.struct([pa.field("é" * 600, pa.binary(2))])
    with pytest.raises(InvalidRows, match="more than 4096 characters"):
        record_of(pa.schema([pa.field("a", inner)]), "R")


@pytest.mark.parametrize("name", ["", "a b", "shop..Order", "shop.int", "2nd", ".R"])
def test_a_record_needs_a_full_name(name: str) -> None:
    with pytest.raises(InvalidSchema, match="cannot name a record"):
        record_of(pa.schema([]), name)


@pytest.mark.parametrize(
    ("avro", "field"),
    [
        (NULL, pa.field("a", pa.null())),
        (Union((NULL,)), pa.field("a", pa.null())),
        (Union((INT,)), pa.field("a", pa.int32(), nullable=False)),
        (
            Union((INT, STRING)),
            pa.field("a", pa.struct([("member0", pa.int32()), ("member1", pa.string())]), False),
        ),
        (
            Union((INT, NULL, Map(Union((STRING, NULL))))),
            pa.field(
                "a",
                pa.struct(
                    [("member0", pa.int32()), ("member1", pa.map_(pa.string(), pa.string()))]
                ),
            ),
        ),
        (Fixed("F", 3), pa.field("a", pa.binary(3), nullable=False)),
        (Enum("E", ("HEARTS", "SPADES")), pa.field("a", WORDS, False, SUIT)),
        (
            Union((NULL, Primitive(Kind.STRING, Logical("uuid")))),
            pa.field("a", pa.string(), True, UUID),
        ),
        (
            Array(Fixed("F", 16, Logical("uuid"))),
            pa.field("a", pa.list_(pa.field("item", pa.binary(16), False, UUID)), False),
        ),
        (
            Fixed("F", 9, Logical("decimal", 20, 3)),
            pa.field("a", pa.decimal128(20, 3), nullable=False),
        ),
        (
            Primitive(Kind.BYTES, Logical("decimal", 39, 0)),
            pa.field("a", pa.decimal256(39, 0), nullable=False),
        ),
    ],
)
def test_an_avro_type_has_its_column(avro: Schema, field: pa.Field) -> None:
    assert arrow_field(avro, "a").equals(field, check_metadata=True)


@pytest.mark.parametrize(
    ("avro", "message"),
    [
        (Union(()), "'a'. Give it types"),
        (Primitive(Kind.BYTES, Logical("decimal", 77, 1)), "decimal(77,1) of 'a' has more digits"),
        (Record("R", (Field("x", Reference("R")),)), "'R' contains itself"),
        (Reference("R"), "refers to 'R', which is not in it"),
        (
            Record("R", (Field("in", Record("S", (Field("x", Union(())),))),)),
            "the empty union of 'a.in.x'",
        ),
    ],
)
def test_what_no_column_can_hold_is_refused(avro: Schema, message: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        arrow_field(avro, "a")
    assert message in str(refused.value)


def test_only_a_record_has_columns() -> None:
    with pytest.raises(InvalidSchema, match="Only a record has columns"):
        columns_of(Array(Record("R", ())))


def test_a_type_that_is_mentioned_again_is_written_out() -> None:
    schema = parse_schema(
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E",'
        '"symbols":["HEARTS","SPADES"]}},{"name":"b","type":["null","E"]}]}'
    )
    assert columns_of(schema).equals(
        pa.schema([pa.field("a", WORDS, False, SUIT), pa.field("b", WORDS, True, SUIT)]),
        check_metadata=True,
    )


Pair = tuple[pa.Field, pa.Field]  # a column, and what comes back


@st.composite
def columns(draw: Draw, *, depth: int = 3) -> list[Pair]:
    """Columns of all types to some depth."""
    names = draw(st.lists(st.sampled_from(["id", "a b", "größe", "int", "_x0041_"]), unique=True))
    return [_column(draw, name, depth) for name in names[:3]]


def _column(draw: Draw, name: str, depth: int) -> Pair:
    field, back = _field(draw, name, depth)
    if draw(st.sampled_from([False, False, True])):
        comment = {b"comment": draw(st.text(min_size=1, max_size=3)).encode()}
        field = field.with_metadata({**(field.metadata or {}), **comment})
        back = back.with_metadata({**(back.metadata or {}), **comment})
    return field, back


def _field(draw: Draw, name: str, depth: int) -> Pair:
    kinds = ["plain", "plain", "null", "uuid", "fixed", "enum"]
    if depth:
        kinds += ["list", "map", "entries", "struct"]
    nullable = draw(st.booleans())
    match draw(st.sampled_from(kinds)):
        case "null":
            return pa.field(name, pa.null()), pa.field(name, pa.null())
        case "uuid":
            kind, back = draw(
                st.sampled_from([(pa.large_string(), pa.string()), (pa.binary(16), pa.binary(16))])
            )
            return pa.field(name, kind, nullable, UUID), pa.field(name, back, nullable, UUID)
        case "fixed":
            kind = back = pa.binary(draw(st.integers(0, 3)))
        case "enum":
            kind = pa.dictionary(draw(st.sampled_from([pa.int8(), pa.uint16()])), pa.string())
            return pa.field(name, kind, nullable, SUIT), pa.field(name, WORDS, nullable, SUIT)
        case "list":
            item, back_item = _field(draw, "element", depth - 1)
            make = draw(st.sampled_from([pa.list_, pa.large_list, lambda of: pa.list_(of, 3)]))
            kind, back = make(item), pa.list_(back_item.with_name("item"))
        case "map":
            value, back_value = _field(draw, "value", depth - 1)
            key = draw(st.sampled_from([row[0] for row in PLAIN if row[2] == pa.string()]))
            kind, back = pa.map_(key, value), pa.map_(pa.string(), back_value)
        case "entries":
            key, _, back_key = draw(st.sampled_from(PLAIN_KEYS))
            value, back_value = _field(draw, "value", depth - 1)
            kind = pa.map_(key, value)
            entry = pa.struct([pa.field("key", back_key, nullable=False), back_value])
            back = pa.list_(pa.field("item", entry, nullable=False))
        case "struct":
            members = draw(columns(depth=depth - 1))
            kind, back = (pa.struct([pair[side] for pair in members]) for side in (0, 1))
        case _:
            kind, _, back = draw(st.sampled_from(PLAIN))
    return pa.field(name, kind, nullable), pa.field(name, back, nullable)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns())
def test_columns_come_back_as_the_table_says_at_any_depth(pairs: list[Pair]) -> None:
    record = record_of(pa.schema([field for field, _ in pairs]), "shop.Order")
    back = columns_of(record)
    assert back.equals(pa.schema([field for _, field in pairs]), check_metadata=True)
    assert record_of(back, "shop.Order") == record
    assert parse_schema(schema_text(record)) == record
    assert record_of(pa.struct([field for field, _ in pairs]), "shop.Order") == record


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(columns())
def test_the_record_of_columns_is_valid_to_fastavro(pairs: list[Pair]) -> None:
    record = record_of(pa.schema([field for field, _ in pairs]), "shop.Order")
    fastavro.parse_schema(json.loads(schema_text(record)))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records())
def test_any_schema_has_columns_or_is_refused_by_name(record: Record) -> None:
    try:
        found: Any = columns_of(record)
    except InvalidSchema:
        with pytest.raises(InvalidSchema, match=r"contains itself|one column|empty union"):
            columns_of(record)
        return
    assert len(found) == len(record.fields)
    assert arrow_type(expanded(record)) == pa.struct(list(found))
