"""Arrow rows to Avro bodies, by whole columns.

    plan.py     columns and a schema -> nodes, once
    node.py     nodes: values of one Arrow type -> pieces of bytes of all rows
    bodies.py   pieces -> the bodies of the rows, one behind the other

The bytes are those that fastavro writes for the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.avro.encode.bodies import TooManyBytes
from duolog.avro.encode.buffers import validity
from duolog.avro.encode.node import Node, Unfit, bodies_of, rows_at_a_time
from duolog.avro.encode.pieces import Presence
from duolog.avro.encode.plan import node_for
from duolog.errors import InvalidRows

if TYPE_CHECKING:
    from duolog.avro.encode.bodies import Bodies
    from duolog.avro.schema import Schema


def encoder_of(columns: pa.Schema | pa.StructType, schema: Schema) -> BodyEncoder:
    """What writes rows of these columns as records of this schema.

    Raises InvalidRows for a column that cannot be written, a column that the schema lacks, and a
    field without a column and without a default.
    """
    return BodyEncoder(pa.struct(list(columns)), node_for(columns, schema))


@dataclass(frozen=True, slots=True)
class BodyEncoder:
    """Writes rows of one type in one schema. Picklable."""

    kind: pa.StructType
    node: Node

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """One body a row; null where the row is null.

        Raises InvalidRows, with row and column, for a value that the schema has no place for.
        """
        if not _is_alike(rows.type, self.kind):
            raise InvalidRows(
                f"The rows are of type {rows.type}, but the encoder was made for {self.kind}."
            )
        valid = validity(rows)
        try:
            present = None if valid is None else Presence(valid)
            bodies = bodies_of(self.node, rows, present, most_rows=rows_at_a_time(rows))
        except Unfit as unfit:
            raise InvalidRows(f"Row {unfit.row}, column '{unfit.path}': {unfit.reason}") from None
        except TooManyBytes:
            raise InvalidRows(
                f"The Avro bodies of these {len(rows)} rows have more than 2 GiB, which one column "
                "cannot hold. Hand over fewer rows at a time."
            ) from None
        return _column(bodies, None if valid is None else rows)


def _column(bodies: Bodies, nulls_of: pa.StructArray | None) -> pa.BinaryArray:
    missing = None
    null_count = 0
    if nulls_of is not None:
        missing = pa.array(validity(nulls_of)).buffers()[1]
        null_count = nulls_of.null_count
    return pa.BinaryArray.from_buffers(
        pa.binary(),
        len(bodies.offsets) - 1,
        [missing, pa.py_buffer(bodies.offsets.astype(np.int32)), pa.py_buffer(bodies.content)],
        null_count,
    )


def _is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types differ at most in what may be null, and in names that say nothing."""
    if one == other:
        return True
    if one.id != other.id or one.num_fields != other.num_fields:
        return False
    if pa.types.is_struct(one):
        return all(
            mine.name == yours.name and _is_alike(mine.type, yours.type)
            for mine, yours in zip(one, other, strict=True)
        )
    if pa.types.is_map(one):
        return _is_alike(one.key_type, other.key_type) and _is_alike(one.item_type, other.item_type)
    if one.num_fields == 1:
        sizes = [getattr(kind, "list_size", None) for kind in (one, other)]
        return sizes[0] == sizes[1] and _is_alike(one.value_type, other.value_type)
    return False
