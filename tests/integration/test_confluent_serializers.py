"""Confluent's own client and serializers, unchanged, against our registry and our bytes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from pydantic import SecretStr

from duolog.avro.codec import AvroCodec
from duolog.avro.decode.decoder import decoder_of
from duolog.avro.embedded import open_log, registry_of
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.parse import parse_schema
from duolog.avro.reading import ValueReader
from duolog.avro.registry.app import registry_app
from duolog.avro.registry.client import RegistryClient
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.options import RegistryOptions
from duolog.avro.registry.port import SchemaReference as OurReference
from duolog.avro.registry.port import SchemaText
from duolog.avro.registry.resolving import resolved_schema
from duolog.avro.registry.service import RegistryService
from duolog.avro.registry.settle import RegisteredSchemas
from duolog.avro.registry.subject_names import SubjectNameStrategy, subject_name
from duolog.avro.wire import framed, unframed
from duolog.errors import IncompatibleSchema, InvalidSchema, UnknownSchema, UnknownSubject
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.routing.codec import Part, Subject
from tests.integration.confluent_values import CASES, SOME_UUID, Case
from tests.support.registry_server import make_certificate, serving
from tests.support.token_guard import TokenGuard

_topics = (f"orders{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with serving(registry_app(RegistryService(MemoryDocuments()))) as url:
        yield url


@pytest.fixture(scope="module")
def theirs(registry_url: str) -> Iterator[Any]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture(scope="module")
def ours(registry_url: str) -> Iterator[RegistryClient]:
    with client_of(registry_url) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return next(_topics)


def client_of(url: str, **more: str) -> RegistryClient:
    options = RegistryOptions.of({"schema.registry.url": url, **more}).connection
    assert options is not None
    return RegistryClient(options)


def record(name: str, *fields: tuple[Any, ...]) -> str:
    """A record's text; a third member of a field is its default."""
    members = [
        {"name": field[0], "type": field[1]} | ({"default": field[2]} if field[2:] else {})
        for field in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": members})


def value_of(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


EACH_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@EACH_CASE
def test_what_their_serializer_writes_we_read(
    theirs: Any, ours: RegistryClient, topic: str, case: Case
) -> None:
    serializer = AvroSerializer(theirs, record("R", ("v", case.avro)))
    written = [serializer({"v": value}, value_of(topic)) for value in case.values]
    (group,) = unframed(pa.array(written, pa.binary())).groups
    assert isinstance(group.schema, int)
    schema = resolved_schema(ours, ours.schema_by_id(group.schema))
    found = decoder_of(schema).decode(group.bodies).to_pylist()
    expected = case.values if case.in_arrow is None else case.in_arrow
    assert [row["v"] for row in found] == list(expected)


@EACH_CASE
def test_what_we_write_their_deserializer_reads(
    theirs: Any, ours: RegistryClient, topic: str, case: Case
) -> None:
    text = record("R", ("v", case.avro))
    subject = subject_name(SubjectNameStrategy.TOPIC, topic, Part.VALUE, "R")
    schema_id = ours.register(subject, SchemaText(text))
    given = case.values if case.in_arrow is None else case.in_arrow
    rows = pa.array([{"v": value} for value in given], pa.struct([case.field]))
    bodies = encoder_of(pa.schema([case.field]), parse_schema(text)).encode(rows)
    deserializer = AvroDeserializer(theirs)
    found = [
        deserializer(value, value_of(topic)) for value in framed(bodies, schema_id).to_pylist()
    ]
    assert [row["v"] for row in found] == list(case.values)


def test_many_schemas_in_one_topic_are_told_apart(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    by_record = {"subject.name.strategy": topic_record_subject_name_strategy}
    written: list[bytes | None] = []
    for name, kind, value in [("A", "int", 1), ("B", "string", "x"), ("A", "int", 2)]:
        serializer = AvroSerializer(theirs, record(name, ("v", kind)), conf=by_record)
        written += [serializer({"v": value}, value_of(topic)), None]
    parts = unframed(pa.array(written, pa.binary()))
    found: dict[int, Any] = {}
    for group in parts.groups:
        assert isinstance(group.schema, int)
        schema = resolved_schema(ours, ours.schema_by_id(group.schema))
        values = decoder_of(schema).decode(group.bodies).to_pylist()
        found |= dict(zip(group.rows.tolist(), values, strict=True))
    assert found == {0: {"v": 1}, 2: {"v": "x"}, 4: {"v": 2}}
    assert parts.null_rows.tolist() == [1, 3, 5]
    assert ours.latest(f"{topic}-A").version == 1


def test_a_schema_id_in_a_header_is_found_by_its_guid(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    serializer = AvroSerializer(
        theirs,
        record("R", ("v", "int")),
        conf={"schema.id.serializer": header_schema_id_serializer},
    )
    headers: list[tuple[str, bytes]] = [("trace", b"1")]
    body = serializer({"v": 7}, value_of(topic, headers))
    column = pa.array(
        [[{"name": name, "value": value} for name, value in headers]],
        RECORD_SCHEMA.field("headers").type,
    )
    (group,) = unframed(pa.array([body], pa.binary()), column).groups
    assert isinstance(group.schema, UUID)
    schema = resolved_schema(ours, ours.schema_by_guid(group.schema))
    assert decoder_of(schema).decode(group.bodies).to_pylist() == [{"v": 7}]
    assert ours.schema_by_guid(group.schema) == ours.latest(f"{topic}-value").schema


def test_their_reader_schema_resolves_what_we_wrote(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    old = record("R", ("v", "int"))
    new = record("R", ("v", "long"), ("note", "string", "none"))
    schema_id = ours.register(f"{topic}-value", SchemaText(old))
    field = pa.field("v", pa.int32(), nullable=False)
    rows = pa.array([{"v": 5}], pa.struct([field]))
    bodies = encoder_of(pa.schema([field]), parse_schema(old)).encode(rows)
    (value,) = framed(bodies, schema_id).to_pylist()
    read = {"v": 5, "note": "none"}
    assert AvroDeserializer(theirs, new)(value, value_of(topic)) == read
    ours.register(f"{topic}-value", SchemaText(new))
    with SchemaRegistryClient(theirs.config()) as fresh:
        latest = AvroDeserializer(fresh, conf={"use.latest.version": True})
        assert latest(value, value_of(topic)) == read


def test_their_serializer_writes_with_the_latest_version_and_with_a_given_id(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    first = ours.register(f"{topic}-value", SchemaText(record("R", ("v", "int"))))
    wider = record("R", ("v", "int"), ("w", ["null", "int"], None))
    second = ours.register(f"{topic}-value", SchemaText(wider))
    fixed: dict[str, Any] = {"auto.register.schemas": False}
    chosen: dict[int, dict[str, Any]] = {
        second: {"use.latest.version": True},
        first: {"use.schema.id": first},
    }
    for schema_id, conf in chosen.items():
        serializer = AvroSerializer(theirs, wider, conf=fixed | conf)
        value = serializer({"v": 1}, value_of(topic))
        (group,) = unframed(pa.array([value], pa.binary())).groups
        assert group.schema == schema_id
    unknown = AvroSerializer(theirs, record("R", ("other", "int")), conf=fixed)
    with pytest.raises(SchemaRegistryError) as refusal:
        unknown({"other": 1}, value_of(topic))
    assert (refusal.value.http_status_code, refusal.value.error_code) == (404, 40403)


@pytest.mark.parametrize(
    ("text", "value"), [('"bytes"', b"\x07raw"), ('{"type":"bytes"}', b"x"), ('"string"', "key")]
)
def test_keys_of_a_single_primitive_are_read_as_they_write_them(
    theirs: Any, ours: RegistryClient, topic: str, text: str, value: Any
) -> None:
    serializer = AvroSerializer(theirs, text)
    written = serializer(value, SerializationContext(topic, MessageField.KEY))
    (found,) = ValueReader(ours).decode(pa.array([None, written], pa.binary()), part=Part.KEY)
    assert found.rows.tolist() == [1]
    assert found.values.to_pylist() == [value]


def test_rows_through_the_codec_are_read_by_their_deserializer(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    rows = [{"id": 1, "name": "tea"}, {"id": 2, "name": None}]
    codec = AvroCodec(RegisteredSchemas(ours, RegistryOptions.of({}).serializer))
    encoder = codec.prepare(columns, Subject(topic, "shop.orders", Part.VALUE))
    written = encoder.encode(pa.array(rows, pa.struct(list(columns)))).to_pylist()
    read = [AvroDeserializer(theirs)(value, value_of(topic)) for value in written]
    assert read == rows
    narrower = pa.schema([pa.field("id", pa.int32(), nullable=False), ("kind", pa.string())])
    with pytest.raises(IncompatibleSchema, match="id"):
        codec.prepare(narrower, Subject(topic, "shop.orders", Part.VALUE))


def test_what_was_registered_is_in_the_log_after_it_was_closed(tmp_path: Path) -> None:
    schema = Schema(record("R", ("v", "int")), "AVRO")
    with (
        open_log(tmp_path / "log") as log,
        serving(registry_app(registry_of(log))) as url,
        SchemaRegistryClient({"url": url}) as client,
    ):
        schema_id = client.register_schema("s", schema)
    with (
        open_log(tmp_path / "log") as log,
        serving(registry_app(registry_of(log))) as url,
        SchemaRegistryClient({"url": url}) as client,
    ):
        assert client.lookup_schema("s", schema).schema_id == schema_id
        assert registry_of(log).latest("s").id == schema_id


# Their client's other calls


def test_their_client_registers_and_finds_schemas(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    subject = f"{topic}/with a slash-value"
    text = record("R", ("v", "int"))
    schema = Schema(text, "AVRO")
    schema_id = theirs.register_schema(subject, schema)
    assert theirs.register_schema(subject, schema) == schema_id
    assert ours.register(subject, SchemaText(text)) == schema_id
    known = theirs.lookup_schema(subject, schema)
    latest = theirs.get_latest_version(subject)
    version = theirs.get_version(subject, 1)
    for found in (known, latest, version):
        assert (found.subject, found.version, found.schema_id) == (subject, 1, schema_id)
        assert json.loads(found.schema.schema_str) == json.loads(text)
    assert theirs.get_versions(subject) == [1]
    assert subject in theirs.get_subjects()
    assert theirs.get_subjects(subject_prefix=f"{topic}/") == [subject]
    with SchemaRegistryClient(theirs.config()) as fresh:
        assert fresh.get_schema(schema_id).schema_type == "AVRO"
        assert fresh.get_schema_by_guid(latest.guid).schema_str == latest.schema.schema_str
        assert subject in fresh.get_subjects_by_schema_id(schema_id)
    pairs = [(pair.subject, pair.version) for pair in theirs.get_schema_versions(schema_id)]
    assert (subject, 1) in pairs
    assert theirs.get_schema_types() == ["AVRO"]
    assert theirs.get_contexts() == ["."]


def test_equal_schemas_get_equal_ids_when_normalized(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    plain = '{"type":"record","name":"N","namespace":"a.b","fields":[{"name":"v","type":"int"}]}'
    spaced = json.dumps(
        {"fields": [{"type": {"type": "int"}, "name": "v"}], "name": "a.b.N", "type": "record"},
        indent=2,
    )
    first = theirs.register_schema(topic, Schema(plain, "AVRO"), normalize_schemas=True)
    assert theirs.register_schema(topic, Schema(spaced, "AVRO"), normalize_schemas=True) == first
    assert ours.register(topic, SchemaText(spaced), normalize=True) == first
    assert ours.lookup(topic, SchemaText(spaced), normalize=True).version == 1


def test_compatibility_is_tested_and_enforced_alike_for_both_clients(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    theirs.register_schema(topic, Schema(record("R", ("v", "int")), "AVRO"))
    harmless = Schema(record("R", ("v", "int"), ("w", "int", 0)), "AVRO")
    harmful_text = record("R", ("v", "int"), ("w", "int"))
    harmful = Schema(harmful_text, "AVRO")
    assert theirs.test_compatibility(topic, harmless)
    assert not theirs.test_compatibility(topic, harmful)
    assert not theirs.test_compatibility_all_versions(topic, harmful)
    with pytest.raises(SchemaRegistryError) as refusal:
        theirs.register_schema(topic, harmful)
    assert refusal.value.http_status_code == 409
    with pytest.raises(IncompatibleSchema, match="w"):
        ours.register(topic, SchemaText(harmful_text))
    assert theirs.set_compatibility(topic, "NONE") == {"compatibility": "NONE"}
    assert theirs.get_compatibility(topic) == "NONE"
    assert ours.register(topic, SchemaText(harmful_text)) > 0
    assert ours.latest(topic).version == 2


def test_configs_and_modes_are_set_read_and_deleted(theirs: Any, topic: str) -> None:
    theirs.register_schema(topic, Schema(record("R", ("v", "int")), "AVRO"))
    assert theirs.get_compatibility() == "BACKWARD"
    theirs.set_compatibility(topic, "FULL_TRANSITIVE")
    assert theirs.get_config(topic).compatibility_level == "FULL_TRANSITIVE"
    theirs.delete_config(topic)
    with pytest.raises(SchemaRegistryError) as refusal:
        theirs.get_compatibility(topic)
    assert (refusal.value.http_status_code, refusal.value.error_code) == (404, 40408)
    assert theirs.get_global_mode() == "READWRITE"
    assert theirs.update_mode(topic, "READONLY") == "READONLY"
    with pytest.raises(SchemaRegistryError) as read_only:
        theirs.register_schema(topic, Schema(record("R", ("v", "int"), ("w", "int", 0)), "AVRO"))
    assert (read_only.value.http_status_code, read_only.value.error_code) == (422, 42205)
    theirs.delete_mode(topic)


def test_versions_and_subjects_are_deleted_softly_and_for_good(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    one, two = record("R", ("v", "int")), record("R", ("v", "int"), ("w", "int", 0))
    for text in (one, two):
        theirs.register_schema(topic, Schema(text, "AVRO"))
    assert theirs.delete_version(topic, 1) == 1
    assert theirs.get_versions(topic) == [2]
    assert theirs.get_versions(topic, deleted=True) == [1, 2]
    assert ours.version(topic, 1).version == 1  # for schemas that refer to it
    assert theirs.delete_version(topic, 1, permanent=True) == 1
    with pytest.raises(UnknownSchema), closing(client_of(theirs.config()["url"])) as fresh:
        fresh.version(topic, 1)
    assert theirs.delete_subject(topic) == [2]
    with pytest.raises(UnknownSubject):
        ours.latest(topic)
    assert theirs.delete_subject(topic, permanent=True) == [2]
    assert topic not in theirs.get_subjects(deleted=True)


def test_references_are_registered_listed_and_resolved_on_both_sides(
    theirs: Any, ours: RegistryClient, topic: str
) -> None:
    money = record("shop.Money", ("cents", "long"))
    theirs.register_schema(f"{topic}-money", Schema(money, "AVRO"))
    text = record("shop.Order", ("total", "shop.Money"), ("rest", ["null", "shop.Money"]))
    reference = SchemaReference("shop.Money", f"{topic}-money", 1)
    serializer = AvroSerializer(theirs, Schema(text, "AVRO", [reference]))
    order = {"total": {"cents": 5}, "rest": {"cents": 6}}
    value = serializer(order, value_of(topic))
    (group,) = unframed(pa.array([value], pa.binary())).groups
    assert isinstance(group.schema, int)
    stored = ours.schema_by_id(group.schema)
    assert stored.references == (OurReference("shop.Money", f"{topic}-money", 1),)
    schema = resolved_schema(ours, stored)
    decoded = decoder_of(schema).decode(group.bodies)
    assert decoded.to_pylist() == [order]
    bodies = encoder_of(decoded.type, schema).encode(decoded)
    assert framed(bodies, group.schema).to_pylist() == [value]
    assert AvroDeserializer(theirs)(value, value_of(topic)) == order
    assert theirs.get_referenced_by(f"{topic}-money", 1) == [group.schema]
    with pytest.raises(SchemaRegistryError) as refusal:
        theirs.delete_version(f"{topic}-money", 1)
    assert (refusal.value.http_status_code, refusal.value.error_code) == (422, 42206)


def test_our_errors_are_theirs_by_name(ours: RegistryClient, topic: str) -> None:
    text = SchemaText(record("R", ("v", "int")))
    with pytest.raises(UnknownSubject, match=topic):
        ours.latest(topic)
    with pytest.raises(UnknownSubject):
        ours.lookup(topic, text)
    with pytest.raises(UnknownSchema, match="2147483647"):
        ours.schema_by_id(2**31 - 1)
    with pytest.raises(UnknownSchema):
        ours.schema_by_guid(SOME_UUID)
    with pytest.raises(InvalidSchema):
        ours.register(topic, SchemaText('{"type":"record"}'))
    ours.register(topic, text)
    with pytest.raises(UnknownSchema):
        ours.lookup(topic, SchemaText(record("R", ("w", "int"))))
    with pytest.raises(UnknownSchema):
        ours.version(topic, 9)


# Behind a token and TLS


@pytest.mark.parametrize("scheme", ["basic", "bearer"])
def test_both_clients_come_in_through_tls_with_a_token_and_not_without(
    tmp_path: Path, scheme: str
) -> None:
    certificate = make_certificate(tmp_path, "registry")
    token = SecretStr("s3cret")
    guarded = TokenGuard(registry_app(RegistryService(MemoryDocuments())), [token])
    trusted = {"ssl.ca.location": str(certificate.certificate)}
    if scheme == "basic":
        conf = theirs_conf = {"basic.auth.user.info": "ann:s3cret"}
    else:
        conf = {"bearer.auth.token": "s3cret"}
        theirs_conf = {
            **conf,
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.logical.cluster": "lsrc-1",
        }
    text = record("R", ("v", "int"))
    with serving(guarded, tls=certificate) as url:
        with SchemaRegistryClient({"url": url, **trusted, **theirs_conf}) as client:
            schema_id = client.register_schema("s", Schema(text, "AVRO"))
        with client_of(url, **trusted, **conf) as mine:
            assert mine.register("s", SchemaText(text)) == schema_id
        with (
            SchemaRegistryClient({"url": url, **trusted}) as stranger,
            pytest.raises(SchemaRegistryError) as refusal,
        ):
            stranger.get_subjects()
        assert refusal.value.http_status_code == 401
