"""Brings steps that meet in one operation to one type."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.log.routing.filter import moments, steps
from duolog.log.routing.filter.decimals import to_floats
from duolog.log.routing.filter.kinds import (
    MOMENTS,
    NULL,
    NUMBERS,
    Kind,
    NoCommonType,
    Type,
    common_type,
    decimal,
    kind_of,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Array, Step
from duolog.log.routing.filter.text import to_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duolog.log.routing.filter.tree import Node


_MAX_FRACTION_DIGITS = 38


def coerce(step: Step, to: Type) -> Step:
    """The step with its values in a type that holds them: one that `common_type` gave."""
    if step.type is None or to is None or step.type == to:
        return step
    if step.type == NULL:
        return steps.nothing(step.node, to)

    def convert(values: Array) -> Array:
        if pa.types.is_timestamp(to):
            return moments.convert(values, to)
        if pa.types.is_decimal(values.type) and pa.types.is_floating(to):
            return to_floats(values, to)
        # Into floats, an integer is rounded, as everywhere in SQL.
        return values.cast(to, safe=not pa.types.is_floating(to))

    made = steps.step(step.node, to, [step], convert, fails=pa.types.is_timestamp(to), whole=True)
    return steps.folded(made, step)


def together(parts: Sequence[Step], blame: Node | None = None) -> tuple[list[Step], Type]:
    """The parts in their common type. Without one, `blame` or the part that differs is at fault."""
    settled = _settle_texts(_settle_fractions(parts))
    type_ = settled[0].type
    for part in settled[1:]:
        try:
            type_ = common_type(type_, part.type)
        except NoCommonType:
            raise Mistake(blame or part.node, _no_common_type(settled[0], part)) from None
    return [coerce(part, type_) for part in settled], type_


def named(step: Step) -> str:
    """A step for messages: what it is and how it is written."""
    kind = kind_of(step.type)
    what = f"of type {step.type}" if kind is Kind.OTHER else kind.value
    return what if step.type == NULL else f"`{to_sql(step.node)}` ({what})"


def _settle_fractions(parts: Sequence[Step]) -> Sequence[Step]:
    """Numbers like 0.1 are exact beside decimals, as long as no other floats are there."""
    floats = [part for part in parts if kind_of(part.type) is Kind.FLOAT]
    exact = {id(part): _exact(part) for part in floats}
    beside = any(kind_of(part.type) is Kind.DECIMAL for part in parts)
    if not beside or None in exact.values():
        return parts
    return [exact.get(id(part)) or part for part in parts]


def _exact(part: Step) -> Step | None:
    """A float written in the filter, as the decimal that it was written as."""
    value = None if part.constant is None else part.constant.as_py()
    if value is None or not math.isfinite(value):
        return None
    number = Decimal(repr(value))
    places = max(-int(number.as_tuple().exponent), 0)
    digits = max(number.adjusted() + 1, 1) + places
    if digits > _MAX_FRACTION_DIGITS:
        return None
    return steps.constant(part.node, pa.scalar(number, decimal(digits, places)))


def _settle_texts(parts: Sequence[Step]) -> list[Step]:
    """Texts written in the filter become dates or timestamps where they are beside such."""
    stamps = [part.type for part in parts if kind_of(part.type) in MOMENTS]
    if not stamps:
        return list(parts)
    type_ = stamps[0]
    for each in stamps[1:]:
        type_ = common_type(type_, each)
    return [
        steps.constant(
            part.node, steps.guarded(part.node, moments.literal, part.constant.as_py(), type_)
        )
        if kind_of(part.type) is Kind.TEXT and part.constant is not None and part.constant.is_valid
        else part
        for part in parts
    ]


def _no_common_type(left: Step, right: Step) -> str:
    kinds = {kind_of(left.type), kind_of(right.type)}
    hint = "CAST one of them."
    if Kind.TEXT in kinds and kinds & NUMBERS:
        hint = "write numbers without quotes, or CAST one of them."
    elif Kind.OTHER in kinds:
        hint = "values of this type can only be tested with IS NULL."
    return f"{named(left)} and {named(right)} cannot be compared: {hint}"
