"""A statement is decoded with schemas that its sender may read, whatever ids records name."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pytest

from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaReference, SchemaText
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from duolog.bridge.sql.readable_schemas import ReadableSchemas
from duolog.errors import UnknownSchema
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from tests.integration.serve_host import ServedLog, served
from tests.integration.sql_asking import ask_sql

ROWS = [{"id": number, "item": "tea"} for number in range(2)]
AVRO = TopicSettings(key_format=Format.AVRO, value_format=Format.AVRO)
SECRET = "salary_of_the_chief"


def schema(name: str, field: str, kind: str = "int") -> str:
    fields = [{"name": field, "type": kind}]
    return json.dumps({"type": "record", "name": name, "fields": fields})


def framed(schema_id: int) -> bytes:
    return b"\0" + struct.pack(">I", schema_id) + b"\x02"


class Guarded:
    def __init__(self, host: ServedLog, tokens: dict[str, str]) -> None:
        self.host = host
        self.tokens = tokens

    def said(self, text: str, who: str) -> str:
        return ask_sql(self.host, text, token=self.tokens[who]).body.decode()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("schemas")
    path = folder / "tokens"
    tokens = {
        "all": add_token(path, Caller("all", Role.SERVICE)),
        "orders": add_token(path, Caller("orders", Role.SERVICE, topics=("orders", "crafted"))),
        "subjects": add_token(path, Caller("subjects", Role.SERVICE, subjects=("orders-*",))),
        "none": add_token(path, Caller("none", Role.SERVICE, ("orders",), subjects=("other",))),
    }
    with served(folder / "log", tokens=path) as host:
        for name in ("orders", "crafted"):
            host.log.create_topic(name, AVRO)
        host.log.add_route("orders", Route("shop.items", frozenset({Op.INSERT})))
        host.log.publish_rows("shop.items", Op.INSERT, ROWS, ["id"])
        registry = registry_of(host.log)
        theirs = registry.register("salaries-value", SchemaText(schema("Pay", SECRET)))
        host.log.publish("crafted", Record(framed(theirs)))
        yield Guarded(host, tokens)


@pytest.mark.parametrize(
    "text", ["SELECT * FROM crafted", "SELECT value FROM crafted", "CONSUME FROM crafted"]
)
def test_a_record_with_anothers_schema_does_not_tell_its_fields(
    guarded: Guarded, text: str
) -> None:
    assert SECRET in guarded.said(text, "all")
    for who in ("orders", "subjects"):
        assert SECRET not in guarded.said(text, who), who
    assert SECRET in guarded.said(text, "all")  # whoever asked before


def test_own_schemas_are_decoded_with(guarded: Guarded) -> None:
    for who in ("all", "orders", "subjects"):
        assert '[[0,"tea"],[1,"tea"]]' in guarded.said("SELECT id, item FROM orders", who), who
        assert "tea" in guarded.said("CONSUME FROM orders LIMIT 1", who), who
    refused = guarded.said("SELECT value FROM orders", "none")
    assert "may read no subject that has this schema" in refused
    assert "--subjects" in refused


def test_what_a_readable_schema_refers_to_is_readable(guarded: Guarded) -> None:
    registry = registry_of(guarded.host.log)
    registry.register("shared-address", SchemaText(schema("Address", "street", "string")))
    registry.register("shared-other", SchemaText(schema("Other", "x")))
    reference = SchemaReference("Address", "shared-address", 1)
    referring = SchemaText(schema("Order", "to", "Address"), references=(reference,))
    schema_id = registry.register("crafted-value", referring)
    readable = ReadableSchemas(registry, Caller("c", Role.SERVICE, topics=("crafted",)))
    for subject in ("shared-address", "shared-other"):
        with pytest.raises(UnknownSchema, match="may read no subject"):
            readable.version(subject, 1)
    assert readable.schema_by_id(schema_id).references == (reference,)
    assert readable.version("shared-address", 1).subject == "shared-address"
    with pytest.raises(UnknownSchema, match="may read no subject"):
        readable.version("shared-other", 1)
