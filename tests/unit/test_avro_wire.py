"""Confluent's framing of Avro bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.common.serde import SchemaId as TheirSchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.schema import Kind, Primitive, Record
from duolog.avro.wire import (
    HEADER_NAMES,
    SchemaId,
    Unframed,
    bodies_are_bare,
    framed,
    schema_id_of_header,
    unframed,
)
from duolog.errors import DuologError, InvalidSchema, Undecodable
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.routing.codec import Part

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
OTHER_GUID = UUID("12345678-2336-4186-9674-299b90a802e2")
IDS = st.integers(0, 2**31 - 1)
BODIES = st.binary(max_size=20)
HEADERS_TYPE = RECORD_SCHEMA.field("headers").type


def column(values: Sequence[bytes | None]) -> Any:
    return pa.array(values, pa.binary())


def by_id(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def by_guid(guid: UUID) -> bytes:
    return b"\x01" + guid.bytes


def rows_of(parts: Unframed) -> dict[int, tuple[SchemaId, bytes] | None]:
    """What was found, by row."""
    found: dict[int, tuple[SchemaId, bytes] | None] = dict.fromkeys(parts.null_rows.tolist())
    for group in parts.groups:
        for row, body in zip(group.rows.tolist(), group.bodies.to_pylist(), strict=True):
            assert row not in found
            found[row] = (group.schema, body)
    return dict(sorted(found.items()))


def headers_column(rows: list[list[tuple[str, bytes | None]] | None]) -> Any:
    return pa.array(
        [
            None if row is None else [{"name": name, "value": value} for name, value in row]
            for row in rows
        ],
        HEADERS_TYPE,
    )


@settings(deadline=None)
@given(bodies=st.lists(st.none() | BODIES), schema_id=IDS, cut=st.integers(0, 5))
def test_frames_are_what_confluents_serializer_writes(
    bodies: list[bytes | None], schema_id: int, cut: int
) -> None:
    theirs = [
        None
        if body is None
        else prefix_schema_id_serializer(body, None, TheirSchemaId("AVRO", schema_id))
        for body in bodies[cut:]
    ]
    assert framed(column(bodies)[cut:], schema_id).to_pylist() == theirs


@settings(deadline=None)
@given(
    rows=st.lists(
        st.none()
        | st.tuples(st.sampled_from([1, 7, 2**31 - 1, 2**32 - 1, GUID, OTHER_GUID]) | IDS, BODIES)
    ),
    cut=st.integers(0, 3),
)
def test_a_column_of_many_schemas_falls_apart_row_for_row(
    rows: list[tuple[int | UUID, bytes] | None], cut: int
) -> None:
    values = column(
        [
            None
            if row is None
            else (by_guid(row[0]) if isinstance(row[0], UUID) else by_id(row[0])) + row[1]
            for row in rows
        ]
    )
    assert rows_of(unframed(values[cut:])) == dict(enumerate(rows[cut:]))


def test_groups_come_in_the_order_of_their_first_rows() -> None:
    values = column([None, by_id(9) + b"a", by_id(3) + b"b", by_id(9) + b"c"])
    parts = unframed(values)
    assert [group.schema for group in parts.groups] == [9, 3]
    assert [group.rows.tolist() for group in parts.groups] == [[1, 3], [2]]
    assert parts.null_rows.tolist() == [0]


@pytest.mark.parametrize("values", [[], [None, None]], ids=str)
def test_a_column_without_bytes_has_no_groups(values: list[None]) -> None:
    parts = unframed(column(values))
    assert parts.groups == ()
    assert len(parts.null_rows) == len(values)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"", "Row 2 has 0 bytes"),
        (b"\x00\x00\x00\x01", "Row 2 has 4 bytes"),
        (b'{"id": 1}', "Row 2 begins with 0x7b"),
        (b"\x02\x00\x00\x00\x01", "Row 2 begins with 0x02"),
        (by_guid(GUID)[:-1], "Row 2 has 16 bytes; Confluent's wire format begins with 17"),
    ],
)
def test_what_is_not_in_this_format_is_named_with_its_row(bad: bytes, told: str) -> None:
    with pytest.raises(Undecodable, match=told):
        unframed(column([by_id(1) + b"x", None, bad, b""]))


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=24)))
def test_random_bytes_are_read_or_refused_by_name(values: list[bytes | None]) -> None:
    try:
        found = rows_of(unframed(column(values)))
    except Undecodable:
        return
    for row, value in enumerate(values):
        got = found[row]
        if value is None:
            assert got is None
        else:
            assert got is not None
            head = by_guid(got[0]) if isinstance(got[0], UUID) else by_id(got[0])
            assert value == head + got[1]


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_an_id_that_no_registry_gives_out_is_refused(schema_id: int) -> None:
    with pytest.raises(InvalidSchema, match="schema id is 0 to"):
        framed(column([b"x"]), schema_id)


@pytest.mark.parametrize(
    ("header", "schema"),
    [(by_id(77), 77), (by_guid(GUID), GUID), (by_guid(GUID) + b"\x00", GUID), (by_id(0), 0)],
)
def test_a_header_names_a_schema_by_id_or_guid(header: bytes, schema: SchemaId) -> None:
    assert schema_id_of_header(header) == schema


@pytest.mark.parametrize("header", [b"", b"\x00\x00", b"\x01" + b"g" * 15, b"\x02" + b"g" * 16])
def test_a_header_that_names_none_is_refused(header: bytes) -> None:
    with pytest.raises(Undecodable, match="schema id header holds"):
        schema_id_of_header(header)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([*HEADER_NAMES.values(), "trace"]),
        st.none() | st.sampled_from([by_id(4), by_guid(GUID), by_guid(OTHER_GUID)]),
    ),
    max_size=3,
    unique_by=lambda header: header[0],  # of repeated ones Python's first counts, Java's last
)


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.none() | st.builds(lambda body: by_id(9) + body, BODIES), st.none() | HEADERS),
        max_size=12,
    ),
    part=st.sampled_from([Part.KEY, Part.VALUE]),
    cut=st.integers(0, 3),
)
def test_header_then_prefix_as_confluents_deserializer_reads(
    rows: list[tuple[bytes | None, list[tuple[str, bytes | None]] | None]], part: Part, cut: int
) -> None:
    values = column([value for value, _ in rows])[cut:]
    headers = headers_column([header for _, header in rows])[cut:]
    expected: dict[int, tuple[SchemaId, bytes] | None] = {}
    for row, (value, header) in enumerate(rows[cut:]):
        if value is None:
            expected[row] = None
            continue
        field = MessageField.KEY if part is Part.KEY else MessageField.VALUE
        schema = TheirSchemaId("AVRO")
        context = SerializationContext("t", field, headers=None if header is None else [*header])
        body = dual_schema_id_deserializer(value, context, schema).read()
        named = schema.guid if schema.id is None else schema.id
        expected[row] = None if named is None else (named, body)
    assert rows_of(unframed(values, headers, part)) == expected


def test_what_confluents_header_serializer_writes_is_read_with_an_empty_body_too() -> None:
    written: list[Any] = []
    context = SerializationContext("t", MessageField.VALUE, headers=written)
    body = header_schema_id_serializer(b"", context, TheirSchemaId("AVRO", 1, str(GUID)))
    parts = unframed(column([body]), headers_column([written]))
    assert rows_of(parts) == {0: (GUID, b"")}


def test_of_a_header_that_comes_again_the_last_counts() -> None:
    name = HEADER_NAMES[Part.VALUE]
    twice: list[tuple[str, bytes | None]] = [(name, by_id(1)), ("x", b"y"), (name, by_guid(GUID))]
    emptied: list[tuple[str, bytes | None]] = [(name, by_id(1)), (name, None)]
    parts = unframed(column([b"body", by_id(5) + b"b"]), headers_column([twice, emptied]))
    assert rows_of(parts) == {0: (GUID, b"body"), 1: (5, b"b")}


def test_a_damaged_header_is_named_with_its_row() -> None:
    name = HEADER_NAMES[Part.VALUE]
    headers = headers_column([None, [(name, by_id(1))], [(name, b"?")]])
    with pytest.raises(Undecodable, match=r"Row 2: A schema id header holds 3f"):
        unframed(column([by_id(1), b"a", b"b"]), headers)


def test_only_a_schema_of_bytes_alone_has_bare_bodies() -> None:
    assert bodies_are_bare(Primitive(Kind.BYTES))
    assert not bodies_are_bare(Primitive(Kind.STRING))
    assert not bodies_are_bare(Record("r", ()))


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=20))
def test_no_library_error_escapes(value: bytes, header: bytes) -> None:
    headers = headers_column([[(HEADER_NAMES[Part.VALUE], header)]])
    try:
        parts = unframed(column([value]), headers)
    except DuologError:
        return
    assert rows_of(parts)[0] == (schema_id_of_header(header), value)
