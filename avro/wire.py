"""Confluent's wire format, by whole columns: which schema a record's bytes were written with.

    0x00 | schema id u32 | body         what serializers write unless told otherwise
    0x01 | guid, 16 bytes | body        the same with the schema's guid
    a header `__key_schema_id` or `__value_schema_id`: 0x00 and id, or 0x01 and guid; then the
    record's bytes are the body alone

Readers look for the header first, then at the bytes, as Confluent's deserializers do. Of a header
that is there more than once the last counts, as in Java: a record that was read and written again
has its own behind the old one. All numbers are big endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.avro.schema import Kind, Primitive, Schema
from duolog.errors import InvalidRows, InvalidSchema, Undecodable
from duolog.log.routing.codec import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Rows: TypeAlias = npt.NDArray[np.int64]

SchemaId: TypeAlias = int | UUID
"""What a registry knows a schema by: its number, or its guid."""

HEADER_NAMES: Final = {Part.KEY: "__key_schema_id", Part.VALUE: "__value_schema_id"}
PREFIX_BYTES: Final = 5

_BY_ID, _BY_GUID = 0, 1
_GUID_PREFIX_BYTES = 17
_MAX_ID = 2**31 - 1
_MAX_COLUMN_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SchemaRows:
    """Rows of a column that were written with one schema, and their bodies in the same order."""

    schema: SchemaId
    rows: Rows
    bodies: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class Unframed:
    """A column taken apart. Each row is in one group or null; a schema may have two groups."""

    groups: tuple[SchemaRows, ...]
    null_rows: Rows


def framed(bodies: pa.BinaryArray, schema_id: int) -> pa.BinaryArray:
    """Each body behind the prefix that names its schema; what is null stays null."""
    if not 0 <= schema_id <= _MAX_ID:
        raise InvalidSchema(f"A schema id is 0 to {_MAX_ID}; got {schema_id}.")
    if _content_bytes(bodies) + len(bodies) * PREFIX_BYTES > _MAX_COLUMN_BYTES:
        raise InvalidRows(
            f"{len(bodies)} rows have more than 2 GiB of encoded bytes. Write fewer at once."
        )
    prefix = pa.scalar(bytes([_BY_ID]) + schema_id.to_bytes(4, "big"), pa.binary())
    return pc.binary_join_element_wise(prefix, bodies, pa.scalar(b"", pa.binary()))


def unframed(
    values: pa.BinaryArray, headers: pa.ListArray | None = None, part: Part = Part.VALUE
) -> Unframed:
    """Which schema each row was written with, and its body.

    `headers` is the column of a log's records; `part` says which of the two headers counts.
    Raises Undecodable, with the first row that it is about, for what is not in this format.
    """
    present = values.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    groups: list[SchemaRows] = []
    if headers is not None:
        by_header = list(_by_header(values, headers, HEADER_NAMES[part]))
        groups += by_header
        for group in by_header:
            present[group.rows] = False
        if by_header:
            rows = np.flatnonzero(present)
    groups += _by_prefix(values, rows)
    groups.sort(key=lambda group: int(group.rows[0]))
    nulls = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
    return Unframed(tuple(groups), nulls)


def schema_id_of_header(value: bytes) -> SchemaId:
    """The schema that a header names. What follows the id is not looked at."""
    if value[:1] == bytes([_BY_ID]) and len(value) >= PREFIX_BYTES:
        return int.from_bytes(value[1:PREFIX_BYTES], "big")
    if value[:1] == bytes([_BY_GUID]) and len(value) >= _GUID_PREFIX_BYTES:
        return UUID(bytes=value[1:_GUID_PREFIX_BYTES])
    raise Undecodable(
        f"A schema id header holds {value[:_GUID_PREFIX_BYTES].hex() or 'nothing'}: it must be "
        "0x00 and 4 bytes of an id, or 0x01 and 16 bytes of a guid."
    )


def bodies_are_bare(schema: Schema) -> bool:
    """Whether a body is the bytes themselves, without the length that Avro puts before them.

    Confluent's serializers leave it out where the whole schema is `bytes`.
    """
    return isinstance(schema, Primitive) and schema.kind is Kind.BYTES


def _by_header(values: pa.BinaryArray, headers: pa.ListArray, name: str) -> Iterator[SchemaRows]:
    items = headers.flatten()
    hits = np.flatnonzero(pc.fill_null(pc.equal(pc.struct_field(items, [0]), name), False))
    if not len(hits):
        return
    rows = pc.list_parent_indices(headers).to_numpy()[hits].astype(np.int64)
    last = np.append(rows[1:] != rows[:-1], True)
    rows, hits = rows[last], hits[last]
    named = pc.struct_field(items, [1]).take(pa.array(hits))
    usable = pc.and_(named.is_valid(), values.is_valid().take(pa.array(rows))).to_numpy(
        zero_copy_only=False
    )
    rows, encoded = rows[usable], named.filter(pa.array(usable)).dictionary_encode()
    for code, of_code in _grouped(encoded.indices.to_numpy(), rows):
        try:
            schema = schema_id_of_header(encoded.dictionary[code].as_py())
        except Undecodable as error:
            raise Undecodable(f"Row {of_code[0]}: {error}") from None
        yield SchemaRows(schema, of_code, _taken(values, of_code))


def _by_prefix(values: pa.BinaryArray, rows: Rows) -> Iterator[SchemaRows]:
    if not len(rows):
        return
    bounds, content = _bytes_of(values)
    starts, lengths = bounds[rows], np.diff(bounds)[rows]
    magic = _magic_bytes(rows, starts, lengths, content)
    by_id = magic == _BY_ID
    if by_id.all():
        yield from _by_id(values, rows, starts, content)
        return
    yield from _by_id(values, rows[by_id], starts[by_id], content)
    rows = rows[~by_id]
    chosen = _taken(values, rows)
    guids = pc.binary_slice(chosen, 1, _GUID_PREFIX_BYTES).dictionary_encode()
    for code, of_code in _grouped(guids.indices.to_numpy(), rows):
        guid = UUID(bytes=guids.dictionary[code].as_py())
        yield SchemaRows(guid, of_code, _without(_taken(values, of_code), _GUID_PREFIX_BYTES))


def _magic_bytes(
    rows: Rows,
    starts: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int32],
    content: npt.NDArray[np.uint8],
) -> npt.NDArray[np.uint8]:
    """The first byte of each row, all of them checked."""
    long_enough = lengths >= PREFIX_BYTES
    if long_enough.all():
        magic = content[starts]
    else:
        magic = np.zeros(len(rows), np.uint8)
        magic[long_enough] = content[starts[long_enough]]
    bad = ~long_enough | (magic > _BY_GUID)
    bad |= (magic == _BY_GUID) & (lengths < _GUID_PREFIX_BYTES)
    if bad.any():
        at = int(np.argmax(bad))
        if magic[at] > _BY_GUID:
            raise Undecodable(
                f"Row {rows[at]} begins with 0x{magic[at]:02x}, Confluent's wire format with 0x00. "
                "It was written without a schema registry: read it in the format it is in."
            )
        wanted = PREFIX_BYTES if magic[at] == _BY_ID else _GUID_PREFIX_BYTES
        raise Undecodable(
            f"Row {rows[at]} has {lengths[at]} bytes; Confluent's wire format begins with "
            f"{wanted}. It was cut short, or written without a schema registry."
        )
    return magic


def _by_id(
    values: pa.BinaryArray,
    rows: Rows,
    starts: npt.NDArray[np.int32],
    content: npt.NDArray[np.uint8],
) -> Iterator[SchemaRows]:
    ids: npt.NDArray[np.uint32] = np.zeros(len(rows), np.uint32)
    for place in range(1, PREFIX_BYTES):
        ids = (ids << np.uint32(8)) | content[starts + place]
    for schema_id, of_id in _grouped(ids, rows):
        yield SchemaRows(schema_id, of_id, _without(_taken(values, of_id), PREFIX_BYTES))


def _grouped(codes: npt.NDArray[np.integer[Any]], rows: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each code, in their order."""
    if not len(rows):
        return
    if (codes == codes[0]).all():
        yield int(codes[0]), rows
        return
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for chosen in np.split(order, cuts):
        yield int(codes[chosen[0]]), rows[chosen]


def _taken(values: pa.BinaryArray, rows: Rows) -> pa.BinaryArray:
    return values if len(rows) == len(values) else values.take(pa.array(rows))


def _without(values: pa.BinaryArray, prefix_bytes: int) -> pa.BinaryArray:
    # With an open end pyarrow computes its buffer's size beyond int64 and fails (seen in 26).
    return pc.binary_slice(values, prefix_bytes, _MAX_COLUMN_BYTES)


def _content_bytes(values: pa.BinaryArray) -> int:
    bounds, _ = _bytes_of(values)
    return int(bounds[-1]) - int(bounds[0])


def _bytes_of(values: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    _, offsets, content = values.buffers()
    if offsets is None:
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4)
    return bounds, np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
