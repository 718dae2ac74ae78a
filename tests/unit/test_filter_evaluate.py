"""Which rows a filter keeps: each construct by example, the same as DataFusion where that can."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionContext

from duolog.errors import InvalidRows
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.filter.parse import parse_filter
from tests.unit.filter_answers import CASES, NAN, OPS, OURS, ROWS


def kept(condition: str, row: Any = ROWS, before: Any = None, op: Any = OPS) -> str:
    tree = parse_filter(condition, row.schema).tree
    answer = evaluate(tree, row, before=before, op=op)
    assert answer.type == pa.bool_()
    assert answer.null_count == 0
    return "".join("T" if each else "." for each in answer.to_pylist())


@pytest.mark.parametrize(("condition", "rows"), CASES + OURS)
def test_a_filter_keeps_these_rows(condition: str, rows: str) -> None:
    assert kept(condition) == rows


def test_these_are_the_answers_of_datafusion() -> None:
    context = SessionContext()
    context.register_record_batches("changes", [[ROWS]])
    answers = []
    for condition, _ in CASES:
        found = context.sql(f"SELECT {condition} AS kept FROM changes").collect()
        answer = pa.Table.from_batches(found).column("kept").to_pylist()
        answers.append((condition, "".join("T" if each else "." for each in answer)))
    assert answers == CASES


def test_many_branches_are_no_tower() -> None:
    branches = " ".join(f"WHEN n = {each} THEN {each}" for each in range(-7, 300))
    assert kept(f"CASE {branches} END < 1") == ".TT."
    options = ", ".join(f"nullif(n, {each})" for each in range(300))
    assert kept(f"coalesce({options}, 7) = 5") == "T..."
    assert kept(" OR ".join(f"10 / nullif(n, 0) = {each}" for each in range(-200, 0))) == ".T.."


# --- sides and operations

STATUS = pa.record_batch(
    {"status": ["a", "b", "c", "d"], "op": ["w", "x", "y", "z"], "Total": [1, 2, 3, 4]}
)
OLD = pa.record_batch(
    {
        "status": pa.array([None, "a", "c", None], pa.string()),
        "op": pa.array([None, "o", "y", None], pa.string()),
        "Total": pa.array([None, 1, 3, None], pa.int64()),
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("before.status <> status", ".T.."),
        ("before.status IS NULL", "T..T"),
        ("after.status IS NULL", "..T."),
        ("after.status = status", "TT.T"),
        ("op = 'update'", ".T.."),
        ("OP IN ('insert', 'read')", "T..T"),
        ("op <> 'delete'", "TT.T"),
        ("upper(op) = 'DELETE'", "..T."),
        ("\"op\" = 'x'", ".T.."),
        ("after.op = 'y' OR before.op = 'y'", "..T."),
        ("TOTAL > before.total", ".T.."),
        ("op = 'delete' AND status = 'c'", "..T."),
    ],
)
def test_old_rows_new_rows_and_operations_are_told_apart(condition: str, rows: str) -> None:
    assert kept(condition, STATUS, OLD) == rows


@pytest.mark.parametrize(
    ("condition", "rows"), [("before.status IS NULL", "TTTT"), ("before.total + 1 > 0", "....")]
)
def test_without_old_rows_their_columns_are_null(condition: str, rows: str) -> None:
    assert kept(condition, STATUS, None) == rows


def test_an_operation_can_come_as_a_dictionary_and_be_unknown() -> None:
    op = pa.array(["insert", None, "delete", "insert"]).dictionary_encode()
    assert kept("op = 'insert'", STATUS, OLD, op) == "T..T"
    assert kept("after.status IS NOT NULL", STATUS, OLD, op) == "TT.T"


def test_no_rows_give_no_answers() -> None:
    for condition, _ in (*CASES, *OURS):
        assert kept(condition, ROWS.slice(0, 0), None, OPS.slice(0, 0)) == ""


def test_a_part_of_a_batch_is_answered_like_the_whole() -> None:
    for condition, rows in (*CASES, *OURS):
        assert kept(condition, ROWS.slice(1, 2), None, OPS.slice(1, 2)) == rows[1:3], condition


# --- types


def test_a_struct_field_is_a_column_and_is_null_in_a_null_struct() -> None:
    city = pa.array(["Rome", "Bonn", "Rome", None]).dictionary_encode()
    inner = pa.StructArray.from_arrays([city], ["City"])
    mask = pa.array([False, False, True, False])
    row = pa.RecordBatch.from_arrays(
        [pa.StructArray.from_arrays([inner, pa.array([1, 2, 3, 4])], ["at", "n"], mask=mask)], ["x"]
    )
    assert kept("x.at.city = 'Rome'", row) == "T..."
    assert kept("X.n IS NULL", row) == "..T."
    assert kept("x IS NULL", row) == "..T."
    assert kept("x.n > 1", row.slice(1), op=OPS.slice(1)) == "T.T"


@pytest.mark.parametrize(
    "type_",
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
        *(pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal256(50, 3)),
        *(pa.dictionary(pa.int8(), pa.int64()), pa.dictionary(pa.int8(), pa.float64())),
    ],
)
def test_every_type_of_number_is_one(type_: Any) -> None:
    narrow = pa.array([1, 2, 3, None], pa.int8())
    row = pa.record_batch({"x": narrow.cast(getattr(type_, "value_type", type_))})
    if pa.types.is_dictionary(type_):
        row = pa.record_batch({"x": row.column(0).dictionary_encode()})
    conditions = ["x = 2", "x IN (2, 9)", "x + 1 = 3", "x * 2.5 = 5", "x % 3 = 2", "-x = -2"]
    conditions += ["x / 2 = 1 AND x > 1 AND x < 3", "x BETWEEN 1.5 AND 2.5", "round(x) = 2"]
    assert [kept(each, row) for each in conditions] == [".T.."] * len(conditions)


def test_half_floats_are_numbers() -> None:
    halves = pa.array(np.array([1.5, 2.0, 3.0, 0.0], np.float16), mask=np.array([0, 0, 0, 1], bool))
    assert kept("x >= 2", pa.record_batch({"x": halves})) == ".TT."


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.large_string())]
)
def test_every_type_of_text_is_one(type_: Any) -> None:
    values = pa.array(["EU", "eu", "US", None], getattr(type_, "value_type", type_))
    if pa.types.is_dictionary(type_):
        values = values.dictionary_encode()
    row = pa.record_batch({"x": values, "y": pa.array(["EU", "x", "y", "z"])})
    conditions = ["x = 'EU'", "x = y", "x IN ('EU', 'AS')", "x LIKE 'E%'", "x || y = 'EUEU'"]
    conditions += ["coalesce(x, y) = 'EU'", "lower(x) = 'eu' AND x < 'a'"]
    assert [kept(each, row) for each in conditions] == ["T..."] * len(conditions)


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_every_type_of_bytes_compares_with_text(type_: Any) -> None:
    row = pa.record_batch({"x": pa.array([b"EU", b"\xff\x00", b"US", None], type_)})
    assert [kept(each, row) for each in ("x = 'EU'", "x < 'F'")] == ["T..."] * 2
    assert kept("x IN ('US', 'EU')", row) == "T.T."


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_every_unit_and_zone_compare(unit: str, zone: str | None) -> None:
    stamps = pa.array([0, 1704067200, -1, None]).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
    row = pa.record_batch({"x": stamps if zone is None else stamps.cast(pa.timestamp(unit, zone))})
    assert kept("x > '2023-06-01'", row) == ".T.."
    assert kept("x IN ('1999-01-01') OR x < DATE '1970-01-02'", row) == "T.T."
    assert kept("extract(year FROM x) = 2024", row) == ".T.."


def test_a_decimal_of_places_before_the_point_is_a_number() -> None:
    tens = pa.array([Decimal("1E1"), Decimal("2E1"), None, Decimal("5E1")], pa.decimal128(3, -1))
    assert kept("x > 15", pa.record_batch({"x": tens})) == ".T.T"


def test_a_date_in_milliseconds_is_a_date() -> None:
    days = pa.array([dt.date(2024, 1, 1), None, dt.date(1969, 1, 1), dt.date(9999, 12, 31)])
    assert kept("x < '2024-01-02'", pa.record_batch({"x": days.cast(pa.date64())})) == "T.T."


def test_all_nan_are_equal_and_so_are_zeros() -> None:
    row = pa.record_batch({"x": [NAN, -NAN, -0.0, 1.0], "y": [-NAN, NAN, 0.0, NAN]})
    assert kept("x = y", row) == "TTT."
    assert kept("x < y", row) == "...T"
    assert kept("x IN (0.0, 2.0, 3.0, 4.0, 5.0)", row) == "..T."
    assert kept("CASE x WHEN 0.0 THEN TRUE END", row) == "..T."


def test_capitals_that_are_several_letters_are_those_of_unicode() -> None:
    letters = [chr(code) for code in (*range(0xC0, 0x180), *range(0x370, 0x530))]
    letters += [each for each in map(chr, range(0x180, 0xD800)) if len(each.upper()) > 1]
    words = [f"x{each}y" for each in letters if each.isalpha()]
    capitals, small = [each.upper() for each in words], [each.lower() for each in words]
    row = pa.record_batch({"x": words, "up": capitals, "low": small})
    op = pa.array(["read"] * len(words))
    assert set(kept("upper(x) = up AND lower(x) = low", row, op=op)) == {"T"}


# --- what cannot be


@pytest.mark.parametrize(
    ("condition", "columns", "message"),
    [
        ("price > 1", {"amount": [1], "name": ["x"]}, "no column `price`. There is: amount, name."),
        ("amount > 1", {"amounts": [1]}, "no column `amount`. Did you mean `amounts`?"),
        ("a.b > 1", {"a": [{"c": 1}]}, "In `a.b`: There is no column `b`. There is: c."),
        ("a.b > 1", {"a": [1]}, "`a` has no fields: it is of type int64"),
        ("ab = 1", {"Ab": [1], "aB": [2]}, "could be any of `Ab`, `aB`"),
        ("a > 5", {"a": ["x"]}, "In `a > 5`: `a` (a text) and `5` (an integer) cannot be compared"),
        ("a AND b", {"a": [1], "b": [True]}, "In `a`: AND needs a condition"),
        ("a = 'soon'", {"a": [dt.date(2024, 1, 1)]}, "In `'soon'`: 'soon' is no date"),
        ("a = 1", {"a": [[1]]}, "only be tested with IS NULL"),
        ("a = a", {"a": [dt.time(1)]}, "only be tested with IS NULL"),
        ("upper(a) = 'X'", {"a": [1]}, "In `a`: upper needs a text"),
        ("a + 1 > 0", {"a": [2**63 - 1]}, "In `a + 1`: the result goes beyond 64 bits"),
        ("-a > 0", {"a": [-(2**63)]}, "In `-a`: the result goes beyond 64 bits"),
        ("abs(a) > 0", {"a": [-(2**63)]}, "In `abs(a)`: the result goes beyond 64 bits"),
        ("a * a > 0", {"a": [2**40]}, "beyond 64 bits"),
        ("a / -1 > 0", {"a": [-(2**63)]}, "beyond 64 bits"),
        ("round(a, -1) > 0", {"a": [2**63 - 1]}, "In `round(a, -1)`: the result goes beyond 64"),
        ("1 / a > 0", {"a": [0]}, "In `1 / a`: this divides by zero"),
        ("1 % a > 0", {"a": [0]}, "divides by zero"),
        ("a / 0 > 0", {"a": [Decimal("1.5")]}, "divides by zero"),
        ("a % 0 > 0", {"a": [Decimal("1.5")]}, "divides by zero"),
        ("a * a > 0", {"a": [Decimal("9" * 38)]}, "too many digits"),
        ("CAST(a AS INT) = 1", {"a": ["one"]}, "In `CAST(a AS integer)`: 'one' is no integer"),
        ("CAST(a AS INT) = 1", {"a": [2**31]}, "'2147483648' is no integer"),
        ("CAST(a AS INT) = 1", {"a": [NAN]}, "'nan' is no integer"),
        ("CAST(a AS DECIMAL(3, 1)) = 1", {"a": [Decimal("99.95")]}, "'99.95' is no decimal(3, 1)"),
        ("CAST(a AS DATE) = b", {"a": ["x" * 50], "b": [None]}, f"'{'x' * 37}...' is no date"),
        ("CAST(a AS BOOLEAN)", {"a": ["maybe"]}, "'maybe' is no boolean"),
        ("CAST(a AS VARCHAR) = '1'", {"a": [1.5]}, "engines write such values differently"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_part_that_fails(
    condition: str, columns: dict[str, list[Any]], message: str
) -> None:
    row, op = pa.record_batch(columns), pa.array(["update"])
    tree = parse_filter(condition).tree
    with pytest.raises(InvalidRows) as raised:
        evaluate(tree, row, before=None, op=op)
    assert message in str(raised.value)


@pytest.mark.parametrize("stamp", ["2024-03-31 02:30:00", "2024-10-27 02:30:00"])
def test_a_clock_time_that_a_zone_skips_or_repeats_is_refused(stamp: str) -> None:
    row = pa.record_batch(
        {
            "x": pa.array([0], pa.timestamp("us", "Europe/Berlin")),
            "y": pa.array([dt.datetime.fromisoformat(stamp)], pa.timestamp("us")),
        }
    )
    with pytest.raises(InvalidRows, match="Europe/Berlin"):
        kept("x = y", row, op=OPS.slice(0, 1))


def test_a_timestamp_too_far_for_nanoseconds_is_refused_beside_such() -> None:
    far = pa.array([dt.datetime.fromisoformat("9999-12-31")], pa.timestamp("us"))
    row = pa.record_batch({"x": far, "y": pa.array([0], pa.timestamp("ns"))})
    with pytest.raises(InvalidRows, match="In `x`"):
        kept("x = y", row, op=OPS.slice(0, 1))


def test_each_row_needs_its_operation_and_its_old_row() -> None:
    with pytest.raises(InvalidRows, match="4 rows and 3 operations"):
        kept("n = 1", op=OPS.slice(1))
    with pytest.raises(InvalidRows, match="4 rows and 0 old ones"):
        kept("n = 1", before=ROWS.slice(4))


def test_a_task_needs_neither_sqlglot_nor_any_other_library() -> None:
    program = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("sqlglot", "rocksdict", "pydantic", "datafusion", "typer"):
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import json
import pyarrow as pa
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.filter.tree import from_json
assert not [m for m in sys.modules if m.endswith((".filter.parse", ".filter.grammar"))]
node = from_json(json.loads(sys.argv[1]))
row = pa.RecordBatch.from_pydict({"amount": [50, 150], "name": ["a", "b"]})
print(evaluate(node, row, before=None, op=pa.array(["insert", "update"])).to_pylist())
"""
    import json

    from duolog.log.routing.filter.tree import to_json

    stored = json.dumps(to_json(parse_filter("amount > 100 AND upper(name) LIKE 'B%'").tree))
    done = subprocess.run(
        [sys.executable, "-c", program, stored], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[False, True]", "")


# --- how large the values may become that a filter makes

_LARGE = pa.record_batch({"a": ["a" * 8000]})
_TENFOLD = "replace(" * 5 + "a" + ", 'a', 'aaaaaaaaaa')" * 5


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (f"length({_TENFOLD}) > 5", _LARGE),
        (f"concat({', '.join(['a'] * 400)}) > 'b'", pa.record_batch({"a": ["a" * 900_000]})),
        (f"length({' || '.join(['a'] * 60)}) > 5", pa.record_batch({"a": ["a" * 900_000]})),
        (
            f"concat({', '.join(['upper(a)'] * 100)}) > 'b'",
            pa.record_batch({"a": ["a" * 1_000_000]}),
        ),
        (f"'{'x' * 5000}' || a > 'b'", pa.record_batch({"a": ["a"] * 10_000})),
        (
            f"CASE WHEN a > 'b' THEN {_TENFOLD} ELSE coalesce({_TENFOLD}, a) END > 'b'",
            _LARGE,
        ),
        (f"a = 'b' OR ({_TENFOLD})::bigint > 1", _LARGE),
    ],
)
def test_values_that_become_too_large_are_refused_before_they_are_made(
    condition: str, rows: pa.RecordBatch
) -> None:
    tree = parse_filter(condition).tree
    op = pa.array(["insert"] * rows.num_rows)
    pool, usual = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(InvalidRows, match=r"more than \d+ bytes .* do with less"):
            evaluate(tree, rows, before=None, op=op)
    finally:
        pa.set_memory_pool(usual)
    highest = pool.max_memory()
    assert highest is not None
    assert highest < 48 << 20


def test_a_small_value_may_become_much_larger_and_a_large_batch_a_few_times() -> None:
    small = pa.record_batch({"a": ["a" * 1000]})
    op = pa.array(["insert"])
    condition = "length(" + "replace(" * 4 + "a" + ", 'a', 'aaaaaaaaaa')" * 4 + ") > 5"
    assert evaluate(parse_filter(condition).tree, small, before=None, op=op).to_pylist() == [True]
    large = pa.record_batch({"a": ["a" * 20_000_000]})
    for condition in (
        "length(lower(upper(a) || a || a)) > 5",
        " AND ".join(["upper(a) > 'A'"] * 60),
        "CASE "
        + " ".join(f"WHEN lower(a) = '{each}' THEN 0" for each in range(60))
        + " END IS NULL",
        "coalesce(" + ", ".join(["nullif(a, lower(a))"] * 60) + ") IS NULL",
    ):
        found = evaluate(parse_filter(condition).tree, large, before=None, op=op)
        assert found.to_pylist() == [True], condition
