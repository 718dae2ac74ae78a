"""A topic's schema does not change with what Spark believes of nulls."""

from __future__ import annotations

import pyarrow as pa

from duolog.connector.nullability import settled_nullability


def columns(*, nullable: bool) -> pa.Schema:
    def field(name: str, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, nullable=nullable)

    image = pa.struct([field("id", pa.int64()), field("note", pa.string())])
    return pa.schema(
        [
            field("id", pa.int64()),
            field("note", pa.string()),
            field("tags", pa.list_(field("item", pa.string()))),
            field("by", pa.map_(pa.string(), field("value", image))),
            field("after", image),
        ]
    )


def test_it_is_the_same_however_the_frame_was_made() -> None:
    settled = settled_nullability(columns(nullable=True), ["id"])
    assert settled == settled_nullability(columns(nullable=False), ["id"])
    assert [field.name for field in settled if not field.nullable] == ["id"]
    assert settled.field("tags").type.value_field.nullable
    assert settled.field("by").type.item_field.nullable
    assert settled.field("by").type.item_type.field("id").nullable
    assert [child.name for child in settled.field("after").type if not child.nullable] == ["id"]
