"""Lists of every kind in one form, so that whoever walks nested columns knows only one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def as_list(array: pa.Array) -> pa.ListArray:
    """A list, large list, fixed-size list or map as a plain list over exactly its own values.

    A map becomes a list of struct<key, value>.
    """
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        offsets = np.arange(len(array) + 1, dtype=np.int64) * size
        values = array.values.slice(array.offset * size, len(array) * size)
    else:
        offsets = array.offsets.to_numpy().astype(np.int64)
        begin, end = int(offsets[0]), int(offsets[-1])
        offsets -= begin
        if pa.types.is_map(kind):
            values = pa.StructArray.from_arrays(
                [array.keys.slice(begin, end - begin), array.items.slice(begin, end - begin)],
                names=["key", "value"],
            )
        else:
            values = array.values.slice(begin, end - begin)
    missing = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=missing)
