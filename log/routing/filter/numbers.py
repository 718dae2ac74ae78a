"""Arithmetic. What does not fit is refused: no sum wraps around, nothing is divided by zero.

Integers are 64 bits wide, division and remainder truncate towards zero. Floats follow IEEE.
Decimals are exact, with DataFusion's number of places; a quotient has four more than its dividend.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps
from duolog.log.routing.filter.coerce import coerce, named
from duolog.log.routing.filter.kinds import (
    INTEGER,
    MAX_DIGITS,
    NULL,
    NUMBERS,
    Kind,
    common_type,
    decimal,
    digits,
    kind_of,
)
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Array, Refusal, Step, Values
from duolog.log.routing.filter.tree import Arithmetic, Negative

Kernel: TypeAlias = Callable[[Values, Values], Values]
DecimalKernel: TypeAlias = Callable[[Array, Array, int], Array]

_EXTRA_PLACES = 4  # of a quotient
_FLOATS: dict[str, Kernel] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
}


def number(part: Step, what: str) -> Step:
    """The part, if it is a number or could be one."""
    if kind_of(part.type) not in NUMBERS | {Kind.NULL, Kind.UNKNOWN}:
        raise Mistake(part.node, f"{what} needs a number, and {named(part)} is none.")
    return part


def arithmetic(node: Arithmetic, left: Step, right: Step) -> Step:
    """left + right, and the like."""
    for part in (left, right):
        number(part, f"`{node.op}`")
    if left.type is None or right.type is None:
        return steps.unknown(node)
    if NULL in (left.type, right.type):
        return steps.nothing(node, INTEGER if left.type == right.type else _known(left, right).type)
    kinds = {kind_of(left.type), kind_of(right.type)}
    if Kind.DECIMAL in kinds and Kind.FLOAT not in kinds:
        return _decimals(node, left, right)
    type_ = common_type(left.type, right.type)
    parts = [coerce(left, type_), coerce(right, type_)]
    if type_ == INTEGER:
        return steps.step(node, type_, parts, _INTEGERS[node.op], fails=True, whole=True)
    if node.op == "%":
        return steps.step(node, type_, parts, _float_remainder, whole=True)
    return steps.step(node, type_, parts, _FLOATS[node.op], whole=True)


def negative(node: Negative, part: Step) -> Step:
    """-part"""
    number(part, "`-`")
    if kind_of(part.type) in (Kind.NULL, Kind.UNKNOWN):
        return part
    return steps.step(node, part.type, [part], pc.negate_checked, fails=part.type == INTEGER)


def _known(left: Step, right: Step) -> Step:
    return right if left.type == NULL else left


def _no_zero(divisor: Array, dividend: Array) -> None:
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal(divisor.type) else 0, divisor.type)
    if pc.any(pc.and_(pc.equal(divisor, zero), dividend.is_valid())).as_py():
        raise Refusal("this divides by zero.")


def _integer_quotient(left: Array, right: Array) -> Array:
    _no_zero(right, left)
    return pc.divide_checked(left, right)


def _integer_remainder(left: Array, right: Array) -> Array:
    _no_zero(right, left)
    # The quotient by -1 can overflow; the remainder is that by 1.
    right = pc.if_else(pc.equal(right, -1), 1, right)
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


def _float_remainder(left: Array, right: Array) -> Array:
    type_, missing = left.type, pc.invert(pc.and_(left.is_valid(), right.is_valid()))
    with np.errstate(all="ignore"):
        found = np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False))
    return pa.array(found, type_, mask=missing.to_numpy(zero_copy_only=False))


_INTEGERS: dict[str, Kernel] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": _integer_quotient,
    "%": _integer_remainder,
}


def _decimals(node: Arithmetic, left: Step, right: Step) -> Step:
    """Calculated in 256 bits; the result has at most 38 digits, as long as its parts have."""
    (left_digits, left_places), (right_digits, right_places) = digits(left.type), digits(right.type)
    left_whole, right_whole = left_digits - left_places, right_digits - right_places
    room = 38 if max(left_digits, right_digits) <= 38 else MAX_DIGITS
    places = max(left_places, right_places)
    match node.op:
        case "+" | "-":
            size = max(left_whole, right_whole) + places + 1
        case "*":
            places = left_places + right_places
            size = left_digits + right_digits + 1
        case "/":
            places = left_places + _EXTRA_PLACES
            size = left_whole + right_places + places
        case _:
            size = min(left_whole, right_whole) + places
    if places > room:
        raise Mistake(node, f"`{node.op}` has {places} places here: CAST one side to fewer.")
    result = decimal(max(min(size, room), places, 1), places)
    kernel = _DECIMALS[node.op]
    return steps.step(
        node,
        result,
        [left, right],
        lambda a, b: kernel(_wide(a), _wide(b), places).cast(result),
        fails=True,
        whole=True,
    )


def _wide(values: Array) -> Array:
    precision, scale = digits(values.type)
    return values.cast(pa.decimal256(precision, scale))


def _resized(values: Array, precision: int) -> Array:
    return values.cast(pa.decimal256(precision, values.type.scale))


def _decimal_sum(kernel: Kernel) -> DecimalKernel:
    wide = MAX_DIGITS - 1

    def run(left: Array, right: Array, places: int) -> Array:
        type_ = pa.decimal256(wide, places)
        return kernel(left.cast(type_), right.cast(type_))

    return run


def _decimal_product(left: Array, right: Array, _places: int) -> Array:
    # The kernel wants room for the digits of both and one more.
    right = _resized(right, min(right.type.precision, 38))
    left = _resized(left, min(left.type.precision, MAX_DIGITS - 1 - right.type.precision))
    return pc.multiply(left, right)


def _decimal_quotient(left: Array, right: Array, places: int) -> Array:
    return pc.round(_long_quotient(left, right), ndigits=places, round_mode="towards_zero")


def _decimal_remainder(left: Array, right: Array, places: int) -> Array:
    times = pc.trunc(_long_quotient(left, right))
    whole = left.type.precision - left.type.scale + right.type.scale
    times = pc.cast(times, pa.decimal256(min(max(whole, 1), MAX_DIGITS), 0))
    return _DECIMALS["-"](left, _decimal_product(times, right, places), places)


def _long_quotient(left: Array, right: Array) -> Array:
    """Cut off after at least as many places as a quotient has here."""
    _no_zero(right, left)
    # The kernel's places are left's and right's whole digits and one more. Its digits need room.
    right_digits = max(min(right.type.precision, 38), right.type.scale + _EXTRA_PLACES - 1)
    room = min(MAX_DIGITS - 1 - right_digits, 72 + left.type.scale - right.type.scale)
    left = _resized(left, min(left.type.precision, room))
    return pc.divide(left, _resized(right, right_digits))


_DECIMALS: dict[str, DecimalKernel] = {
    "+": _decimal_sum(pc.add),
    "-": _decimal_sum(pc.subtract),
    "*": _decimal_product,
    "/": _decimal_quotient,
    "%": _decimal_remainder,
}
