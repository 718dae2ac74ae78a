"""A filter's text: what it means, and that every mistake points at its word."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import InvalidFilter
from duolog.log.model import Filter
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.filter.text import to_sql
from duolog.log.routing.filter.tree import (
    And,
    Cast,
    Column,
    Comparison,
    Constant,
    Is,
    Not,
    Operation,
    Or,
    TypeName,
)
from duolog.log.routing.filter.words import MAX_BYTES

SCHEMA = pa.schema(
    [
        ("amount", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("name", pa.string()),
        ("status", pa.string()),
        ("paid", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("at_utc", pa.timestamp("us", "UTC")),
        ("ratio", pa.float64()),
        ("exact", pa.decimal128(38, 30)),
        ("wide", pa.decimal256(76, 0)),
        ("tags", pa.list_(pa.string())),
        ("address", pa.struct([("city", pa.string()), ("Zip", pa.int32()), ("zip", pa.int32())])),
        ("Order", pa.int64()),
        ("order id", pa.int64()),
    ]
)


def test_a_filter_keeps_its_text_and_its_tree() -> None:
    text = "amount > 100 AND before.status <> status OR op = 'update'"
    made = parse_filter(text, SCHEMA)
    assert made.text == text
    assert made.tree == Or(
        (
            And(
                (
                    Comparison(">", Column("row", ("amount",)), Constant(100)),
                    Comparison("<>", Column("before", ("status",)), Column("row", ("status",))),
                )
            ),
            Comparison("=", Operation(), Constant("update")),
        )
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a OR b AND NOT c", "a OR (b AND (NOT c))"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT NOT a", "NOT (NOT a)"),
        ("a + b * c = d", "(a + (b * c)) = d"),
        ("a - b - c = d", "((a - b) - c) = d"),
        ("a / b % c = d", "((a / b) % c) = d"),
        ("-a * b = -c", "((-a) * b) = (-c)"),
        ("-1 + 2 > - 3", "(-1 + 2) > -3"),
        ("- -1 = 1", "(-(-1)) = 1"),
        ("-a::int = 1", "(-(CAST(a AS integer))) = 1"),
        ("a || b || 'x' = c", "((a || b) || 'x') = c"),
        ("a BETWEEN 1 AND 2 AND b", "(a BETWEEN 1 AND 2) AND b"),
        ("a NOT BETWEEN 1 AND b + 2", "a NOT BETWEEN 1 AND (b + 2)"),
        ("a IN (1, 2) OR a NOT IN (3)", "(a IN (1, 2)) OR (a NOT IN (3))"),
        ("a NOT LIKE 'x' AND b ILIKE 'y'", "(a NOT LIKE 'x') AND (b ILIKE 'y')"),
        ("a LIKE 'x!%' ESCAPE '!'", "a LIKE 'x!%' ESCAPE '!'"),
        ("a IS NOT NULL", "a IS NOT NULL"),
        ("a IS NOT TRUE", "a IS NOT TRUE"),
        ("a IS DISTINCT FROM b + 1", "a IS DISTINCT FROM (b + 1)"),
        ("a != b", "a <> b"),
        ("(a = b) = c", "(a = b) = c"),
        ("(a = b) IS NULL", "(a = b) IS NULL"),
        ("a::int::text = 'x'", "CAST(CAST(a AS integer) AS varchar) = 'x'"),
        ("DATE '2024-01-31' = a", "DATE '2024-01-31' = a"),
        ("CAST('2024-01-31' AS DATE) = a", "DATE '2024-01-31' = a"),
        ("try_cast(a AS double precision) > 1", "TRY_CAST(a AS double) > 1"),
        ("cast(a AS numeric(10)) > 1", "CAST(a AS decimal(10, 0)) > 1"),
        ("char_length(a) = character_length(b)", "length(a) = length(b)"),
        ("substring(a FROM 2 FOR 3) = b", "substr(a, 2, 3) = b"),
        ("substring(a FROM 2) = b", "substr(a, 2) = b"),
        ("substring(a FOR 2) = b", "substr(a, 1, 2) = b"),
        ("substring(a, 2) = b", "substr(a, 2) = b"),
        ("position('x' IN a) = 1", "strpos(a, 'x') = 1"),
        ("trim(BOTH 'x' FROM a) = b", "trim(a, 'x') = b"),
        ("trim(LEADING FROM a) = b", "ltrim(a) = b"),
        ("trim(TRAILING 'x' FROM a) = b", "rtrim(a, 'x') = b"),
        ("trim('x' FROM a) = b", "trim(a, 'x') = b"),
        ("trim(both) = b", "trim(both) = b"),
        ("EXTRACT(YEAR FROM a) = 1", "extract(year FROM a) = 1"),
        ("CASE a WHEN 1 THEN b END", "CASE a WHEN 1 THEN b END"),
        ("case when a then b else c end", "CASE WHEN a THEN b ELSE c END"),
        ("a = 1e3 OR a = .5 OR a = 5.", "(a = 1000.0) OR (a = 0.5) OR (a = 5.0)"),
        ("a = 'it''s'", "a = 'it''s'"),
        ('"a ""b""" = \'\'', '"a ""b""" = \'\''),
        ("a = 1 -- one", "a = 1"),
        ("a /* the\n amount */ = 1", "a = 1"),
        (
            "date = 1 AND order = 2 AND key.value = 3",
            "(date = 1) AND (order = 2) AND (key.value = 3)",
        ),
        ("a = 00012345678901234567890", "a = 12345678901234567890"),
        ("OP = 'read'", "op = 'read'"),
        ('"op" = 1', '"op" = 1'),
        ("after.op = 1 AND before = 2", 'after.op = 1 AND "before" = 2'),
        ('"before".x = 1', '"before".x = 1'),
        ("BEFORE.Select = 1", "before.Select = 1"),
    ],
)
def test_text_has_this_meaning(text: str, meaning: str) -> None:
    tree = parse_filter(text).tree
    assert tree == parse_filter(meaning).tree
    assert parse_filter(to_sql(tree)).tree == tree


