"""What differs between two columns of the same type, row by row.

Null equals null and NaN equals NaN, at any depth. The entries of a map are compared in their
order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows
from duolog.log.routing.kinds import is_list_like
from duolog.log.routing.nested import as_list

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


def differs(before: pa.Array, after: pa.Array, name: str) -> Mask:
    """Where the two are not the same; `name` is the column's, for errors."""
    if isinstance(before, pa.ExtensionArray):
        before, after = before.storage, after.storage
    if pa.types.is_dictionary(before.type):
        before, after = before.dictionary_decode(), after.dictionary_decode()
    had, has = _valid(before), _valid(after)
    both = had & has
    return np.asarray((had != has) | (both & _values_differ(before, after, both, name)))


def _valid(array: pa.Array) -> Mask:
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _values_differ(before: pa.Array, after: pa.Array, both: Mask, name: str) -> Mask:
    """As `differs`, right only where both have a value."""
    kind = before.type
    if pa.types.is_null(kind):
        return np.zeros(len(before), np.bool_)
    if pa.types.is_struct(kind):
        changed = np.zeros(len(before), np.bool_)
        for index in range(kind.num_fields):
            changed |= differs(before.field(index), after.field(index), name)
        return changed
    if is_list_like(kind):
        return _lists_differ(as_list(before), as_list(after), both, name)
    if pa.types.is_floating(kind):
        # A null becomes NaN here, which does no harm: it is not in `both`.
        old = before.to_numpy(zero_copy_only=False)
        new = after.to_numpy(zero_copy_only=False)
        return np.asarray((old != new) & ~(np.isnan(old) & np.isnan(new)))
    try:
        compared = pc.not_equal(before, after)
    except pa.ArrowNotImplementedError as error:
        raise InvalidRows(
            f"Values of column '{name}' of type {kind} cannot be compared, so there is no diff. "
            "Cast the column, or route it with payload full or key."
        ) from error
    return np.asarray(compared.fill_null(False).to_numpy(zero_copy_only=False))


def _lists_differ(before: pa.ListArray, after: pa.ListArray, both: Mask, name: str) -> Mask:
    old_length = pc.list_value_length(before).fill_null(0).to_numpy()
    new_length = pc.list_value_length(after).fill_null(0).to_numpy()
    changed: Mask = old_length != new_length
    aligned = np.flatnonzero(both & ~changed & (old_length > 0))
    if aligned.size:
        rows = pa.array(aligned)
        elements = differs(before.take(rows).flatten(), after.take(rows).flatten(), name)
        lengths = old_length[aligned]
        changed[aligned] = np.logical_or.reduceat(elements, np.cumsum(lengths) - lengths)
    return changed
