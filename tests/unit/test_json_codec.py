"""JSON from Arrow columns, held against Python's own json."""

from __future__ import annotations

import base64
import json
import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.errors import InvalidRows
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.json_codec import JsonCodec
from duolog.log.routing.optional import optional, optional_field

SUBJECT = Subject("orders", "shop.orders", Part.VALUE)
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
CONTEXT = Context(prec=80)


def encode(array: pa.StructArray, codec: JsonCodec | None = None) -> list[str | None]:
    encoder = (codec or JsonCodec()).prepare(pa.schema(list(array.type)), SUBJECT)
    encoded = encoder.encode(array)
    assert encoded.type == pa.binary()
    assert len(encoded) == len(array)
    return [None if body is None else body.decode() for body in encoded.to_pylist()]


def texts(values: pa.Array, codec: JsonCodec | None = None) -> list[str]:
    """The JSON of single values."""
    rows = pa.StructArray.from_arrays([values], names=["x"])
    return [text.removeprefix('{"x":').removesuffix("}") for text in encode(rows, codec) if text]


# Values are generated as the numbers that Arrow stores, and what JSON should say is worked out
# from these with Python's own library.


def fraction(ticks: int, digits: int) -> str:
    for kept in range(0, digits + 1, 3):
        if ticks % 10 ** (digits - kept) == 0:
            return f".{ticks // 10 ** (digits - kept):0{kept}d}" if kept else ""
    raise AssertionError


def timestamp(ticks: int, kind: pa.DataType) -> str:
    digits = UNITS[kind.unit]
    seconds, rest = divmod(ticks, 10**digits)
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)  # noqa: DTZ001
    return moment.isoformat() + fraction(rest, digits) + ("" if kind.tz is None else "Z")


def time_of_day(ticks: int, kind: pa.DataType) -> str:
    digits = UNITS[kind.unit]
    seconds, rest = divmod(ticks, 10**digits)
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)  # noqa: DTZ001
    return moment.time().isoformat() + fraction(rest, digits)


def expected(value: Any, kind: pa.DataType) -> Any:
    """What json.loads should give back."""
    types = pa.types
    if value is None:
        return None
    if types.is_dictionary(kind):
        return expected(value, kind.value_type)
    if types.is_floating(kind):
        if math.isnan(value) or math.isinf(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        return value
    if types.is_decimal(kind):
        return f"{value:f}"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return base64.b64encode(value).decode()
    if types.is_date(kind):
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if types.is_time(kind):
        return time_of_day(value, kind)
    if types.is_timestamp(kind):
        return timestamp(value, kind)
    if types.is_struct(kind):
        return {field.name: expected(value[field.name], field.type) for field in kind}
    if types.is_map(kind):
        pairs = [(expected(k, kind.key_type), expected(v, kind.item_type)) for k, v in value]
        if types.is_string(kind.key_type):
            return dict(pairs)
        return [{"key": k, "value": v} for k, v in pairs]
    if types.is_nested(kind) or types.is_fixed_size_list(kind):
        return [expected(element, kind.value_type) for element in value]
    return value


def integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    if signed:
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.integers(0, 2**bits - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    small = st.integers(-1000, 1000).filter(lambda number: abs(number) <= limit)
    return (small | st.integers(-limit, limit)).map(lambda n: Decimal(n).scaleb(-scale, CONTEXT))


def ticks(unit: str, lowest_seconds: int, highest_seconds: int) -> st.SearchStrategy[int]:
    per_second = 10 ** UNITS[unit]
    lowest = max(lowest_seconds * per_second, -(2**63))
    highest = min(highest_seconds * per_second - 1, 2**63 - 1)
    spread = st.integers(lowest, highest)
    whole = st.integers(-10_000, 86_399).map(lambda s: s * per_second)
    return spread | whole.filter(lambda t: lowest <= t <= highest)


def scalar_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    types = pa.types
    if types.is_boolean(kind):
        return st.booleans()
    if types.is_integer(kind):
        return integers(kind.bit_width, signed=types.is_signed_integer(kind))
    if types.is_floating(kind):
        whole = st.integers(-1000, 1000).map(float)
        return whole | st.floats(width=kind.bit_width)
    if types.is_decimal(kind):
        return decimals(kind.precision, kind.scale)
    if types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return st.binary(max_size=9)
    if types.is_date(kind):
        return st.integers(-719_162, 2_932_896)
    if types.is_time(kind):
        return ticks(kind.unit, 0, 86_400)
    if types.is_timestamp(kind):
        return ticks(kind.unit, -62_135_596_800, 253_402_300_800)
    if types.is_null(kind):
        return st.none()
    return st.text(max_size=8) | st.text(alphabet='a"\\\n\t\x00\x1f/é€𝄞', max_size=8)


def nested_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    types = pa.types
    if types.is_dictionary(kind):
        return values_of(kind.value_type)
    if types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    if types.is_map(kind):
        keys = scalar_values(kind.key_type)
        return st.dictionaries(keys, values_of(kind.item_type), max_size=3).map(
            lambda entries: list(entries.items())
        )
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        return st.lists(values_of(kind.value_type), min_size=size, max_size=size)
    if types.is_nested(kind):
        return st.lists(values_of(kind.value_type), max_size=3)
    return scalar_values(kind)


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | nested_values(kind)


EXACT_TYPES = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.decimal128(5, 2), pa.decimal128(38, 18), pa.decimal128(38, 0), pa.decimal256(60, 30)),
    *(pa.decimal128(9, 9), pa.decimal128(12, -3), pa.decimal32(9, 8), pa.decimal64(18, 2)),
    *(pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
    *(pa.binary(), pa.large_binary(), pa.binary(5)),
    pa.date32(),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit) for unit in UNITS),
    *(pa.timestamp("us", "UTC"), pa.timestamp("ns", "America/New_York")),
]
TYPES = [*EXACT_TYPES, pa.float16(), pa.float32(), pa.float64()]
NAMES = st.sampled_from(["a", "b", 'c"d', "é\n", "value"])