def test_a_quoted_op_is_the_column_and_not_the_operation() -> None:
    assert parse_filter('"op" IS NULL').tree == Is(Column("row", ("op",)), "NULL")
    assert parse_filter("op IS NULL").tree == Is(Operation(), "NULL")


def test_a_typed_text_is_a_cast() -> None:
    day = Cast(Constant("2024-01-31"), TypeName("date"), or_null=False)
    tree = parse_filter("day > DATE '2024-01-31'", SCHEMA).tree
    assert tree == Comparison(">", Column("row", ("day",)), day)


def test_not_in_is_a_negated_in() -> None:
    assert isinstance(parse_filter("a NOT IN (1)").tree, Not)


# «» stand around the word that the mistake points at.
MISTAKES = [
    ("«»", "is empty"),
    ("  «»", "is empty"),
    ("-- nothing«»", "is empty"),
    ("amount >«»", "found the end"),
    ("amount > 1 AND«»", "found the end"),
    ("amount > 1 «extra»", "`extra` has no place here"),
    ("amount > 1«;» amount > 2", "`;` means nothing"),
    ("(amount > 1«»", "Expected )"),
    ("amount > 1«)»", "has no place here"),
    ("amount > «'abc", "no closing quote"),
    ('«"amount > 1', "no closing quote"),
    ('«""» = 1', "name is missing"),
    ("amount > 1 «/* never", "not closed"),
    ("amount «/* a /* b */ */» > 1", "do not nest"),
    ("amount > «0x1F»", "not a number"),
    ("amount > «1_000»", "not a number"),
    ("amount > «1.2.3»", "not a number"),
    ("amount > «1e400»", "too large"),
    ("amount > «" + "9" * 39 + "»", "38 digits"),
    ("amount «~» 1", "means nothing"),
    ("tags«[»1] = 'x'", "means nothing"),
    ("amount = «?»", "no parameters"),
    ("amount = «$1»", "no parameters"),
    ("amount = «:limit»", "no parameters"),
    ("amount = «@limit»", "no parameters"),
    ("«*»", "stands for no value"),
    ("address.«*» = 1", "column's name"),
    ("«+»amount = 1", "Expected a value"),
    ("amount =«=» 1", "Expected a value"),
    ("amount = 1 «=» 1", "parentheses"),
    ("amount = 1 «IS» NULL", "parentheses"),
    ("name LIKE 'a' «LIKE» 'b'", "parentheses"),
    ("amount = «NOT» paid", "into parentheses"),
    ("amount NOT «=» 1", "Expected IN, LIKE or BETWEEN"),
    ("amount IN («)»", "at least one"),
    ("amount IN «1»", "Expected ("),
    ("amount IN («SELECT» 1)", "subqueries"),
    ("(«select» 1) = 1", "subqueries"),
    ("«EXISTS» (select 1)", "subqueries"),
    ("amount = «all»(1)", "use IN"),
    ("(amount«,» price) = (1, 2)", "several values"),
    ("amount BETWEEN 1 «OR» 2", "Expected AND"),
    ("name LIKE 'a' ESCAPE «'ab'»", "one character"),
    ("name LIKE 'a' ESCAPE «status»", "one character"),
    ("name LIKE «status»", "pattern must be a text"),
    ("amount IS «5»", "NULL, TRUE, FALSE or DISTINCT"),
    ("paid IS «UNKNOWN»", "NULL, TRUE, FALSE or DISTINCT"),
    ("CASE WHEN paid «ELSE» TRUE END", "Expected THEN"),
    ("CASE «ELSE» TRUE END", "Expected a value"),
    ("CASE WHEN paid THEN paid«»", "Expected END"),
    ("«count»(*) > 1", "aggregate"),
    ("«Sum»(amount) > 1", "aggregate"),
    ("«row_number»() OVER () = 1", "window function"),
    ("upper(name) «OVER» () = 'X'", "no place here"),
    ("upper(name) «FILTER» (WHERE paid) = 'X'", "no place here"),
    ("upper(«DISTINCT» name) = 'X'", "Expected a value"),
    ("upper(name «ORDER» BY name) = 'X'", "Expected )"),
    ("«now»() > at", "same answer"),
    ("«current_date» > day", "same answer"),
    ("«random»() > 0.5", "same answer"),
    ("«lenght»(name) = 1", "Did you mean `length`?"),
    ("«sha256»(name) = 'x'", "no function `sha256`"),
    ("\"upper\"«(»name) = 'X'", "no place here"),
    ("«upper»(name, status) = 'X'", "takes 1 argument, not 2"),
    ("«round»() = 1", "takes 1 or 2 arguments"),
    ("«replace»(name) = 'X'", "takes 3 arguments"),
    ("«coalesce»() = 'X'", "at least 1 argument"),
    ("«upper»() = 'X'", "takes 1 argument, not 0"),
    ("upper(«*») = 'X'", "stands for no value"),
    ("extract(«week» FROM day) = 1", "Expected one of year"),
    ("date_trunc(«'century'», at) = at", "takes one of"),
    ("date_trunc(«name», at) = at", "a text in quotes"),
    ("cast(amount AS «json») = 1", "Expected a type"),
    ("cast(amount AS «decimal») = 1", "DECIMAL(digits, places)"),
    ("cast(amount AS decimal(«39»)) = 1", "from 1 to 38"),
    ("cast(amount AS decimal(5, «6»)) = 1", "from 0 to 5"),
    ("cast(name AS varchar«(»3)) = 'x'", "no length"),
    ("cast(name AS timestamp «with» time zone) = at", "Expected )"),
    ("at «AT» TIME ZONE 'UTC' = at", "no place here"),
    ("«INTERVAL» '1 day' = amount", "Intervals"),
    ("«x»'ff' = name", "before a text"),
    ("«amounts» > 1", "Did you mean `amount`? There is: amount, price"),
    ("«zzz» > 1", "There is no column `zzz`. There is: amount, price"),
    ("«before.amounts» > 1", "no column `amounts`"),
    ("«address.town» = 'x'", "no column `town`"),
    ("«address.ZIP» = 1", "could be any of `Zip`, `zip`"),
    ("«name.first» = 'x'", "has no fields"),
    ("«amount»", "needs a condition"),
    ("«'true'»", "needs a condition"),
    ("amount «+» 1", "needs a condition"),
    ("«amount» AND paid", "AND needs a condition"),
    ("paid OR «name»", "OR needs a condition"),
    ("NOT «amount»", "NOT needs a condition"),
    ("«amount» IS TRUE", "IS TRUE needs a condition"),
    ("CASE WHEN «amount» THEN paid END", "WHEN needs a condition"),
    ("name «>» 5", "`name` (a text) and `5` (an integer) cannot be compared"),
    ("amount «=» '5'", "without quotes"),
    ("amount IN (1, «'x'»)", "cannot be compared"),
    ("amount «BETWEEN» 1 AND 'x'", "cannot be compared"),
    ("paid «=» 1", "cannot be compared"),
    ("day «=» 5", "cannot be compared"),
    ("day «=» name", "cannot be compared"),
    ("day = «'yesterday'»", "is no date"),
    ("day = «'2024-02-30'»", "is no date"),
    ("day = «'2024-01-01 00:00:00'»", "is no date"),
    ("DATE «'2024-13-01'» = day", "is no date"),
    ("at > «'noon'»", "is no timestamp"),
    ("at > «'2024-01-01T00:00:00Z'»", "names a zone"),
    ("TIMESTAMP «'2024-01-01T00:00:00+02:00'» = at", "names a zone"),
    ("tags IN («1»)", "only be tested with IS NULL"),
    ("tags «=» 'x'", "only be tested with IS NULL"),
    ("address «=» address", "only be tested with IS NULL"),
    ("amount + «name» > 1", "needs a number"),
    ("-«name» = 1", "needs a number"),
    ("abs(«name») = 1", "needs a number"),
    ("upper(«amount») = 'X'", "needs a text"),
    ("«amount» || name = 'X'", "needs a text"),
    ("«amount» LIKE '5%'", "LIKE needs texts"),
    ("extract(year FROM «name») = 1", "needs a date"),
    ("substr(name, «amount») = 'x'", "an integer in the filter itself"),
    ("round(ratio, «99») = 1", "from -18 to 18"),
    ("«CAST»(ratio AS varchar) = 'x'", "engines write such values differently"),
    ("«CAST»(at_utc AS timestamp) = at", "time zone"),
    ("«CAST»(amount AS date) = day", "different units"),
    ("«CAST»('x' AS int) = amount", "is no integer"),
    ("«CAST»(exact AS varchar) = 'x'", "more than 6 places"),
    ("«CAST»(name AS decimal(38, 38)) = 1", "at most 37 places"),
    ("«CAST»(paid AS decimal(5, 2)) = 1", "nothing in common"),
    ("wide «=» exact", "cannot be compared"),
    ("exact «*» exact = 1", "60 places"),
    ("«substr»(name, 1, -1) = 'x'", "negative length"),
    ("day = «'2024-01-01 0'»", "is no date"),
    ("at = «'9999-01-01 00:00:00.000000001'»", "too far from 1970"),
    ("COALESCE(amount, «name») = 1", "cannot be compared"),
    ("CASE WHEN paid THEN amount ELSE «name» END = 1", "cannot be compared"),
    ("«NULLIF»(amount, name) = 1", "cannot be compared"),
    ("op = «'UPDATE'»", "it is one of 'insert', 'update', 'delete', 'read'"),
    ("op IN ('insert', «'upsert'»)", "it is one of"),
]


