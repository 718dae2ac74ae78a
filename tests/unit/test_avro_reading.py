"""Columns of values whose rows have different schemas, as Arrow and as JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import BodyDecoder, decoder_of
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.parse import parse_schema
from duolog.avro.reading import ValueReader
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.port import SchemaText
from duolog.avro.registry.service import RegistryService
from duolog.avro.to_arrow import columns_of
from duolog.avro.wire import framed
from duolog.errors import InvalidSchema, Undecodable, UnknownSchema
from duolog.log.routing.codec import Part

OLD = '{"type":"record","name":"o","fields":[{"name":"id","type":"long"}]}'
NEW = (
    '{"type":"record","name":"o","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":["null","string"],"default":null}]}'
)


@pytest.fixture
def registry() -> RegistryService:
    return RegistryService(MemoryDocuments())


def written(registry: RegistryService, text: str, rows: list[dict[str, object]]) -> list[bytes]:
    """Rows in the wire format, with a schema that is registered now."""
    schema = parse_schema(text)
    schema_id = registry.register("orders-value", SchemaText(text))
    columns = columns_of(schema)
    bodies = encoder_of(columns, schema).encode(pa.array(rows, pa.struct(list(columns))))
    return list(framed(bodies, schema_id).to_pylist())


def test_each_row_is_read_with_the_schema_that_wrote_it(registry: RegistryService) -> None:
    old = written(registry, OLD, [{"id": 1}, {"id": 3}])
    new = written(registry, NEW, [{"id": 2, "note": "é"}])
    values = pa.array([None, old[0], new[0], None, old[1]], pa.binary())
    reader = ValueReader(registry)
    decoded = [(group.rows.tolist(), group.values.to_pylist()) for group in reader.decode(values)]
    assert decoded == [([1, 4], [{"id": 1}, {"id": 3}]), ([2], [{"id": 2, "note": "é"}])]
    texts = reader.as_json(values).to_pylist()
    assert [text and json.loads(text) for text in texts] == [
        None,
        {"id": 1},
        {"id": 2, "note": "é"},
        None,
        {"id": 3},
    ]


@pytest.mark.parametrize(
    ("schema", "body", "text"),
    [
        ('"long"', b"\x18", b"12"),
        ('"string"', b'\x06a"b', b'"a\\"b"'),
        ('["null","int"]', b"\x00", b"null"),
        ('{"type":"array","items":"int"}', b"\x04\x02\x04\x00", b"[1,2]"),
        ('"bytes"', b"\x00\xff", b'"AP8="'),  # without a length, as Confluent writes it
    ],
)
def test_a_value_need_not_be_a_record(
    registry: RegistryService, schema: str, body: bytes, text: bytes
) -> None:
    schema_id = registry.register("s", SchemaText(schema))
    values = framed(pa.array([body], pa.binary()), schema_id)
    assert ValueReader(registry).as_json(values).to_pylist() == [text]


def test_a_column_of_nothing_stays_nothing(registry: RegistryService) -> None:
    nothing = pa.nulls(3, pa.binary())
    assert ValueReader(registry).decode(nothing) == []
    assert ValueReader(registry).as_json(nothing).to_pylist() == [None] * 3


def test_the_schema_may_be_named_by_a_header(registry: RegistryService) -> None:
    schema_id = registry.register("s", SchemaText('"long"'))
    headers = pa.array(
        [[{"name": "__value_schema_id", "value": b"\0" + schema_id.to_bytes(4, "big")}]],
        pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
    )
    values = pa.array([b"\x18"], pa.binary())
    (group,) = ValueReader(registry).decode(values, headers, Part.VALUE)
    assert group.values.to_pylist() == [12]


def test_what_nobody_registered_is_named(registry: RegistryService) -> None:
    with pytest.raises(UnknownSchema, match="77"):
        ValueReader(registry).decode(pa.array([b"\0\0\0\0\x4d\0"], pa.binary()))
    with pytest.raises(Undecodable, match=r"[Rr]ow 0"):
        ValueReader(registry).decode(pa.array([b'{"a":1}'], pa.binary()))


def test_a_schema_that_cannot_be_read_is_tried_once(
    registry: RegistryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written out it is too large, and to find that out takes long."""
    inner: object = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "long"}]}
    for depth in range(1, 16):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{depth - 1}"}]
        inner = {"type": "record", "name": f"R{depth}", "fields": fields}
    schema_id = registry.register("s", SchemaText(json.dumps(inner)))
    values = framed(pa.array([b"\x02"], pa.binary()), schema_id)
    tried: list[object] = []

    def counted(schema: object) -> BodyDecoder:
        tried.append(schema)
        return decoder_of(schema)  # type: ignore[arg-type]

    monkeypatch.setattr("duolog.avro.reading.decoder_of", counted)
    reader = ValueReader(registry)
    for _ in range(3):
        with pytest.raises(InvalidSchema, match="more than 10000 types"):
            reader.decode(values)
    assert len(tried) == 1
