"""What routes make, in the form that Avro has for it.

A column that rows may lack becomes a nullable one: Avro's records have all their fields. That
loses what a diff is about, since a column may also have changed *to* null; so a diff gets one more
column,

    _changed    the names of the columns that its images hold

The images of a change, `before` and `after`, have the same columns, so that they are of one type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import PayloadMode
from duolog.log.routing.codec import Subject
from duolog.log.routing.optional import is_optional, unwrapped

IMAGES = ("before", "after")
CHANGED_FIELD = "_changed"


@dataclass(frozen=True, slots=True)
class Shape:
    """Columns as a route makes them, and as Avro takes them."""

    given: pa.Schema
    columns: pa.Schema
    has_images: bool
    lists_changes: bool

    def rows(self, rows: pa.StructArray) -> pa.StructArray:
        """The same rows in the columns of `columns`."""
        arrays = []
        for index, given in enumerate(self.given):
            values = rows.field(index)
            if is_optional(given):
                arrays.append(_unwrapped(values))
            elif self.has_images and given.name in IMAGES:
                arrays.append(_plain_image(values, self.columns.field(index)))
            else:
                arrays.append(values)
        if self.lists_changes:
            before, after = (rows.field(self.given.get_field_index(name)) for name in IMAGES)
            arrays.append(_changed(before, after))
        missing = rows.is_null() if rows.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=list(self.columns), mask=missing)


def shape_of(given: pa.Schema, subject: Subject, *, has_images: bool) -> Shape:
    """The columns that Avro takes for those that a route makes."""
    lists_changes = has_images and subject.payload is PayloadMode.DIFF
    fields = [unwrapped_nullable(field) if is_optional(field) else field for field in given]
    if has_images:
        image = _image_type(given)
        fields = [
            pa.field(field.name, image) if field.name in IMAGES else field for field in fields
        ]
    if lists_changes:
        if CHANGED_FIELD in given.names:
            raise InvalidRows(
                f"Column '{CHANGED_FIELD}' has the name under which the {subject} lists what "
                "changed. Rename it, or use the payload full."
            )
        fields.append(pa.field(CHANGED_FIELD, pa.list_(_NAME), nullable=False))
    return Shape(given, pa.schema(fields), has_images, lists_changes)


def unwrapped_nullable(field: pa.Field) -> pa.Field:
    """The column that an optional one stands for, null where a row lacks it."""
    return unwrapped(field).with_nullable(True)


_NAME = pa.field("item", pa.string(), nullable=False)


def _image_type(given: pa.Schema) -> pa.StructType:
    before, after = (given.field(name).type for name in IMAGES)
    if [field.name for field in before] != [field.name for field in after]:
        raise TypeError("both images of a route have the same columns")
    return pa.struct(
        [
            _nullable_where_either(_plain(old), _plain(new))
            for old, new in zip(before, after, strict=True)
        ]
    )


def _plain(field: pa.Field) -> pa.Field:
    return unwrapped_nullable(field) if is_optional(field) else field


def _nullable_where_either(old: pa.Field, new: pa.Field) -> pa.Field:
    return old if old.nullable else new


def _plain_image(values: pa.StructArray, wanted: pa.Field) -> pa.StructArray:
    arrays = [
        _unwrapped(values.field(index)) if is_optional(field) else values.field(index)
        for index, field in enumerate(values.type)
    ]
    missing = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=list(wanted.type), mask=missing)


def _unwrapped(values: pa.StructArray) -> pa.Array:
    """The values, null where their row lacks them."""
    return values.flatten()[0]


def _changed(before: pa.StructArray, after: pa.StructArray) -> pa.ListArray:
    """The names of the columns that the newer image holds."""
    names = [field.name for field in after.type]
    gone = after.is_null().to_numpy(zero_copy_only=False)
    held = np.where(gone[:, None], _held(before), _held(after))
    counts = held.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    chosen = np.nonzero(held)[1]
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(names).take(pa.array(chosen)), type=pa.list_(_NAME)
    )


def _held(image: pa.StructArray) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """By row and column, whether the image holds it."""
    exists = image.is_valid().to_numpy(zero_copy_only=False)
    columns = [
        image.field(index).is_valid().to_numpy(zero_copy_only=False)
        if is_optional(field)
        else np.ones(len(image), np.bool_)
        for index, field in enumerate(image.type)
    ]
    return np.column_stack([exists & column for column in columns])