@pytest.mark.parametrize(("marked", "reason"), MISTAKES)
def test_a_mistake_points_at_its_word(marked: str, reason: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(InvalidFilter) as raised:
        parse_filter(text, SCHEMA)
    assert (raised.value.text, raised.value.position) == (text, marked.index("«"))
    assert reason in raised.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "name > 5 OR upper(paid) = 'X'",
        "amounts > 1 AND before.x = after.y.z",
        "amount + name > price",
        "amount LIKE 'a%'",
        "CASE WHEN amount THEN name ELSE 'x' END = day",
        "amount",
    ],
)
def test_without_a_schema_columns_may_be_of_any_type(text: str) -> None:
    assert parse_filter(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        *("1 + 2", "'a' > 5", "NOT 'a'", "abs('x') = 1", "a = 1 AND 5", "a + 'x' = 1"),
        *("CASE WHEN a THEN 1 ELSE 'x' END = b", "DATE 'x' = a", "length(5) = a"),
    ],
)
def test_without_a_schema_literals_are_checked(text: str) -> None:
    with pytest.raises(InvalidFilter):
        parse_filter(text)


def test_a_name_matches_exactly_or_else_in_any_case() -> None:
    for text in ("order = 1", '"ORDER" = 1', '"order id" = 1', "AMOUNT = 1", "Address.Zip = 1"):
        assert parse_filter(text, SCHEMA).text == text


