"""Reading with another schema, held against fastavro over changed schemas."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from fastavro.read import SchemaResolutionError
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.decode.decoder import decoder_of
from duolog.errors import IncompatibleSchema, Undecodable
from tests.unit.avro_cases import Cases, Reference, kind_of, parsed, shown

COUNT = {"read": 0, "refused": 0}


@pytest.fixture(scope="module", autouse=True)
def counted() -> Iterator[None]:
    yield
    print(f"{COUNT['read']} values read as fastavro resolves them, {COUNT['refused']} refused")


PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class Changes:
    """A reader's schema made from a writer's."""

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        self.random = cases.random

    def of(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return self._primitive(schema)
        changed = copy.deepcopy(schema)
        changed.pop("logicalType", None)  # fastavro reads by the writer's logical type
        match kind_of(schema):
            case "array":
                changed["items"] = self.of(schema["items"])
            case "map":
                changed["values"] = self.of(schema["values"])
            case "enum":
                self._enum(changed)
            case "fixed":
                if self.random.random() < 0.05:
                    changed["size"] += 1
            case "record":
                self._record(changed)
        if "name" in changed and self.random.random() < 0.2:
            # fastavro knows an alias also without the namespace that names have after parsing
            changed["aliases"], changed["name"] = [changed["name"]], self.cases.name()
        if self.random.random() < 0.1 and kind_of(changed) != "union":
            return ["null", changed]
        return changed

    def _primitive(self, kind: str) -> Any:
        if kind in PROMOTED and self.random.random() < 0.3:
            return self.random.choice(PROMOTED[kind])
        if self.random.random() < 0.03:
            return self.random.choice(("boolean", "int", "string"))
        if self.random.random() < 0.1 and kind != "null":
            return [kind, "null"]
        return kind

    def _enum(self, changed: dict[str, Any]) -> None:
        symbols = changed["symbols"]
        if self.random.random() < 0.5:
            self.random.shuffle(symbols)
        if self.random.random() < 0.3:
            symbols.pop()
        if self.random.random() < 0.3:
            symbols.append("Z")
        if self.random.random() < 0.5:
            changed["default"] = symbols[0]

    def _record(self, changed: dict[str, Any]) -> None:
        fields = []
        for field in changed["fields"]:
            if self.random.random() < 0.15:
                continue
            field["type"] = self.of(field["type"])
            if self.random.random() < 0.2:
                field["aliases"], field["name"] = [field["name"]], self.cases.name()
            fields.append(field)
        while self.random.random() < 0.3:
            kind, default = copy.deepcopy(self.random.choice(DEFAULTS))
            name_all(kind, self.cases)
            fields.append({"name": self.cases.name(), "type": kind, "default": default})
        if self.random.random() < 0.03:
            fields.append({"name": self.cases.name(), "type": "int"})
        self.random.shuffle(fields)
        changed["fields"] = fields

    def _union(self, schema: list[Any]) -> Any:
        if len(schema) == 1 and self.random.random() < 0.5:
            return self.of(schema[0])
        branches = []
        for branch in schema:
            kept = self.of(branch)
            if kind_of(kept) == "union" or self.random.random() < 0.1:
                kept = copy.deepcopy(branch)
                if isinstance(kept, dict):
                    kept.pop("logicalType", None)
            branches.append(kept)
        if self.random.random() < 0.3:
            self.random.shuffle(branches)
        if self.random.random() < 0.1:
            branches.pop()
        kinds = [kind_of(branch) for branch in branches]
        is_clear = len({CLASSES.get(kind, kind) for kind in kinds}) == len(kinds)
        return branches if branches and is_clear else copy.deepcopy(schema)


# fastavro takes the first branch that fits, this reader the same type before a promotion; they
# agree where there is one branch of each of these.
CLASSES = dict.fromkeys(("int", "long", "float", "double"), "number") | dict.fromkeys(
    ("string", "bytes", "fixed", "enum"), "bytes"
) | dict.fromkeys(("map", "record"), "dict")  # fmt: skip

DEFAULTS: list[tuple[Any, Any]] = [
    ("int", 7),
    ("double", 3),
    ("float", 1.5),
    ("string", "é"),
    ("bytes", "\u00ff\u0000"),
    ("boolean", True),
    (["null", "long"], None),
    (["long", "null"], -5),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "string"}, {"a": "b"}),
    ({"type": "map", "values": "string"}, {}),
    ({"type": "fixed", "name": "?", "size": 2}, "ab"),
    ({"type": "enum", "name": "?", "symbols": ["P", "Q"]}, "Q"),
    (
        {
            "type": "record",
            "name": "?",
            "fields": [
                {"name": "x", "type": "int", "default": 4},
                {"name": "y", "type": ["null", "string"], "default": None},
            ],
        },
        {"y": None},
    ),
]


def name_all(kind: Any, cases: Cases) -> None:
    if isinstance(kind, dict) and "name" in kind:
        kind["name"] = cases.name()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 5, 40)))
def test_another_schema_reads_what_fastavro_reads_with_it(seed: int, rows: int) -> None:
    cases = Cases(seed, has_text_and_bytes=False)
    writer = cases.record(3)
    reader = Changes(cases).of(writer)
    reference = Reference(writer, reader)
    bodies = [reference.body(cases.value(writer)) for _ in range(rows)]
    answers = [_answer(reference, body) for body in bodies]
    try:
        decoder = decoder_of(parsed(writer), parsed(reader))
    except IncompatibleSchema:
        # fastavro notices when it meets a value, of which an array may have none
        COUNT["refused"] += 1
        assert all(answer is None for answer in answers) or _can_hide(writer)
        return
    for body, answer in zip(bodies, answers, strict=True):
        try:
            array = decoder.decode(pa.array([body], pa.binary()))
        except Undecodable as error:
            COUNT["refused"] += 1
            is_expected = answer is None or _is_stricter(str(error))
            assert is_expected, (error, answer)  # noqa: PT017
        else:
            assert shown(array) == [answer]
            array.validate(full=True)
            COUNT["read"] += 1
    good = [row for row, answer in enumerate(answers) if answer is not None]
    array = decoder.decode(pa.array([bodies[row] for row in good], pa.binary()))
    assert shown(array) == [answers[row] for row in good]


def _answer(reference: Reference, body: bytes) -> Any:
    try:
        value, left = reference.value(body)
    except (SchemaResolutionError, UnicodeDecodeError):
        return None
    assert not left
    return value


def _is_stricter(message: str) -> bool:
    """Bytes that become text, or a branch whose arrays only happen to be empty."""
    return "is not UTF-8" in message or ("[]': " in message and "branch" in message)


def _can_hide(schema: Any) -> bool:
    """Whether a value of it may have no value of a type inside."""
    return any(word in json.dumps(schema) for word in ('"array"', '"map"', "["))