def nested_types(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(NAMES, inner), max_size=3, unique_by=lambda field: field[0])
    return st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        inner.map(lambda kind: pa.map_(pa.int32(), kind)),
        fields.map(pa.struct),
    )


def types_of(leaves: list[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.recursive(st.sampled_from(leaves), nested_types, max_leaves=4)


@st.composite
def tables(draw: st.DrawFn, leaves: list[pa.DataType]) -> tuple[pa.StructArray, list[Any]]:
    """A struct column, cut out of a longer one, and what is in it."""
    fields = [
        pa.field(name, draw(types_of(leaves)))
        for name in draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    ]
    kind = pa.struct(fields)
    values = draw(st.lists(values_of(kind), max_size=6))
    begin = draw(st.integers(0, len(values)))
    end = draw(st.integers(begin, len(values)))
    return pa.array(values, kind)[begin:end], values[begin:end]


@settings(max_examples=80, deadline=None)
@given(tables(TYPES))
def test_what_is_written_reads_back_as_the_same_values(
    table: tuple[pa.StructArray, list[Any]],
) -> None:
    array, values = table
    for text, value in zip(encode(array), values, strict=True):
        if value is None:
            assert text is None
        else:
            assert text is not None
            assert same(json.loads(text), expected(value, array.type))


def same(found: Any, wanted: Any) -> bool:
    """Equal, and of the same types; floats of less than 64 bits within their precision."""
    if isinstance(wanted, float):
        narrow = np.float32(found) == np.float32(wanted)
        return isinstance(found, float) and (found == wanted or bool(narrow))
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(same(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return type(found) is type(wanted) and bool(found == wanted)


@settings(max_examples=60, deadline=None)
@given(tables(EXACT_TYPES))
def test_the_text_is_the_very_one_that_python_writes(
    table: tuple[pa.StructArray, list[Any]],
) -> None:
    array, values = table
    wanted = [
        value and json.dumps(expected(value, array.type), separators=(",", ":"), ensure_ascii=False)
        for value in values
    ]
    assert encode(array) == wanted


@settings(max_examples=30, deadline=None)
@given(tables(TYPES))
def test_a_row_is_written_alike_alone_and_in_any_batch(
    table: tuple[pa.StructArray, list[Any]],
) -> None:
    array, _ = table
    assert encode(array) == [
        text for row in range(len(array)) for text in encode(array[row : row + 1])
    ]


@given(st.lists(st.floats(), min_size=1))
def test_doubles_read_back_exactly(numbers: list[float]) -> None:
    for text, number in zip(texts(pa.array(numbers, pa.float64())), numbers, strict=True):
        if math.isfinite(number):
            assert repr(json.loads(text)) == repr(number)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_single_floats_are_written_with_no_more_digits_than_they_have(numbers: list[float]) -> None:
    array = pa.array(numbers, pa.float32())
    for text, number in zip(texts(array), array.to_numpy(), strict=True):
        assert np.float32(text) == number
        assert len(text.lstrip("-").replace(".", "").split("e")[0].strip("0")) <= 9


def test_floats_stay_floats_and_keep_their_sign() -> None:
    assert texts(pa.array([1.0, -0.0, 0.1, 1e300])) == ["1.0", "-0.0", "0.1", "1e+300"]


def test_what_json_has_no_number_for_is_named_in_a_string() -> None:
    written = texts(pa.array([math.nan, math.inf, -math.inf, None, 1.5]))
    assert written == ['"NaN"', '"Infinity"', '"-Infinity"', "null", "1.5"]


def test_integers_of_64_bits_are_exact_numbers() -> None:
    assert texts(pa.array([2**63 - 1, -(2**63)])) == ["9223372036854775807", "-9223372036854775808"]
    assert texts(pa.array([2**64 - 1], pa.uint64())) == ["18446744073709551615"]


def test_integers_of_64_bits_are_strings_when_asked_for() -> None:
    codec = JsonCodec(int64_as_string=True)
    assert texts(pa.array([2**63 - 1, None]), codec) == ['"9223372036854775807"', "null"]
    assert texts(pa.array([[1]], pa.list_(pa.uint64())), codec) == ['["1"]']
    assert texts(pa.array([1], pa.int32()), codec) == ["1"]


def test_decimals_are_plain_strings_with_all_their_digits() -> None:
    numbers = [Decimal(0), Decimal("-0.000000001"), Decimal("1.5"), None]
    assert texts(pa.array(numbers, pa.decimal128(20, 9))) == [
        '"0.000000000"',
        '"-0.000000001"',
        '"1.500000000"',
        "null",
    ]
    assert texts(pa.array([Decimal(1200)], pa.decimal128(5, -2))) == ['"1200"']


def test_fractions_of_a_second_are_as_long_as_needed() -> None:
    moments = pa.array([0, 1_500_000, 1_500_001, -1], pa.timestamp("us"))
    assert texts(moments) == [
        '"1970-01-01T00:00:00"',
        '"1970-01-01T00:00:01.500"',
        '"1970-01-01T00:00:01.500001"',
        '"1969-12-31T23:59:59.999999"',
    ]


def test_zoned_timestamps_are_written_in_utc() -> None:
    noon = datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert texts(pa.array([noon], pa.timestamp("ms", "Asia/Tokyo"))) == ['"2024-07-01T12:00:00Z"']


def test_dates_of_64_bits_are_dates() -> None:
    assert texts(pa.array([date(2024, 2, 29), None], pa.date64())) == ['"2024-02-29"', "null"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([2_932_897], pa.date32()),
        pa.array([-719_163], pa.date32()),
        pa.array([253_402_300_800], pa.timestamp("s")),
        pa.array([-62_135_596_800_001], pa.timestamp("ms", "UTC")),
        pa.array([86_400], pa.int32()).cast(pa.time32("s")),
    ],
    ids=["year 10000", "year 0", "second after 9999", "before year 1", "24:00:00"],
)
def test_a_time_without_text_is_refused_by_name(values: pa.Array) -> None:
    with pytest.raises(InvalidRows, match=r"Column 'x' .* holds"):
        texts(values)


def test_binary_is_base64_with_padding() -> None:
    values = pa.array([b"", b"a", b"ab", b"abc", None, bytes(range(256))])
    wanted = [f'"{base64.b64encode(v).decode()}"' for v in values.drop_null().to_pylist()]
    wanted.insert(4, "null")
    assert texts(values) == wanted


def test_only_what_json_demands_is_escaped() -> None:
    values = ['say "hi"', "back\\slash", "\x00\x1f", "\b\f\n\r\t", "/é\u2028\x7f𝄞", "plain"]
    wanted = [
        r'"say \"hi\""',
        r'"back\\slash"',
        r'"\u0000\u001f"',
        r'"\b\f\n\r\t"',
        '"/é\u2028\x7f𝄞"',
        '"plain"',
    ]
    assert texts(pa.array(values)) == wanted
    # One of many: only that one is rewritten.
    assert texts(pa.array(["plain"] * 9 + ['"'])) == ['"plain"'] * 9 + [r'"\""']


def test_maps_are_objects_only_when_their_keys_are_strings() -> None:
    assert texts(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))) == ['{"a":1}']
    assert texts(pa.array([[(1, None)]], pa.map_(pa.int8(), pa.int8()))) == [
        '[{"key":1,"value":null}]'
    ]


def test_a_row_without_columns_is_an_empty_object() -> None:
    assert encode(pa.array([{}, None], pa.struct([]))) == ["{}", None]
    assert texts(pa.array([{}, {}], pa.struct([]))) == ["{}", "{}"]


def test_no_rows_are_no_texts() -> None:
    kind = pa.struct([("t", pa.timestamp("us")), ("b", pa.binary()), ("l", pa.list_(pa.string()))])
    assert encode(pa.array([], kind)) == []


def test_columns_that_a_row_lacks_are_left_out() -> None:
    fields = [
        pa.field("id", pa.int64()),
        optional_field(pa.field("a", pa.string())),
        optional_field(pa.field("b", pa.float64())),
        pa.field("z", pa.int64()),
    ]
    numbers = pa.array([1, 2, 3])
    array = pa.StructArray.from_arrays(
        [
            numbers,
            optional(pa.array(["x", None, None]), fields[1], np.array([True, True, False])),
            optional(pa.array([0.5, 1.5, 2.5]), fields[2], np.array([False, True, False])),
            numbers,
        ],
        fields=fields,
    )
    assert encode(array) == [
        '{"id":1,"a":"x","z":1}',
        '{"id":2,"a":null,"b":1.5,"z":2}',
        '{"id":3,"z":3}',
    ]


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6))
def test_rows_that_lack_everything_are_still_there(presence: list[tuple[bool, ...]]) -> None:
    fields = [optional_field(pa.field(name, pa.int64())) for name in "abc"]
    masks = np.array(presence, np.bool_).reshape(-1, 3)
    columns = [
        optional(pa.array(np.full(len(masks), index)), field, masks[:, index])
        for index, field in enumerate(fields)
    ]
    array = pa.StructArray.from_arrays(columns, fields=fields)
    wanted = [{name: i for i, name in enumerate("abc") if row[i]} for row in presence]
    assert [json.loads(text or "") for text in encode(array)] == wanted


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (pa.duration("s"), "x"),
        (pa.list_(pa.duration("s")), "x"),
        (pa.struct([("y", pa.month_day_nano_interval())]), "x.y"),
        (pa.map_(pa.string(), pa.duration("us")), "x.value"),
    ],
    ids=str,
)
def test_types_without_a_form_are_refused_when_prepared(kind: pa.DataType, where: str) -> None:
    with pytest.raises(InvalidRows, match=f"Column '{where}' is of type .*shop.orders.* Cast"):
        JsonCodec().prepare(pa.schema([("x", kind)]), SUBJECT)


def test_encoders_travel() -> None:
    schema = pa.schema([optional_field(pa.field("a", pa.string())), pa.field("b", pa.int64())])
    encoder = JsonCodec(int64_as_string=True).prepare(schema, SUBJECT)
    travelled = pickle.loads(pickle.dumps(encoder))
    array = pa.StructArray.from_arrays(
        [optional(pa.array(["x"]), schema.field("a"), np.array([False])), pa.array([1])],
        fields=list(schema),
    )
    assert travelled.encode(array).to_pylist() == [b'{"b":"1"}']