def test_a_text_over_the_limit_is_refused_and_one_within_it_is_not() -> None:
    filler = "x" * (MAX_BYTES - len("name = ''"))
    assert parse_filter(f"name = '{filler}'", SCHEMA).text.endswith("x'")
    for longer in (filler + "x", filler[1:] + "é"):
        with pytest.raises(InvalidFilter, match="8192 bytes"):
            parse_filter(f"name = '{longer}'", SCHEMA)


def test_a_long_list_and_a_long_chain_are_not_deep() -> None:
    options = ", ".join(str(each) for each in range(1000))
    chain = " OR ".join(f"amount = {each}" for each in range(400))
    for text in (f"amount IN ({options})", chain):
        assert parse_filter(text, SCHEMA).text == text


@pytest.mark.parametrize(
    ("start", "middle", "end"),
    [
        ("(", "paid", ")"),
        ("NOT ", "paid", ""),
        ("NOT (", "paid", ")"),
        ("-", "amount", " = 1"),
        ("- (", "amount", ")"),
        ("abs(", "amount", ")"),
        ("coalesce(1, ", "amount", ")"),
        ("CASE WHEN ", "paid", " THEN TRUE END"),
        ("CASE ", "paid", " WHEN TRUE THEN TRUE END"),
        ("CAST(", "paid", " AS BOOLEAN)"),
        ("paid = (", "paid", ")"),
        ("paid IN (", "paid", ")"),
        ("1 + ", "amount", ""),
        ("name || ", "name", ""),
        ("substring(", "name", " FROM 1)"),
        ("trim(BOTH FROM ", "name", ")"),
        ("extract(year FROM ", "day", ")"),
        ("position('a' IN ", "name", ")"),
    ],
)
@pytest.mark.parametrize("closed", [True, False])
def test_hostile_depth_is_refused(start: str, middle: str, end: str, *, closed: bool) -> None:
    times = (MAX_BYTES - 100) // len(start + end)
    with pytest.raises(InvalidFilter):
        parse_filter(start * times + middle + (end * times if closed else ""))


