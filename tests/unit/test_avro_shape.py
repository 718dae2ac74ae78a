"""Columns that rows may lack, and the images of a diff, in the form that Avro has for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from duolog.avro.shape import shape_of
from duolog.errors import InvalidRows
from duolog.log.model import Envelope, PayloadMode
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.optional import optional_field

IMAGE = pa.struct(
    [
        optional_field(pa.field("id", pa.int64(), nullable=False)),
        optional_field(pa.field("qty", pa.int32())),
        optional_field(pa.field("note", pa.string())),
    ]
)
DIFF = pa.schema(
    [
        pa.field("_table", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("before", IMAGE),
        pa.field("after", IMAGE),
    ]
)
FLAT_DIFF = Subject("t", "orders", Part.VALUE, PayloadMode.DIFF, Envelope.FLAT)


def present(value: object) -> dict[str, object]:
    return {"value": value}


def test_a_diff_lists_what_its_images_hold() -> None:
    shape = shape_of(DIFF, FLAT_DIFF, has_images=True)
    rows = pa.array(
        [
            # an update of qty, to null
            {
                "_table": "o",
                "id": 1,
                "before": {"qty": present(2)},
                "after": {"qty": present(None)},
            },
            # an update that changed nothing
            {"_table": "o", "id": 2, "before": {}, "after": {}},
            # an insert
            {
                "_table": "o",
                "id": 3,
                "after": {"id": present(3), "qty": present(1), "note": present(None)},
            },
            # a delete of which only the key is known
            {"_table": "o", "id": 4, "before": {"id": present(4)}},
            None,
        ],
        pa.struct(list(DIFF)),
    )
    nothing = {"id": None, "qty": None, "note": None}
    assert shape.rows(rows).to_pylist() == [
        {
            "_table": "o",
            "id": 1,
            "before": {**nothing, "qty": 2},
            "after": nothing,
            "_changed": ["qty"],
        },
        {"_table": "o", "id": 2, "before": nothing, "after": nothing, "_changed": []},
        {
            "_table": "o",
            "id": 3,
            "before": None,
            "after": {"id": 3, "qty": 1, "note": None},
            "_changed": ["id", "qty", "note"],
        },
        {
            "_table": "o",
            "id": 4,
            "before": {**nothing, "id": 4},
            "after": None,
            "_changed": ["id"],
        },
        None,
    ]


def test_both_images_have_one_type_also_where_only_one_may_lack_columns() -> None:
    given = pa.schema(
        [
            pa.field("before", IMAGE),
            pa.field(
                "after",
                pa.struct(
                    [
                        pa.field("id", pa.int64(), nullable=False),
                        pa.field("qty", pa.int32(), nullable=False),
                        pa.field("note", pa.string()),
                    ]
                ),
            ),
        ]
    )
    subject = Subject("t", "orders", Part.VALUE, PayloadMode.FULL, Envelope.DEBEZIUM)
    columns = shape_of(given, subject, has_images=True).columns
    assert columns.names == ["before", "after"]
    assert columns.field("before").type == columns.field("after").type
    assert [field.nullable for field in columns.field("after").type] == [True, True, True]


def test_a_flat_column_that_rows_may_lack_is_null_there() -> None:
    given = pa.schema([pa.field("id", pa.int64()), optional_field(pa.field("qty", pa.int32()))])
    subject = Subject("t", "orders", Part.VALUE, PayloadMode.FULL)
    shape = shape_of(given, subject, has_images=False)
    rows = pa.array([{"id": 1}, {"id": 2, "qty": present(5)}], pa.struct(list(given)))
    assert shape.rows(rows).to_pylist() == [{"id": 1, "qty": None}, {"id": 2, "qty": 5}]


def test_a_column_with_the_name_of_the_list_is_refused() -> None:
    given = DIFF.append(pa.field("_changed", pa.string()))
    with pytest.raises(InvalidRows, match="lists what changed"):
        shape_of(given, FLAT_DIFF, has_images=True)
