"""Random rows and random conditions on them, as a filter and as DataFusion is asked."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

Item = TypeVar("Item")

# --- rows

TEXTS = st.one_of(
    st.sampled_from(
        [
            *("", "a", "ab", "b%", "a_b", "a\\b", "EU", "eu", "1", "-5", " 7 ", "1.5", "2.50"),
            *("1e3", "true", "no", "2020-02-29", "2020-02-30", "2020-02-29 10:11:12.5", "nan"),
            *("straße", "ΑΣ", "İx", "ŉ", "😀a", "a\nb", "99999999999999999999", "+3", "300"),
            *("2020-02-29T10:11:12+02:00", "20200229", "2020-2-9", "0001-01-01", "-0.005", ".5"),
            *("inf", "12.345", "128", "-129", "1.", "t", "0x1", "1e400", "9999999.995"),
        ]
    ),
    st.text("ab%_\\ ", max_size=4),
)
MOMENTS = st.one_of(
    st.datetimes(dt.datetime.fromisoformat("1700-01-01"), dt.datetime.fromisoformat("2200-01-01")),
    st.sampled_from(
        [
            *("1970-01-01", "1969-12-31T23:59:59.999999", "2020-02-29T10:11:12.500000"),
            *("2020-02-29", "2000-01-01T00:00:01"),
        ]
    ).map(dt.datetime.fromisoformat),
)
FAR_MOMENTS = st.one_of(
    MOMENTS, st.sampled_from(["0001-01-01", "9999-12-31"]).map(dt.datetime.fromisoformat)
)


def _no_negative_zero(number: float) -> float:
    """DataFusion's CASE tells -0.0 from 0.0."""
    return number + 0.0