@pytest.mark.parametrize(("start", "end"), [("paid", "::boolean"), ("1 = amount", " - 1")])
def test_a_hostile_chain_is_refused(start: str, end: str) -> None:
    with pytest.raises(InvalidFilter, match="More than 64"):
        parse_filter(start + end * ((MAX_BYTES - 100) // len(end)))


def test_too_deep_is_said_at_the_word_that_is_too_much() -> None:
    with pytest.raises(InvalidFilter, match="More than 64") as raised:
        parse_filter("(" * 100 + "paid" + ")" * 100)
    assert raised.value.position == 64


WORDS = st.sampled_from(
    [
        *("amount", "name", "paid", "day", "at", "tags", "address", "before.", "after.", "op", '"'),
        *("1", "1.5", "1e3", "'a'", "''", "'2024-01-01'", "NULL", "TRUE", "'", "%", "*", "-", "+"),
        *("AND", "OR", "NOT", "IN", "(", ")", ",", "=", "<", ">", "<>", "LIKE", "ESCAPE", "IS"),
        *("BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS", "INT", "::", "||", "/"),
        *("DISTINCT", "FROM", "extract(", "year", "substring(", "trim(", "BOTH", "FOR", "upper("),
        *("coalesce(", "date_trunc(", "DATE", "TIMESTAMP", "INTERVAL", "decimal(", "SELECT", "--"),
        *("/*", "*/", "x'", ".", ";", "?", "$1", ":a", "\\", "\n", "é", "\x00", "\ud800", "round("),
    ]
)


@given(
    text=st.one_of(st.lists(WORDS, max_size=25).map(" ".join), st.text(max_size=40)),
    known=st.booleans(),
)
def test_any_text_is_a_filter_or_a_mistake_at_a_place(text: str, *, known: bool) -> None:
    made = parsed(text, SCHEMA if known else None)
    if isinstance(made, InvalidFilter):
        assert made.position is not None
        assert 0 <= made.position <= len(text)
    else:
        assert repr(parse_filter(to_sql(made.tree)).tree) == repr(made.tree)


def parsed(text: str, schema: pa.Schema | None) -> Filter | InvalidFilter:
    try:
        return parse_filter(text, schema)
    except InvalidFilter as mistake:
        return mistake


# --- what takes too long on large values


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("name ILIKE '%" + "a%" * 32 + "b'", "33 of these"),
        ("name LIKE 'a" + "_" * 33 + "'", "33 of these"),
        ("name ILIKE '" + "a" * 1001 + "'", "1001 characters"),
        ("name LIKE 'a%" + "b" * 1000 + "'", "1002 characters"),
        ("name LIKE upper('a%" + "b" * 1000 + "')", "1002 characters"),
        ("name LIKE replace('a_b', '_', '" + "_" * 40 + "')", "40 of these"),
        ("CASE WHEN name ILIKE '" + "%_" * 40 + "' THEN paid END", "80 of these"),
        ("paid OR NOT (name NOT LIKE 'a" + "_%" * 40 + "')", "80 of these"),
    ],
)
def test_a_pattern_that_would_be_looked_for_too_long_is_refused(
    condition: str, message: str
) -> None:
    with pytest.raises(InvalidFilter, match=message):
        parse_filter(condition, SCHEMA)
    with pytest.raises(InvalidFilter, match=message):
        parse_filter(condition)


