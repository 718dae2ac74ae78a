"""Decimals between their digits and floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter.kinds import DOUBLE, FLOAT, Type

if TYPE_CHECKING:
    from duolog.log.routing.filter.steps import Array


def with_places(values: Array, places: int) -> Array:
    """The same digits, read with the point elsewhere."""
    wide = pa.types.is_decimal256(values.type)
    type_ = (pa.decimal256 if wide else pa.decimal128)(values.type.precision, places)
    return pa.Array.from_buffers(type_, len(values), values.buffers(), offset=values.offset)


def to_floats(values: Array, to: Type) -> Array:
    """The nearest floats, for up to 15 digits."""
    # Arrow's own cast multiplies by 1e-6, say, and makes 0.09999999999999999 of 0.1.
    units = with_places(values, 0).cast(DOUBLE)
    floats = pc.divide(units, 10.0**values.type.scale)
    return floats.cast(FLOAT, safe=False) if to == FLOAT else floats