DOUBLES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1.5, 2.5, -2.5, 0.1, 0.7, 1.1, 1e300, 5e-324, 100.0]),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 9007199254740993.0]),
    st.floats(-1000, 1000),
).map(_no_negative_zero)
SINGLES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 2.5, 16777216.0, float("nan"), float("inf")]),
    st.floats(-1000, 1000, width=32),
).map(_no_negative_zero)


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    small = st.integers(max(low, -5), 5)
    return st.one_of(small, small, st.sampled_from([low, high, high // 2]), st.integers(low, high))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    wide = decimal.Context(prec=80)
    return st.one_of(
        st.integers(-500, 500),
        st.sampled_from([0, 1, 7, 11, 15, 25]).map(lambda tenths: tenths * 10 ** (scale - 1)),
        st.sampled_from([top, -top]),
        st.integers(-top, top),
    ).map(lambda units: Decimal(units).scaleb(-scale, wide))


class Source(NamedTuple):
    """A column's type, what filters calculate it as, and how DataFusion is to see it."""

    type: Any
    kind: str
    values: st.SearchStrategy[Any]
    seen: str = "{}"


_BIG = "CAST({} AS BIGINT)"  # filters calculate all integers in 64 bits
SOURCES = [
    *(
        Source(getattr(pa, f"int{bits}")(), "integer", integers(bits), _BIG)
        for bits in (8, 16, 32, 64, 64, 64)
    ),
    *(
        Source(getattr(pa, f"uint{bits}")(), "integer", integers(bits, signed=False), _BIG)
        for bits in (8, 16, 32)
    ),
    Source(pa.uint64(), "decimal", integers(64, signed=False), "CAST({} AS DECIMAL(20, 0))"),
    Source(pa.decimal128(5, 2), "decimal", decimals(5, 2)),
    Source(pa.decimal128(10, 2), "decimal", decimals(10, 2)),
    Source(pa.decimal128(18, 6), "decimal", decimals(15, 6)),
    Source(pa.decimal128(38, 10), "decimal", decimals(15, 10)),
    Source(pa.float64(), "double", DOUBLES),
    Source(pa.float32(), "single", SINGLES),
    Source(pa.bool_(), "boolean", st.booleans()),
    Source(pa.string(), "text", TEXTS),
    Source(pa.large_string(), "text", TEXTS),
    Source(pa.dictionary(pa.int32(), pa.string()), "text", TEXTS, "CAST({} AS VARCHAR)"),
    Source(pa.binary(), "binary", st.binary(max_size=3)),
    Source(pa.date32(), "date", FAR_MOMENTS.map(lambda moment: moment.date())),
    Source(pa.timestamp("us"), "stamp", FAR_MOMENTS),
    Source(pa.timestamp("ms"), "stamp", MOMENTS.map(lambda m: m.replace(microsecond=1000))),
    Source(pa.timestamp("ns"), "stamp", MOMENTS),
    Source(pa.timestamp("us", "UTC"), "zoned", MOMENTS),
    Source(pa.timestamp("us", "Europe/Berlin"), "zoned", MOMENTS),
]


@dataclass(frozen=True)
class Rows:
    """Changes as a filter gets them."""

    sources: list[Source]
    row: Any
    before: Any
    op: Any

    def table(self) -> Any:
        """All that a condition can name in one table: c for the row, b before, a after it."""
        count = len(self.op)
        present = [None if op == "delete" else at for at, op in enumerate(self.op.to_pylist())]
        columns = {"op": self.op}
        for at, source in enumerate(self.sources):
            columns[f"c{at}"] = self.row.column(at)
            columns[f"a{at}"] = self.row.column(at).take(pa.array(present, pa.int64()))
            unknown = self.before is None
            columns[f"b{at}"] = pa.nulls(count, source.type) if unknown else self.before.column(at)
        return pa.RecordBatch.from_pydict(columns)


@st.composite
def change_rows(draw: Any) -> Rows:
    """A few rows, with a column for some of the kinds."""
    kinds = draw(st.sets(st.sampled_from([each.kind for each in SOURCES]), min_size=4))
    sources = [
        draw(st.sampled_from([each for each in SOURCES if each.kind == kind]))
        for kind in sorted(kinds)
    ]
    count = draw(st.integers(1, 8))
    words = st.sampled_from(["insert", "update", "delete", "read"])
    return Rows(
        sources,
        _batch(draw, sources, count),
        _batch(draw, sources, count) if draw(st.booleans()) else None,
        pa.array(draw(st.lists(words, min_size=count, max_size=count))),
    )


def _batch(draw: Any, sources: list[Source], count: int) -> Any:
    columns = {}
    for at, source in enumerate(sources):
        values = st.one_of(*[source.values] * 4, st.none())
        drawn = draw(st.lists(values, min_size=count, max_size=count))
        columns[f"c{at}"] = pa.array(drawn, source.type)
    return pa.RecordBatch.from_pydict(columns)


# --- conditions


class Expr(NamedTuple):
    """One expression in both spellings."""

    ours: str
    theirs: str


class Form(NamedTuple):
    """How an expression is made of others: their kinds, `!` for one that has to be a literal."""

    ours: str
    parts: str = ""
    theirs: str = ""

    def of(self, parts: list[Expr]) -> Expr:
        theirs = (self.theirs or self.ours).format(*(each.theirs for each in parts))
        return Expr(self.ours.format(*(each.ours for each in parts)), theirs)


LITERALS = {
    "integer": ["0", "1", "2", "-1", "-7", "100", "2147483648", "9223372036854775807"],
    "decimal": [f"CAST({each} AS DECIMAL(6, 2))" for each in ("1", "-2.5", "0", "99.99")],
    "double": ["0.0", "1.5", "-2.5", "1e3", "0.1", "3.0", "0.7", "1.1"],
    "single": [f"CAST({each} AS FLOAT)" for each in ("0.0", "1.5", "-2.25")],
    "boolean": ["TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"],
    "binary": ["'a'", "''", "'\x01'"],
    "date": ["DATE '2020-02-29'", "DATE '1969-12-31'"],
    "stamp": ["TIMESTAMP '2020-02-29 10:11:12.5'", "TIMESTAMP '2020-02-29 00:00:00'"],
    "zoned": ["NULL"],
}
KINDS = (*LITERALS, "text")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_NUMBERS = ("integer", "decimal", "double", "single")
_PAIRS = [
    *((left, right) for left in _NUMBERS for right in _NUMBERS),
    *((left, right) for left in ("date", "stamp") for right in ("date", "stamp")),
    *((kind, kind) for kind in ("text", "boolean", "binary", "zoned") for _ in "12"),
]
# DataFusion rounds a float beside a decimal to 15 places, a filter makes the decimal a float.
_BESIDE = {"double": "CAST({{{}}} AS DOUBLE)", "single": "CAST({{{}}} AS FLOAT)"}


def _seen(at: int, kind: str, other: str) -> str:
    return (_BESIDE.get(other, "{{{}}}") if kind == "decimal" else "{{{}}}").format(at)


def _comparisons(left: str, right: str) -> list[Form]:
    one, two, three = _seen(0, left, right), _seen(1, right, left), _seen(2, right, left)
    forms = [
        Form(f"({{}} {op} {{}})", f"{left} {right}", f"({one} {op} {two})") for op in _COMPARED
    ]
    return [
        *forms,
        *(
            Form(
                f"({{}} {op} {{}} AND {{}})",
                f"{left} {right} {right}",
                f"({one} {op} {two} AND {three})",
            )
            for op in ("BETWEEN", "NOT BETWEEN")
        ),
    ]


def _memberships(kind: str) -> list[Form]:
    """Without its optimizer, DataFusion takes what is in a list to be the same for all rows."""
    two = "({0} = {1} OR {0} = {2})"
    return [
        Form("({} IN ({}, {}))", f"{kind} {kind}! {kind}!", two),
        Form("({} NOT IN ({}, {}))", f"{kind} {kind} {kind}", f"(NOT {two})"),
        Form("({} IN ({}, NULL))", f"{kind} {kind}!", "({0} = {1} OR NULL)"),
        Form("({} NOT IN ({}, NULL))", f"{kind} {kind}", "(NOT ({0} = {1} OR NULL))"),
    ]


def _choices(kind: str) -> list[Form]:
    return [
        Form("CASE WHEN {} THEN {} ELSE {} END", f"boolean {kind} {kind}"),
        Form("CASE WHEN {} THEN {} WHEN {} THEN {} END", f"boolean {kind} boolean {kind}"),
        Form("CASE {} WHEN {} THEN {} ELSE {} END", f"text text! {kind} {kind}"),
        Form("CASE {} WHEN {} THEN {} END", f"integer integer {kind}"),
        # Without its optimizer, DataFusion knows no coalesce.
        Form(
            "coalesce({}, {})",
            f"{kind} {kind}",
            "CASE WHEN {0} IS NOT NULL THEN {0} ELSE {1} END",
        ),
        Form("nullif({}, {})", f"{kind} {kind}"),
    ]


def _casts(types: str, kinds: str) -> list[Form]:
    return [
        Form(f"{word}({{}} AS {to})", kind)
        for word in ("CAST", "TRY_CAST", "TRY_CAST")
        for to in types.split(";")
        for kind in kinds.split()
    ]


def _sums(*pairs: str) -> list[Form]:
    return [Form(f"({{}} {op} {{}})", pair) for pair in pairs for op in "+-*/%"]


# For each kind, groups of forms; a group is drawn, and then a form of it.
FORMS: dict[str, list[list[Form]]] = {
    "boolean": [
        *([form for pair in _PAIRS for form in _comparisons(*pair)] for _ in "1234"),
        [Form("({} AND {})", "boolean boolean"), Form("({} OR {})", "boolean boolean")],
        [Form(f"({{}} {op} {{}} {op} {{}})", "boolean boolean boolean") for op in ("AND", "OR")],
        [Form("(NOT {})", "boolean")],
        [form for kind in KINDS for form in _memberships(kind)],
        [Form(f"({{}} IS {no}NULL)", kind) for kind in KINDS for no in ("", "NOT ")],
        [Form(f"({{}} IS {test})", "boolean") for test in ("TRUE", "NOT TRUE", "FALSE")],
        [Form(f"({{}} {op} {{}})", "text text!") for op in ("LIKE", "NOT LIKE", "ILIKE")],
        [
            Form(f"{name}({{}}, {{}})", "text text!")
            for name in ("starts_with", "ends_with", "contains")
        ],
        [Form("(op = 'update')"), Form("(op IN ('insert', 'read'))"), Form("(op <> 'delete')")],
        _casts("BOOLEAN", "text integer boolean"),
        _choices("boolean"),
    ],
    "integer": [
        *(_sums("integer integer") for _ in "123"),
        [Form("(- {})", "integer"), Form("abs({})", "integer")],
        [Form(f"round({{}}, {places})", "integer") for places in (-1, 0, 2)],
        _casts("TINYINT;SMALLINT;INT;BIGINT", "text text double single decimal boolean integer"),
        [Form("length({})", "text"), Form("strpos({}, {})", "text text!")],
        [Form("position({1} IN {0})", "text text!")],
        [
            Form(f"extract({unit} FROM {{}})", kind)
            for unit in ("year", "month", "day", "hour", "minute", "second")
            for kind in ("date", "stamp")
        ],
        _choices("integer"),
    ],
    "decimal": [
        *(_sums("decimal decimal", "decimal integer", "integer decimal") for _ in "123"),
        [Form("(- {})", "decimal"), Form("abs({})", "decimal")],
        [Form(f"{name}({{}})", "decimal") for name in ("round", "floor", "ceil")],
        [Form("round({}, 1)", "decimal")],
        _casts(
            "DECIMAL(5, 2);DECIMAL(10);DECIMAL(20, 6);DECIMAL(38, 10)",
            "text integer decimal double",
        ),
        _choices("decimal"),
    ],
    "double": [
        *(
            _sums(*(f"double {kind}" for kind in _NUMBERS), "integer double", "decimal double")
            for _ in "12"
        ),
        [Form(f"{name}({{}})", "double") for name in ("abs", "round", "floor", "ceil", "-")],
        [Form("round({}, 2)", "double"), Form("floor({})", "integer")],
        _casts("DOUBLE", "text integer single double decimal boolean"),
        _choices("double"),
    ],
    "single": [
        _sums("single single", "single integer", "integer single"),
        [Form(f"{name}({{}})", "single") for name in ("abs", "round", "floor", "ceil", "-")],
        _casts("FLOAT", "text integer single double decimal boolean"),
        _choices("single"),
    ],
    "text": [
        [Form(f"{name}({{}})", "text") for name in ("upper", "lower", "trim", "ltrim", "rtrim")],
        [Form("trim({}, 'ab')", "text"), Form("trim(LEADING 'a' FROM {})", "text")],
        [Form(f"{name}({{}}, {n})", "text") for name in ("left", "right") for n in (-2, 0, 1, 3)],
        [Form(f"substr({{}}, {n})", "text") for n in (-2, 0, 1, 3)],
        [Form(f"substr({{}}, {n}, 2)", "text") for n in (-2, 0, 1, 3)],
        [Form("substring({} FROM 2 FOR 1)", "text"), Form("replace({}, 'a', 'xy')", "text")],
        [Form("({} || {})", "text text"), Form("concat({}, {})", "text text")],
        _casts("VARCHAR", "integer boolean date text"),
        _choices("text"),
    ],
    "binary": [_choices("binary")],
    "date": [_casts("DATE", "text text stamp zoned date"), _choices("date")],
    "stamp": [
        _casts("TIMESTAMP", "text"),
        # TRY_CAST is NULL in DataFusion beyond what nanoseconds reach, CAST is an error.
        [Form("CAST({} AS TIMESTAMP)", "date"), Form("CAST({} AS TIMESTAMP)", "stamp")],
        [
            Form(f"date_trunc('{unit}', {{}})", kind)
            for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
            for kind in ("date", "stamp")
        ],
        _choices("stamp"),
    ],
}
# Around what DataFusion makes of integers of 32 bits, and of NaN, whose sign it tells.
AROUND = {
    "integer": _BIG,
    "double": "nanvl({}, CAST('NaN' AS DOUBLE))",
    "single": "nanvl({}, CAST('NaN' AS FLOAT))",
}


class Conditions:
    """Draws expressions over the columns that there are."""

    def __init__(self, draw: Any, sources: list[Source]) -> None:
        self._draw = draw
        self._columns: dict[str, list[tuple[int, Source]]] = {}
        for at, source in enumerate(sources):
            self._columns.setdefault(source.kind, []).append((at, source))

    def expression(self, kind: str, depth: int) -> Expr:
        if depth <= 0 or kind not in FORMS or self._one_in(4):
            return self._leaf(kind)
        form = self._pick(self._pick(FORMS[kind]))
        made = form.of([self._part(part, depth - 1) for part in form.parts.split()])
        return Expr(made.ours, AROUND.get(kind, "{}").format(made.theirs))

    def _part(self, part: str, depth: int) -> Expr:
        literal = part.endswith("!")
        return self._literal(part[:-1]) if literal else self.expression(part, depth)

    def _leaf(self, kind: str) -> Expr:
        if kind not in self._columns or self._one_in(5):
            return self._literal(kind)
        at, source = self._pick(self._columns[kind])
        side, letter = self._pick([("", "c"), ("", "c"), ("before.", "b"), ("after.", "a")])
        return Expr(f"{side}c{at}", source.seen.format(f"{letter}{at}"))

    def _literal(self, kind: str) -> Expr:
        if kind == "text":
            quoted = self._draw(TEXTS).replace("'", "''")
            return Expr(f"'{quoted}'", f"'{quoted}'")
        text = self._pick(LITERALS[kind])
        return Expr(text, text)

    def _pick(self, options: list[Item]) -> Item:
        chosen: Item = self._draw(st.sampled_from(options))
        return chosen

    def _one_in(self, times: int) -> bool:
        return bool(self._draw(st.integers(1, times)) == times)


@st.composite
def conditions(draw: Any) -> tuple[Rows, Expr]:
    """Rows, and a condition on them."""
    rows = draw(change_rows())
    made = Conditions(draw, rows.sources).expression("boolean", draw(st.integers(1, 5)))
    return rows, made
