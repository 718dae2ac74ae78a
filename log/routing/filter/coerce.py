"""Brings steps that meet in one operation to one type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import moments, steps
from duolog.log.routing.filter.kinds import (
    MOMENTS,
    NULL,
    NUMBERS,
    Kind,
    NoCommonType,
    Type,
    common_type,
    kind_of,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Step, Values
from duolog.log.routing.filter.text import to_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duolog.log.routing.filter.tree import Node


def coerce(step: Step, to: Type) -> Step:
    """The step with its values in a type that holds them: one that `common_type` gave."""
    if step.type is None or to is None or step.type == to:
        return step
    if step.type == NULL:
        return steps.nothing(step.node, to)

    def convert(values: Values) -> Values:
        if pa.types.is_timestamp(to):
            return moments.convert(values, to)
        # Into floats, an integer is rounded, as everywhere in SQL.
        return pc.cast(values, to, safe=not pa.types.is_floating(to))

    if step.constant is not None:
        return steps.constant(step.node, steps.guarded(step.node, convert, step.constant))
    return steps.step(step.node, to, [step], convert, fails=pa.types.is_timestamp(to))


def together(parts: Sequence[Step], blame: Node | None = None) -> tuple[list[Step], Type]:
    """The parts in their common type. Without one, `blame` or the part that differs is at fault."""
    settled = _settle_texts(parts)
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
