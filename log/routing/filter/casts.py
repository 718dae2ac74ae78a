"""CAST and TRY_CAST: what does not fit is refused by the first, and NULL by the second."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import moments, steps
from duolog.log.routing.filter.coerce import named
from duolog.log.routing.filter.conversions import CONVERSIONS, PLAIN_PLACES, TEXT_PLACES, only
from duolog.log.routing.filter.kinds import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    MOMENTS,
    NULL,
    TEXT,
    Kind,
    Type,
    decimal,
    kind_of,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Array, Refusal, Step, count
from duolog.log.routing.filter.tree import Cast, TypeName

_TYPES = {
    "boolean": BOOLEAN,
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), INTEGER),
    "float": FLOAT,
    "double": DOUBLE,
    "varchar": TEXT,
    "date": DATE,
    "timestamp": pa.timestamp("us"),
}


def cast(node: Cast, part: Step) -> Step:
    """CAST(part AS node.to)"""
    to = node.to
    type_ = decimal(to.precision, to.scale) if to.word == "decimal" else _TYPES[to.word]
    source, target = kind_of(part.type), kind_of(type_)
    if source is Kind.UNKNOWN:
        return Step(node, type_, part.run, may_fail=True)
    if part.type == NULL:
        return steps.nothing(node, type_)
    if source is target is Kind.TIMESTAMP and not part.type.tz:
        return part
    why_not = _why_not(part.type, to, source, target)
    if why_not:
        raise Mistake(node, f"{named(part)} cannot be cast to {to}: {why_not}")
    text = None if part.constant is None or node.or_null else part.constant.as_py()
    if isinstance(text, str) and target in MOMENTS:
        return steps.constant(node, steps.guarded(node, moments.literal, text, type_))
    if source is Kind.TEXT and target is Kind.TIMESTAMP:
        type_ = pa.timestamp("ns")
    convert = CONVERSIONS[source, target]

    def run(values: Array) -> Array:
        converted, fits = convert(values, to)
        return _checked(node, values, converted, pc.fill_null(fits, False))

    made = steps.step(node, type_, [part], run, fails=not node.or_null, whole=True)
    return steps.folded(made, part)


def _checked(node: Cast, values: Array, converted: Array, fits: Array) -> Array:
    misfits = pc.and_(values.is_valid(), pc.invert(fits))
    if count(misfits) and not node.or_null:
        first = str(values.filter(misfits)[0])
        shown = first if len(first) <= 40 else first[:37] + "..."
        raise Refusal(f"'{shown}' is no {node.to}. TRY_CAST would make it NULL.")
    return only(converted, fits)


def _why_not(type_: Type, to: TypeName, source: Kind, target: Kind) -> str:
    """Nothing, if there is such a cast."""
    if source is target is Kind.TIMESTAMP:
        return "it has a time zone. Compare it with a timestamp as it is."
    if target is Kind.TEXT and source in (Kind.FLOAT, Kind.TIMESTAMP):
        return "engines write such values differently. Compare it as it is."
    if target is Kind.TEXT and source is Kind.DECIMAL and type_.scale > PLAIN_PLACES:
        return f"it has more than {PLAIN_PLACES} places. Cast it to fewer first."
    if source is Kind.TEXT and to.scale > TEXT_PLACES:
        return f"a text gives at most {TEXT_PLACES} places."
    if (source, target) in CONVERSIONS:
        return ""
    if {source, target} & MOMENTS:
        return "engines count dates in different units. Compare with DATE '…' or TIMESTAMP '…'."
    return "the two have nothing in common."
