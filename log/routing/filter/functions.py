"""The functions that a filter may call: what they take and what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import branches, moments, rounding, steps, strings
from duolog.log.routing.filter.coerce import coerce, named
from duolog.log.routing.filter.kinds import (
    BOOLEAN,
    DATE,
    INTEGER,
    MOMENTS,
    NULL,
    TEXT,
    Kind,
    Type,
    kind_of,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.numbers import number
from duolog.log.routing.filter.steps import Array, Step

if TYPE_CHECKING:
    from duolog.log.routing.filter.tree import Arithmetic, Call, FunctionName

Maker: TypeAlias = Callable[["Call", Sequence[Step]], Step]

_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_OPEN = frozenset((Kind.NULL, Kind.UNKNOWN))


def call(node: Call, parts: Sequence[Step]) -> Step:
    """The step of a function call."""
    return FUNCTIONS[node.function](node, parts)


def joined(node: Arithmetic, left: Step, right: Step) -> Step:
    """left || right"""
    both = texts((left, right), "`||`")
    return steps.step(node, TEXT, both, strings.join, whole=True, size=strings.joined_bytes)


def texts(parts: Sequence[Step], what: str) -> list[Step]:
    """The parts, if they are texts or could be."""
    for part in parts:
        if kind_of(part.type) not in _OPEN | {Kind.TEXT}:
            raise Mistake(part.node, f"{what} needs a text, and {named(part)} is none.")
    return [coerce(part, TEXT) for part in parts]


def _written(part: Step, kind: Kind) -> Any:
    """The value of an argument that has to stand in the filter itself."""
    if part.constant is None or kind_of(part.type) not in (kind, Kind.NULL):
        what = "a text in quotes" if kind is Kind.TEXT else "an integer"
        raise Mistake(part.node, f"This must be {what} in the filter itself, not {named(part)}.")
    return part.constant.as_py()


def _on_text(
    result: Type,
    kernel: Callable[..., Array],
    *kinds: Kind,
    size: Callable[..., int] | None = None,
) -> Maker:
    """A function of a text and of arguments that are written in the filter."""

    def make(node: Call, parts: Sequence[Step]) -> Step:
        (subject,) = texts(parts[:1], node.function)
        written = [_written(part, kind) for part, kind in zip(parts[1:], kinds, strict=False)]
        if parts[0].type == NULL or None in written:
            return steps.nothing(node, result)

        def run(values: Array) -> Array:
            return kernel(values, *written)

        # What is wrong with the written arguments shows without rows.
        steps.guarded(node, run, pa.array([], TEXT))
        made = steps.step(
            node,
            result,
            [subject],
            run,
            whole=True,
            size=None if size is None else lambda values: size(values, *written),
        )
        return steps.folded(made, subject)

    return make


def _trimmer(trim: Callable[..., Array]) -> Callable[..., Array]:
    def run(values: Array, letters: str = " ") -> Array:
        return trim(values, characters=letters) if letters else values

    return run


def _concat(node: Call, parts: Sequence[Step]) -> Step:
    joined = texts(parts, "concat")
    return steps.step(node, TEXT, joined, strings.concat, whole=True, size=strings.joined_bytes)


def _on_number(make: Callable[..., Step]) -> Maker:
    """A function of a number, and of integers that are written in the filter."""

    def check(node: Call, parts: Sequence[Step]) -> Step:
        number(parts[0], node.function)
        written = [_written(part, Kind.INTEGER) for part in parts[1:]]
        if parts[0].type is None:
            return steps.unknown(node)
        if parts[0].type == NULL or None in written:
            return steps.nothing(node, INTEGER)
        return make(node, parts[0], *written)

    return check


def _moment(part: Step, what: str) -> Step:
    if kind_of(part.type) not in _OPEN | MOMENTS:
        raise Mistake(part.node, f"{what} needs a date or a timestamp, and {named(part)} is none.")
    return part


def _extract(node: Call, parts: Sequence[Step]) -> Step:
    unit, part = _written(parts[0], Kind.TEXT), _moment(parts[1], "extract")
    if part.type == NULL:
        return steps.nothing(node, INTEGER)
    return steps.step(
        node, INTEGER, [part], lambda values: moments.extract(unit, values), whole=True
    )


def _date_trunc(node: Call, parts: Sequence[Step]) -> Step:
    unit, part = _written(parts[0], Kind.TEXT), _moment(parts[1], "date_trunc")
    if unit is None or unit.lower() not in _TRUNCATED:
        raise Mistake(parts[0].node, f"date_trunc takes one of: {', '.join(_TRUNCATED)}.")
    if part.type in (None, NULL):
        return part
    type_ = pa.timestamp("us") if part.type == DATE else part.type
    return steps.step(
        node,
        type_,
        [part],
        lambda values: moments.truncate(unit.lower(), values),
        fails=True,
        whole=True,
    )


FUNCTIONS: dict[FunctionName, Maker] = {
    "abs": _on_number(rounding.absolute),
    "ceil": _on_number(rounding.ceiling),
    "coalesce": branches.coalesce,
    "concat": _concat,
    "contains": _on_text(BOOLEAN, pc.match_substring, Kind.TEXT),
    "date_trunc": _date_trunc,
    "ends_with": _on_text(BOOLEAN, pc.ends_with, Kind.TEXT),
    "extract": _extract,
    "floor": _on_number(rounding.floor),
    "left": _on_text(TEXT, strings.left, Kind.INTEGER),
    "length": _on_text(INTEGER, strings.length),
    "lower": _on_text(TEXT, strings.lower),
    "ltrim": _on_text(TEXT, _trimmer(pc.utf8_ltrim), Kind.TEXT),
    "nullif": branches.nullif,
    "replace": _on_text(TEXT, strings.replace, Kind.TEXT, Kind.TEXT, size=strings.replaced_bytes),
    "right": _on_text(TEXT, strings.right, Kind.INTEGER),
    "round": _on_number(rounding.rounded),
    "rtrim": _on_text(TEXT, _trimmer(pc.utf8_rtrim), Kind.TEXT),
    "starts_with": _on_text(BOOLEAN, pc.starts_with, Kind.TEXT),
    "strpos": _on_text(INTEGER, strings.place, Kind.TEXT),
    "substr": _on_text(TEXT, strings.substring, Kind.INTEGER, Kind.INTEGER),
    "trim": _on_text(TEXT, _trimmer(pc.utf8_trim), Kind.TEXT),
    "upper": _on_text(TEXT, strings.upper),
}
