"""Columns that a row may lack, said in plain Arrow.

A diff carries only what changed, so its columns differ from row to row. Null cannot say that: a
column may have changed *to* null. So such a column of type T is written as

    struct<value: T>, its field marked with the metadata `duolog: optional`

and a row lacks it where the struct is null. Text formats leave an absent column out. A format
with a fixed schema unwraps it to a nullable T and may list the names that are present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MARK = {b"duolog": b"optional"}


def optional_field(field: pa.Field) -> pa.Field:
    """This column, as one that a row may lack."""
    inner = pa.field("value", field.type, field.nullable)
    return pa.field(field.name, pa.struct([inner]), metadata=_MARK)


def is_optional(field: pa.Field) -> bool:
    """Whether rows may lack this column."""
    return (field.metadata or {}).get(b"duolog") == b"optional"


def unwrapped(field: pa.Field) -> pa.Field:
    """The column that an optional field stands for."""
    inner = field.type.field(0)
    return pa.field(field.name, inner.type, inner.nullable)


def optional(values: pa.Array, field: pa.Field, present: npt.NDArray[np.bool_]) -> pa.StructArray:
    """`values` where `present`; `field` is the optional one."""
    absent = None if present.all() else pa.array(~present)
    return pa.StructArray.from_arrays([values], fields=[field.type.field(0)], mask=absent)
