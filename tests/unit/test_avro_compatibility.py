"""What one schema reads of another, against the documented cases and against fastavro."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro import compatibility
from duolog.avro.compatibility import Difference, Level, incompatibilities
from duolog.avro.parse import parse_schema
from duolog.avro.schema import named_types
from duolog.errors import InvalidSchema


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def f(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def found(reader: Any, writer: Any) -> list[tuple[str, str, str, str]]:
    return [
        (one.type.value, one.path, one.field, one.detail)
        for one in incompatibilities(
            parse_schema(json.dumps(reader), strict=False),
            parse_schema(json.dumps(writer), strict=False),
        )
    ]


LIST = record(f("value", "int"), f("next", ["null", "R"]))
LIST_OF_LONG = record(f("value", "long"), f("next", ["null", "R"]))
LIST_OF_TEXT = record(f("value", "string"), f("next", ["null", "R"]))

READABLE = {
    "the same": (record(f("a", "int")), record(f("a", "int"))),
    "int as long": ("long", "int"),
    "int as float": ("float", "int"),
    "int as double": ("double", "int"),
    "long as float": ("float", "long"),
    "long as double": ("double", "long"),
    "float as double": ("double", "float"),
    "bytes as string": ("string", "bytes"),
    "string as bytes": ("bytes", "string"),
    "items are promoted": ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    "values are promoted": ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}),
    "a new field with a default": (record(f("b", "int", default=1)), record()),
    "a default of null": (record(f("a", ["null", "int"], default=None)), record()),
    "a field that is gone": (record(), record(f("a", "int"))),
    "fields in another order": (
        record(f("a", "int"), f("b", "string")), record(f("b", "string"), f("a", "int"))
    ),
    "a field by its alias": (record(f("b", "int", aliases=["a"])), record(f("a", "int"))),
    "a record by its alias": (record(name="New", aliases=["shop.Old"]), record(name="shop.Old")),
    "another namespace": (record(name="one.R"), record(name="two.R")),
    "a wider union": (["null", "string", "int"], ["string", "null"]),
    "into a union": (["null", "int"], "int"),
    "promoted into a union": (["null", "double"], "int"),
    "out of a union of one": ("int", ["int"]),
    "a union that is readable throughout": ("double", ["int", "float"]),
    "into an empty record of a union": (["null", record(name="R")], record(f("a", "int"))),
    "fewer words": (enum("A", "B"), enum("A")),
    "other words, but a default": (enum("A", "OTHER", default="OTHER"), enum("A", "B")),
    "an enum by its alias": (enum("A", name="New", aliases=["Old"]), enum("A", name="Old")),
    "a fixed type in another namespace": (fixed(4, "a.F"), fixed(4, "b.F")),
    "a list of itself": (LIST_OF_LONG, LIST),
    "another scale, silently": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0},
    ),
    "another meaning, silently": ({"type": "long", "logicalType": "timestamp-micros"}, "long"),
    "the empty union": ([], []),
}  # fmt: skip


@pytest.mark.parametrize(("reader", "writer"), READABLE.values(), ids=READABLE.keys())
def test_these_are_read(reader: Any, writer: Any) -> None:
    assert found(reader, writer) == []


def mismatch(reader: str, writer: str, path: str = "/", field: str = "") -> list[Any]:
    told = f"reader type: {reader} not compatible with writer type: {writer}"
    return [("TYPE_MISMATCH", path, field, told)]


def no_branch(writer: str, path: str, field: str = "") -> list[Any]:
    return [("MISSING_UNION_BRANCH", path, field, f"reader union lacking writer type: {writer}")]


def no_default(field: str, path: str) -> list[Any]:
    return [("READER_FIELD_MISSING_DEFAULT_VALUE", path, field, field)]


UNREADABLE: dict[str, tuple[Any, Any, list[Any]]] = {
    "long as int": ("int", "long", mismatch("INT", "LONG")),
    "double as float": ("float", "double", mismatch("FLOAT", "DOUBLE")),
    "a field of another type": (
        record(f("a", "int")), record(f("a", "string")),
        mismatch("INT", "STRING", "/fields/0/type", "a"),
    ),
    "a deep field of another type": (
        record(f("a", {"type": "array", "items": record(f("b", "int"), name="S")})),
        record(f("a", {"type": "array", "items": record(f("b", "null"), name="S")})),
        mismatch("INT", "NULL", "/fields/0/type/items/fields/0/type", "a.b"),
    ),
    "two fields of another type": (
        record(f("a", "int"), f("b", "int")), record(f("a", "null"), f("b", "null")),
        mismatch("INT", "NULL", "/fields/0/type", "a")
        + mismatch("INT", "NULL", "/fields/1/type", "b"),
    ),
    "a new field without a default": (
        record(f("a", "int"), f("b", "int")), record(f("a", "int")),
        no_default("b", "/fields/1"),
    ),
    "an enum's own default is not the field's": (
        record(f("a", enum("A", default="A"))), record(),
        no_default("a", "/fields/0"),
    ),
    "an alias of the writer does not count": (
        record(f("b", "int")), record(f("a", "int", aliases=["b"])),
        no_default("b", "/fields/0"),
    ),
    "a record of another name": (
        record(name="shop.A"), record(name="shop.B"),
        [("NAME_MISMATCH", "/name", "", "expected: shop.B")],
    ),
    "a narrower union": (["null", "string"], ["null", "string", "int"], no_branch("INT", "/2")),
    "not in the union": (
        record(f("a", ["null", "string"])), record(f("a", "int")),
        no_branch("INT", "/fields/0/type", "a"),
    ),
    "out of a union": ("string", ["null", "string"], mismatch("STRING", "NULL", "/0")),
    "unknown words": (
        enum("A"), enum("C", "A", "B"),
        [("MISSING_ENUM_SYMBOLS", "/symbols", "", "[B, C]")],
    ),
    "another size": (
        fixed(4), fixed(8),
        [("FIXED_SIZE_MISMATCH", "/size", "", "expected: 8, found: 4")],
    ),
    "another size and another name": (
        fixed(4, "A"), fixed(8, "B"),
        [
            ("NAME_MISMATCH", "/name", "", "expected: B"),
            ("FIXED_SIZE_MISMATCH", "/size", "", "expected: 8, found: 4"),
        ],
    ),
    "a list of itself": (
        LIST_OF_TEXT, LIST, mismatch("STRING", "INT", "/fields/0/type", "value"),
    ),
    "one field from two": (
        record(f("a", "int", aliases=["b"])), record(f("a", "int"), f("b", "int")),
        [
            (
                "AMBIGUOUS_FIELD", "/fields/0", "a",
                "reader field a matches multiple fields of the writer: a, b",
            )
        ],
    ),
    "several at once": (
        record(f("a", "int"), f("b", "int"), f("c", "long")), record(f("a", "long"), f("c", "int")),
        mismatch("INT", "LONG", "/fields/0/type", "a") + no_default("b", "/fields/1"),
    ),
    "a record as a map": (
        {"type": "map", "values": "int"}, record(f("a", "int")), mismatch("MAP", "RECORD"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "writer", "expected"), UNREADABLE.values(), ids=UNREADABLE.keys()
)
def test_these_are_not_read(reader: Any, writer: Any, expected: Any) -> None:
    assert found(reader, writer) == expected


def test_messages_name_the_field_and_both_types() -> None:
    reader = record(f("order", record(f("qty", "int"), name="S")))
    writer = record(f("order", record(f("qty", "string"), name="S")))
    (one,) = incompatibilities(parse_schema(json.dumps(reader)), parse_schema(json.dumps(writer)))
    assert one.message == "Field 'order.qty' is an int, which cannot be read from a string."


def test_what_was_only_assumed_of_a_recursive_type_is_forgotten_when_it_is_wrong() -> None:
    # A.x is readable only if A is; A is not, because of y. The union takes the other branch, so
    # the second field has to find out again that A is unreadable.
    def schema(y: str) -> Any:
        inner = record(f("back", ["null", "Outer"]), name="Inner")
        outer = record(f("inner", inner), f("y", y), name="Outer")
        return record(
            f("first", ["null", outer, record(name="Other", aliases=["Outer"])]),
            f("second", "Inner"),
        )

    reader, writer = schema("int"), schema("string")
    writer["fields"][0]["type"] = writer["fields"][0]["type"][1]
    paths = {one[1] for one in found(reader, writer)}
    assert "/fields/1/type/fields/0/type/1" in paths


def test_references_outside_of_the_trees_are_followed() -> None:
    inner = parse_schema(json.dumps(record(f("a", "int"), name="Inner")))
    wider = parse_schema(json.dumps(record(f("a", "long"), name="Inner")))
    outer = json.dumps(record(f("inner", "Inner")))
    new, old = parse_schema(outer, [wider]), parse_schema(outer, [inner])
    types_new, types_old = named_types(wider), named_types(inner)
    assert not incompatibilities(new, old, reader_types=types_new, writer_types=types_old)
    (back,) = incompatibilities(old, new, reader_types=types_old, writer_types=types_new)
    assert (back.type, back.field) == (Difference.TYPE_MISMATCH, "inner.a")


def test_a_reference_to_nothing_is_refused() -> None:
    outer = json.dumps(record(f("inner", "Inner")))
    inner = parse_schema(json.dumps(record(name="Inner")))
    dangling = parse_schema(outer, [inner])
    with pytest.raises(InvalidSchema, match="refers to 'Inner'"):
        incompatibilities(dangling, dangling)


def test_chains_of_types_deeper_than_the_stack_are_compared() -> None:
    count = 5000
    chain = [f("f0", record(f("x", "int"), name="R0"))]
    chain += [f(f"f{n}", record(f("x", f"R{n - 1}"), name=f"R{n}")) for n in range(1, count)]
    writer = record(*chain, name="Top")
    loop = record(f("x", ["int", "Loop"]), name="Loop", aliases=[f"R{n}" for n in range(count)])
    reader = record(f("all", loop, aliases=[f"f{count - 1}"]), name="Top")
    assert found(reader, writer) == []


def test_differences_of_types_that_are_used_again_are_told_once() -> None:
    def doubling(innermost: str) -> Any:
        fields = [f("f0", record(f("x", innermost), name="R0"))]
        for n in range(1, 60):
            inner = record(f("x", f"R{n - 1}"), f("y", f"R{n - 1}"), name=f"R{n}")
            fields.append(f(f"f{n}", inner))
        return record(*fields, name="Top")

    (one,) = found(doubling("int"), doubling("string"))
    assert one[1:3] == ("/fields/0/type/fields/0/type", "f0.x")


def test_differences_deeper_than_the_stack_are_told() -> None:
    count = 3000
    chain = [f("f0", record(f("x", "string"), name="R0"))]
    chain += [f(f"f{n}", record(f("x", f"R{n - 1}"), name=f"R{n}")) for n in range(1, count)]
    writer = record(*chain, name="Top")
    loop = record(f("x", ["int", "Loop"]), name="Loop", aliases=[f"R{n}" for n in range(count)])
    reader = record(f("all", loop, aliases=[f"f{count - 1}"]), name="Top")
    (one,) = found(reader, writer)
    assert one[0] == "MISSING_UNION_BRANCH"


def test_pairs_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "MAX_COMPARISONS", 5_000)
    many = [fixed(4, f"F{n}") for n in range(100)]
    with pytest.raises(InvalidSchema, match="more than 5000 pairs"):
        found(many, [*reversed(many)])


def test_levels_say_which_way_is_checked() -> None:
    table = {level: (level.is_backward, level.is_forward, level.is_transitive) for level in Level}
    assert table == {
        Level.NONE: (False, False, False),
        Level.BACKWARD: (True, False, False),
        Level.BACKWARD_TRANSITIVE: (True, False, True),
        Level.FORWARD: (False, True, False),
        Level.FORWARD_TRANSITIVE: (False, True, True),
        Level.FULL: (True, True, False),
        Level.FULL_TRANSITIVE: (True, True, True),
    }


# Pairs at random: a schema and what somebody made of it.

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
Tree = Any


def trees(depth: int, names: Counter[str]) -> st.SearchStrategy[Tree]:
    """Names are unique by themselves: fastavro takes the first of equal ones in a union."""

    @st.composite
    def draw_tree(draw: Any) -> Tree:
        kinds = ["primitive", "enum", "fixed"]
        if depth:
            kinds += ["array", "map", "record", "record", "union"]
        kind = draw(st.sampled_from(kinds))
        names["types"] += 1
        name = f"T{names['types']}"
        inner = trees(depth - 1, names) if depth else st.nothing()
        match kind:
            case "primitive":
                return draw(st.sampled_from(PRIMITIVES))
            case "enum":
                return enum(
                    *draw(st.lists(st.sampled_from("ABCD"), min_size=1, unique=True)), name=name
                )
            case "fixed":
                return fixed(draw(st.integers(0, 3)), name)
            case "array":
                return {"type": "array", "items": draw(inner)}
            case "map":
                return {"type": "map", "values": draw(inner)}
            case "record":
                fields = draw(st.lists(inner, max_size=3))
                if draw(st.booleans()):
                    fields.append(["null", name])
                return record(*(f(f"f{n}", t) for n, t in enumerate(fields)), name=name)
            case _:
                return draw(
                    st.lists(
                        inner.filter(lambda t: not isinstance(t, list)),
                        min_size=1,
                        max_size=3,
                        unique_by=branch_name,
                    )
                )

    return draw_tree()  # fmt: skip


def branch_name(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    return str(tree.get("name", tree["type"]))


@st.composite
def evolved(draw: Any, tree: Tree, in_union: bool = False) -> Tree:
    """The tree after some changes, most of them compatible ones."""
    change = draw(st.integers(0, 11))
    if change == 0 and not in_union and not isinstance(tree, list) and tree != "null":
        return ["null", draw(evolved(tree, True))]
    if change == 1 and not in_union:
        return draw(st.sampled_from(PRIMITIVES))
    match tree:
        case list():
            branches = [draw(evolved(branch, True)) for branch in tree]
            if draw(st.booleans()):
                branches = draw(st.permutations(branches))
            return list({branch_name(branch): branch for branch in branches}.values())
        case "int":
            return draw(st.sampled_from(["int", "long", "float", "double"]))
        case "long":
            return draw(st.sampled_from(["long", "double", "int"]))
        case "float":
            return draw(st.sampled_from(["float", "double"]))
        case "string" | "bytes":
            return draw(st.sampled_from(["string", "bytes"]))
        case {"type": "array", "items": items}:
            return {"type": "array", "items": draw(evolved(items))}
        case {"type": "map", "values": values}:
            return {"type": "map", "values": draw(evolved(values))}
        case {"type": "enum"}:
            symbols = draw(st.permutations(tree["symbols"]))
            if draw(st.booleans()):
                return {**tree, "symbols": [*symbols, "Z"]}
            return {**tree, "symbols": symbols[:1], "default": symbols[0]}
        case {"type": "fixed"}:
            return {**tree, "size": tree["size"] + draw(st.sampled_from([0, 0, 0, 1]))}
        case {"type": "record"}:
            fields = [{**one, "type": draw(evolved(one["type"]))} for one in tree["fields"]]
            if fields and draw(st.booleans()):
                fields.pop()
            if fields and draw(st.booleans()):
                fields[0] = {**fields[0], "name": "renamed", "aliases": [fields[0]["name"]]}
            if draw(st.booleans()):
                fields.insert(0, f("added", "int", default=7))
            return {**tree, "fields": draw(st.permutations(fields))}
        case _:
            return tree


def first_mentions(tree: Tree, seen: set[str]) -> Tree:
    """Changes can move a type's definition behind its first use: written out where it is first."""
    definitions: dict[str, Tree] = {}

    def collect(node: Tree) -> None:
        match node:
            case list():
                for branch in node:
                    collect(branch)
            case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
                collect(inner)
            case {"name": name}:
                definitions[name] = node
                for one in node.get("fields", ()):
                    collect(one["type"])

    def write(node: Tree) -> Tree:
        match node:
            case str() if node in definitions:
                return node if node in seen else write(definitions[node])
            case list():
                return [write(branch) for branch in node]
            case {"type": "array", "items": inner}:
                return {"type": "array", "items": write(inner)}
            case {"type": "map", "values": inner}:
                return {"type": "map", "values": write(inner)}
            case {"name": name}:
                if name in seen:
                    return name
                seen.add(name)
                if "fields" not in node:
                    return node
                return {
                    **node,
                    "fields": [{**one, "type": write(one["type"])} for one in node["fields"]],
                }
            case _:
                return node

    collect(tree)
    return write(tree)  # fmt: skip


