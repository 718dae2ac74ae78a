"""Whatever text comes as a schema, it is read or refused by name; what is read, fastavro reads."""

from __future__ import annotations

import json
from typing import Any

import fastavro
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duolog.avro.parse import parse_schema
from duolog.avro.schema import Schema
from duolog.avro.text import schema_text
from duolog.errors import InvalidSchema
from tests.unit.avro_schemas import JSON, NAMES, schemas

_WORDS = st.sampled_from(
    [
        *("type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default"),
        *("aliases", "doc", "order", "logicalType", "precision", "scale", "record", "enum"),
        *("fixed", "array", "map", "null", "int", "bytes", "string", "decimal", "a.b", ""),
    ]
)
_SCHEMA_LIKE = st.recursive(
    _WORDS | JSON | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=5),
    max_leaves=20,
)


def _reads_or_refuses(text: str) -> None:
    try:
        schema = parse_schema(text)
    except InvalidSchema:
        return
    assert parse_schema(schema_text(schema)) == schema


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_SCHEMA_LIKE)
def test_random_json_is_read_or_refused(tree: Any) -> None:
    _reads_or_refuses(json.dumps(tree))


@settings(deadline=None)
@given(st.text() | st.text('{}[]":,0123456789eE.-+\\untrfalsi" '))
def test_random_text_is_read_or_refused(text: str) -> None:
    _reads_or_refuses(text)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas(), st.data())
def test_a_damaged_schema_is_read_or_refused(schema: Schema, data: st.DataObject) -> None:
    tree = json.loads(schema_text(schema))
    for _ in range(data.draw(st.integers(1, 3))):
        tree = _damaged(tree, data)
    _reads_or_refuses(json.dumps(tree))
    text = schema_text(schema)
    place = data.draw(st.integers(0, len(text)))
    _reads_or_refuses(text[:place] + data.draw(st.text(max_size=2)) + text[place + 1 :])


def _damaged(tree: Any, data: st.DataObject) -> Any:
    """With one node replaced by something else."""
    if isinstance(tree, list | dict) and tree and data.draw(st.integers(0, 4)):
        if isinstance(tree, list):
            index = data.draw(st.integers(0, len(tree) - 1))
            return [*tree[:index], _damaged(tree[index], data), *tree[index + 1 :]]
        key = data.draw(st.sampled_from(sorted(tree)))
        if data.draw(st.booleans()):
            return {**tree, key: _damaged(tree[key], data)}
        return {data.draw(_WORDS) if name == key else name: tree[name] for name in tree}
    return data.draw(_SCHEMA_LIKE)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_what_is_valid_here_is_valid_to_fastavro(schema: Schema) -> None:
    fastavro.parse_schema(json.loads(schema_text(schema)))
