from __future__ import annotations

import json
import random
from typing import Any

import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form
from hypothesis import HealthCheck, given, settings

from duolog.avro.parse import parse_schema
from duolog.avro.schema import NULL, Enum, Field, Fixed, Record, Reference, Schema, Union
from duolog.avro.text import canonical_text, fingerprint64, normalized_text, schema_text
from duolog.errors import InvalidSchema
from tests.unit.avro_schemas import schemas

_SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_SETTINGS
@given(schemas())
def test_the_text_of_a_schema_is_that_schema_again(schema: Schema) -> None:
    text = schema_text(schema)
    assert parse_schema(text) == schema
    assert schema_text(parse_schema(text)) == text
    assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


@_SETTINGS
@given(schemas())
def test_canonical_form_and_fingerprint_are_those_of_fastavro(schema: Schema) -> None:
    canonical = to_parsing_canonical_form(json.loads(schema_text(schema)))
    assert canonical_text(schema) == canonical
    crc = int.from_bytes(bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO")), "little")
    assert fingerprint64(schema) == crc


@pytest.mark.parametrize(
    ("text", "canonical", "signed"),
    [
        ('{"type":"null"}', '"null"', 7195948357588979594),
        ('"boolean"', '"boolean"', -6970731678124411036),
        ('{"type":"int","logicalType":"date"}', '"int"', 8247732601305521295),
        ('"long"', '"long"', -3434872931120570953),
    ],
)
def test_fingerprints_are_those_of_the_specification(
    text: str, canonical: str, signed: int
) -> None:
    schema = parse_schema(text)
    assert canonical_text(schema) == canonical
    assert fingerprint64(schema) == signed % 2**64


def test_the_canonical_form_keeps_only_what_readers_of_bytes_need() -> None:
    text = """
      {"namespace": "shop", "doc": "x", "name": "Order", "aliases": ["Old"], "type": "error",
      "fields": [
        {"type": {"size": 16, "name": "F", "type": "fixed", "logicalType": "uuid"}, "name": "a"},
        {"name": "b", "default": null, "type": ["null", {"type": "map", "values": "F", "x": 1}]},
        {"name": "c", "type": {"name": "E", "symbols": ["A"], "type": "enum", "default": "A"}},
        {"name": "d", "order": "ignore", "type": {"items": {"type": "int"}, "type": "array"}}
      ]}"""
    assert canonical_text(parse_schema(text)) == (
        '{"name":"shop.Order","type":"record","fields":['
        '{"name":"a","type":{"name":"shop.F","type":"fixed","size":16}},'
        '{"name":"b","type":["null",{"type":"map","values":"shop.F"}]},'
        '{"name":"c","type":{"name":"shop.E","type":"enum","symbols":["A"]}},'
        '{"name":"d","type":{"type":"array","items":"int"}}]}'
    )


def test_attributes_stand_in_a_fixed_order() -> None:
    text = (
        '{"type":"record","name":"Order","namespace":"shop","doc":"é","aliases":["Old","x.Y",".Z"],'
        '"fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"","size":2,'
        '"logicalType":"decimal","precision":3,"scale":1,"z":1,"y":[2]},"doc":"d","aliases":["b"],'
        '"default":"ab","order":"ignore","x":{"b":1,"a":2}},'
        '{"name":"c","type":{"type":"enum","name":"E","symbols":["A"],"default":"A"}},'
        '{"name":"again","type":["E","Order","null"]}],"owner":"me"}'
    )
    assert schema_text(parse_schema(text)) == text
    shuffled = _shuffled(json.loads(text), random.Random(7))
    assert json.dumps(shuffled) != json.dumps(json.loads(text))
    # Properties stand as the text has them; only the normalized form sorts them.
    assert normalized_text(parse_schema(json.dumps(shuffled))) == normalized_text(
        parse_schema(text)
    )


def _shuffled(tree: Any, order: random.Random) -> Any:
    """With the attributes of every object in another order."""
    if isinstance(tree, list):
        return [_shuffled(item, order) for item in tree]
    if isinstance(tree, dict):
        names = order.sample(sorted(tree), len(tree))
        return {name: _shuffled(tree[name], order) for name in names}
    return tree


# Made by Confluent's AvroSchema.normalize() and Avro 1.12.1.
@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ('{"type":"string"}', '"string"'),
        (
            '{"type":"record","name":"a.R","doc":"","fields":[{"name":"x","type":"double","default":1,'
            '"doc":"","zz":1,"aa":{"b":1,"a":[{"d":1,"c":2}]}},{"name":"e","order":"ascending",'
            '"type":{"type":"enum","name":"E","aliases":["z","b.c"],"symbols":["A","B"],'
            '"default":"A"},"aliases":["q","p"]}]}',
            '{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":"double",'
            '"doc":"","default":1.0,"aa":{"a":[{"c":2,"d":1}],"b":1},"zz":1},{"name":"e","type":'
            '{"type":"enum","name":"E","symbols":["A","B"],"default":"A","aliases":["z","b.c"]},'
            '"aliases":["p","q"]}]}',
        ),
        (
            '{"type":"error","name":"Oops","fields":[{"name":"f","type":{"type":"fixed",'
            '"name":"x.F","size":4,"z":1,"aliases":["G"],"doc":"four"}},'
            '{"name":"g","type":"x.F","doc":"again"}]}',
            '{"type":"record","name":"Oops","fields":[{"name":"f","type":{"type":"fixed","name":"F",'
            '"namespace":"x","doc":"four","size":4,"z":1,"aliases":["G"]}},'
            '{"name":"g","type":"x.F","doc":"again"}]}',
        ),
        (
            '{"type":"record","name":"myrecord","doc":"hi\\"there","fields":'
            '[{"type":"string","name":"f1","doc":"bye\\"now"}]}',
            '{"type":"record","name":"myrecord","doc":"hi\\"there","fields":'
            '[{"name":"f1","type":"string","doc":"bye\\"now"}]}',
        ),
        (
            '{"fields":[{"name":"p","type":{"b":1,"a":2,"scale":2,"precision":9,"type":"bytes",'
            '"logicalType":"decimal"},"default":"\\u0001"}],"type":"record","name":"P"}',
            '{"type":"record","name":"P","fields":[{"name":"p","type":{"type":"bytes",'
            '"logicalType":"decimal","precision":9,"scale":2,"a":2,"b":1},"default":"\\u0001"}]}',
        ),
        (
            '{"type":"record","name":"D","fields":[{"name":"m","type":{"type":"map",'
            '"values":"double"},"default":{"b":1,"a":2.5}},{"name":"u","type":["int","null"],'
            '"default":7},{"name":"f","type":"float","default":0.123456789},'
            '{"name":"s","type":{"type":"string","doc":"dropped","name":"too"}}]}',
            '{"type":"record","name":"D","fields":[{"name":"m","type":{"type":"map",'
            '"values":"double"},"default":{"a":2.5,"b":1.0}},{"name":"u","type":["int","null"],'
            '"default":7},{"name":"f","type":"float","default":0.12345679},'
            '{"name":"s","type":"string"}]}',
        ),
    ],
)
def test_the_normalized_form_is_that_of_a_confluent_registry(text: str, normalized: str) -> None:
    assert normalized_text(parse_schema(text)) == normalized