def values(tree: Tree, depth: int = 4) -> st.SearchStrategy[Any]:
    types: dict[str, Tree] = {}

    def of(node: Tree, left: int) -> st.SearchStrategy[Any]:
        match node:
            case list():
                if left <= 0 and "null" in node:
                    return st.none()
                return st.one_of([of(branch, left - 1) for branch in node])
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "int":
                return st.integers(-(2**31), 2**31 - 1)
            case "long":
                return st.integers(-(2**63), 2**63 - 1)
            case "float" | "double":
                return st.floats(width=32, allow_nan=False)
            case "bytes":
                return st.binary(max_size=3).map(lambda b: bytes(byte & 127 for byte in b))
            case "string":
                return st.text("abc", max_size=3)
            case str():
                return of(types[node], left)
            case {"type": "array", "items": inner}:
                return st.lists(of(inner, left - 1), max_size=2)
            case {"type": "map", "values": inner}:
                return st.dictionaries(st.text("k", max_size=1), of(inner, left - 1), max_size=2)
            case {"type": "enum", "symbols": symbols}:
                return st.sampled_from(symbols)
            case {"type": "fixed", "size": size}:
                return st.binary(min_size=size, max_size=size)
            case {"type": "record", "name": name, "fields": fields}:
                types[name] = node
                return st.fixed_dictionaries(
                    {one["name"]: of(one["type"], left - 1) for one in fields}
                )
        raise AssertionError(node)

    return of(tree, depth)


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_what_is_found_readable_is_read_by_fastavro(data: st.DataObject) -> None:
    writer = data.draw(trees(3, Counter()), label="writer")
    reader = first_mentions(data.draw(evolved(writer), label="changed"), set())
    try:
        differences = incompatibilities(
            parse_schema(json.dumps(reader)), parse_schema(json.dumps(writer))
        )
    except InvalidSchema:
        return  # the changes made something that is no schema
    if differences:
        return
    value = data.draw(values(writer), label="value")
    body = io.BytesIO()
    try:
        fastavro.schemaless_writer(body, writer, value)
    except (ValueError, TypeError, OverflowError):
        return  # fastavro does not find the branch of a union that the value is of
    body.seek(0)
    fastavro.schemaless_reader(body, writer, reader)
