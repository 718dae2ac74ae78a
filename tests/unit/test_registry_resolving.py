"""Schemas whose references are fetched from a registry."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from duolog.avro.parse import parse_schema
from duolog.avro.registry.port import RegisteredSchema, SchemaReference, SchemaText
from duolog.avro.registry.resolving import MAX_REFERENCED_SCHEMAS, resolved_schema
from duolog.errors import InvalidSchema, UnknownSchema


@dataclass
class Shelf:
    """A registry of versions, and what was asked of it."""

    versions: dict[tuple[str, int], SchemaText]
    asked: list[tuple[str, int]] = field(default_factory=list)

    def version(self, subject: str, version: int) -> RegisteredSchema:
        self.asked.append((subject, version))
        if (subject, version) not in self.versions:
            raise UnknownSchema(f"{subject} {version}")
        return RegisteredSchema(subject, version, 1, self.versions[subject, version])

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        raise NotImplementedError

    def lookup(
        self, subject: str, schema: SchemaText, *, normalize: bool = False
    ) -> RegisteredSchema:
        raise NotImplementedError

    def latest(self, subject: str) -> RegisteredSchema:
        raise NotImplementedError

    def schema_by_id(self, schema_id: int) -> SchemaText:
        raise NotImplementedError

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        raise NotImplementedError


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    members = [{"name": of, "type": kind} for of, kind in fields]
    return {"type": "record", "name": name, "fields": members}


def text(tree: Any, *references: str, version: int = 1) -> SchemaText:
    """A schema that refers to subjects named after their types."""
    return SchemaText(
        json.dumps(tree), "AVRO", tuple(SchemaReference(name, name, version) for name in references)
    )


MONEY = record("shop.Money", ("cents", "long"))
ITEM = record("shop.Item", ("price", "shop.Money"))
ORDER = record("shop.Order", ("item", "shop.Item"), ("total", ["null", "shop.Money"]))


def test_a_schema_without_references_asks_nobody() -> None:
    shelf = Shelf({})
    assert resolved_schema(shelf, text(MONEY)) == parse_schema(json.dumps(MONEY))
    assert shelf.asked == []


def test_references_are_written_out_where_they_come_first() -> None:
    shelf = Shelf({("shop.Money", 1): text(MONEY), ("shop.Item", 1): text(ITEM, "shop.Money")})
    item = record("shop.Item", ("price", MONEY))
    written_out = record("shop.Order", ("item", item), ("total", ["null", "shop.Money"]))
    for references in (("shop.Item", "shop.Money"), ("shop.Money", "shop.Item"), ("shop.Item",)):
        shelf.asked.clear()
        found = resolved_schema(shelf, text(ORDER, *references))
        assert found == parse_schema(json.dumps(written_out))
        assert sorted(shelf.asked) == [("shop.Item", 1), ("shop.Money", 1)]


def test_a_reference_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownSchema, match=r"shop\.Item 1"):
        resolved_schema(Shelf({}), text(ORDER, "shop.Item"))


def test_a_type_that_no_reference_defines_is_named() -> None:
    with pytest.raises(InvalidSchema, match="Item"):
        resolved_schema(Shelf({}), text(ORDER))


def test_references_in_a_circle_are_refused_with_the_circle() -> None:
    shelf = Shelf({("a", 1): text(record("a"), "b"), ("b", 1): text(record("b"), "a")})
    with pytest.raises(InvalidSchema, match="in a circle: 'a' version 1 -> 'b' version 1 -> 'a'"):
        resolved_schema(shelf, text(record("c", ("a", "a")), "a"))
    assert len(shelf.asked) == 2


def test_two_versions_of_one_type_are_refused() -> None:
    other = record("shop.Money", ("cents", "int"))
    shelf = Shelf({("shop.Money", 1): text(MONEY), ("shop.Money", 2): text(other)})
    references = tuple(SchemaReference("shop.Money", "shop.Money", n) for n in (1, 2))
    tree = record("r", ("a", "shop.Money"))
    with pytest.raises(InvalidSchema, match=r"shop\.Money"):
        resolved_schema(shelf, SchemaText(json.dumps(tree), "AVRO", references))


def test_references_through_too_many_others_are_refused() -> None:
    chain = {(f"r{n}", 1): text(record(f"r{n}"), f"r{n + 1}") for n in range(5000)}
    shelf = Shelf(chain)
    with pytest.raises(InvalidSchema, match="refers to more than"):
        resolved_schema(shelf, text(record("r"), "r0"))
    assert len(shelf.asked) < 100


def test_too_many_references_are_refused() -> None:
    names = [f"r{n}" for n in range(MAX_REFERENCED_SCHEMAS + 1)]
    shelf = Shelf({(name, 1): text(record(name)) for name in names})
    with pytest.raises(InvalidSchema, match=f"refers to more than {MAX_REFERENCED_SCHEMAS}"):
        resolved_schema(shelf, text(record("r"), *names))
    resolved_schema(shelf, text(record("r"), *names[:-1]))


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_only_avro_is_read(kind: str) -> None:
    with pytest.raises(InvalidSchema, match=f"The schema is of type {kind}"):
        resolved_schema(Shelf({}), SchemaText("{}", kind))
    shelf = Shelf({("shop.Item", 1): SchemaText("{}", kind)})
    with pytest.raises(InvalidSchema, match=f"Version 1 of subject 'shop.Item'.* {kind}"):
        resolved_schema(shelf, text(ORDER, "shop.Item"))