@_SETTINGS
@given(schemas())
def test_the_normalized_form_of_a_normalized_schema_is_itself(schema: Schema) -> None:
    text = normalized_text(schema)
    assert normalized_text(parse_schema(text)) == text
    assert canonical_text(parse_schema(text)) == canonical_text(schema)


def test_a_default_that_does_not_fit_is_normalized_as_it_stands() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":1e300}]}'
    assert '"default":1e+300' in normalized_text(parse_schema(text, strict=False))


def test_types_of_other_schemas_are_written_by_name() -> None:
    schema = parse_schema('["shop.F",{"type":"array","items":"shop.F"}]', [Fixed("shop.F", 2)])
    whole = '["shop.F",{"type":"array","items":"shop.F"}]'
    assert schema_text(schema) == normalized_text(schema) == canonical_text(schema) == whole


def test_a_type_without_namespace_is_mentioned_from_inside_one() -> None:
    schema = Union(
        (
            Fixed("F", 1),
            Record("shop.R", (Field("a", Reference("F")), Field("b", Enum("shop.E", ())))),
        )
    )
    assert parse_schema(schema_text(schema)) == schema
    inner = (Field("x", Fixed("shop.R", 1)), Field("y", Reference("R")))
    hidden = Record("R", (Field("in", Record("shop.S", inner)),))
    with pytest.raises(InvalidSchema, match=r"'R' has no namespace, and 'shop\.R' stands before"):
        schema_text(hidden)


def test_types_named_like_kinds_are_mentioned_in_full() -> None:
    schema = Record(
        "a.record",
        (
            Field("x", Fixed("a.array", 1)),
            Field("y", Union((NULL, Reference("a.array"), Reference("a.record")))),
        ),
    )
    assert '["null","a.array","a.record"]' in schema_text(schema)
    assert parse_schema(schema_text(schema)) == schema
