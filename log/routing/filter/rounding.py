"""ABS, ROUND, FLOOR and CEIL, half away from zero, for each kind of number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps
from duolog.log.routing.filter.coerce import coerce
from duolog.log.routing.filter.kinds import DOUBLE, INTEGER, Kind, decimal, kind_of
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Array, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.log.routing.filter.tree import Call

_HALF_AWAY = "half_towards_infinity"  # from zero, that is
_MAX_PLACES = 18


def absolute(node: Call, part: Step) -> Step:
    return steps.step(
        node, part.type, [part], pc.abs_checked, fails=part.type == INTEGER, whole=True
    )


def floor(node: Call, part: Step) -> Step:
    return _to_whole(node, part, pc.floor)


def ceiling(node: Call, part: Step) -> Step:
    return _to_whole(node, part, pc.ceil)


def _to_whole(node: Call, part: Step, kernel: Callable[[Array], Array]) -> Step:
    if kind_of(part.type) is Kind.DECIMAL:
        type_ = decimal(part.type.precision + 1, part.type.scale)
        return steps.step(
            node, type_, [part], lambda values: kernel(values.cast(type_)), fails=True, whole=True
        )
    # As in DataFusion, an integer becomes a double here.
    number = coerce(part, DOUBLE) if part.type == INTEGER else part
    return steps.step(node, number.type, [number], kernel, whole=True)


def rounded(node: Call, part: Step, places: int = 0) -> Step:
    """round(part, places); places before the point are negative."""
    if abs(places) > _MAX_PLACES:
        raise Mistake(
            node.arguments[1], f"round takes from -{_MAX_PLACES} to {_MAX_PLACES} places."
        )
    kind = kind_of(part.type)
    if kind is Kind.FLOAT:
        return steps.step(
            node, part.type, [part], lambda values: _round_float(values, places), whole=True
        )
    scale = 0 if kind is Kind.INTEGER else part.type.scale
    if places >= scale:
        return part
    if kind is Kind.INTEGER:
        wide, type_ = decimal(20, 0), INTEGER
    else:
        wide = decimal(part.type.precision + 1, scale)
        type_ = decimal(wide.precision - scale + max(places, 0), max(places, 0))

    def run(values: Array) -> Array:
        return pc.round(values.cast(wide), ndigits=places, round_mode=_HALF_AWAY).cast(type_)

    return steps.step(node, type_, [part], run, fails=True, whole=True)


def _round_float(values: Array, places: int) -> Array:
    factor = pa.scalar(10.0**places, values.type)
    whole = pc.round(pc.multiply(values, factor), round_mode=_HALF_AWAY)
    return pc.divide(whole, factor)
