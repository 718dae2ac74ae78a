"""The header that says where a record lies in the log, for those who want it, by whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def with_offset_header(records: Any, first_offset: int, name: str) -> Any:
    """A pa.RecordBatch of the log's schema; each record has its offset as its last header.

    The offset is written in digits.
    """
    count = records.num_rows
    at = records.schema.get_field_index("headers")
    field, headers = records.schema.field(at), records.column(at)
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    own = headers.flatten()
    ends = np.cumsum(counts + 1, dtype=np.int64)
    # Which of all headers, the records' own and then ours, stands where.
    order = np.empty(len(own) + count, np.int64)
    is_ours = np.zeros(len(order), bool)
    is_ours[ends - 1] = True
    order[is_ours] = np.arange(len(own), len(order))
    order[~is_ours] = np.arange(len(own))
    offsets = pa.array(np.arange(first_offset, first_offset + count, dtype=np.int64))
    names = pa.array([name]).take(pa.array(np.zeros(count, np.int64)))
    digits = offsets.cast(pa.string()).cast(pa.binary())
    children = pa.StructArray.from_arrays(
        [
            pa.concat_arrays([own.field("name"), names]).take(pa.array(order)),
            pa.concat_arrays([own.field("value"), digits]).take(pa.array(order)),
        ],
        fields=list(field.type.value_type),
    )
    starts = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    column = pa.ListArray.from_arrays(starts, children, type=field.type)
    return records.set_column(at, field, column)