@pytest.mark.parametrize(
    "pattern",
    [
        "'" + "_" * 8 + ("-" + "_" * 4) * 3 + "-" + "_" * 12 + "'",
        "'%" + "a" * 5000 + "%'",
        "'" + "a" * 5000 + "'",
        r"'\%\_" + "a" * 5000 + "%'",
    ],
)
def test_a_long_pattern_without_wildcards_in_between_is_fine(pattern: str) -> None:
    condition = f"name LIKE {pattern}"
    assert parse_filter(condition, SCHEMA).text == condition


@pytest.mark.parametrize(("patterns", "is_allowed"), [(32, True), (33, False)])
def test_patterns_of_a_filter_have_so_many_wildcards_together(
    patterns: int, is_allowed: bool
) -> None:
    condition = " OR ".join(f"name LIKE '%{each}_%%'" for each in range(patterns))
    if is_allowed:
        assert parse_filter(condition, SCHEMA).text == condition
    else:
        with pytest.raises(InvalidFilter, match="128 wildcards together"):
            parse_filter(condition, SCHEMA)


def test_constants_do_not_grow_where_a_filter_is_read() -> None:
    grown = "replace(" * 6 + "'a'" + ", 'a', 'aaaaaaaaaa')" * 6
    with pytest.raises(InvalidFilter, match="65536 bytes"):
        parse_filter(f"name = {grown}")
