from __future__ import annotations

import json
from typing import Any

import pytest

from duolog.avro.json_tree import MAX_TEXT_CHARACTERS
from duolog.avro.parse import closed, parse_schema
from duolog.avro.schema import (
    MAX_DEPTH,
    NULL,
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    expanded,
    named_types,
)
from duolog.avro.text import schema_text
from duolog.errors import InvalidSchema

INT = Primitive(Kind.INT)
STRING = Primitive(Kind.STRING)


def _record(*fields: Any, name: str = "shop.Order", **attributes: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": fields, **attributes})


def _with_default(kind: Any, default: Any) -> str:
    return _record({"name": "qty", "type": kind, "default": default})


@pytest.mark.parametrize("kind", list(Kind))
def test_a_primitive_type_is_its_name_bare_quoted_or_in_an_object(kind: Kind) -> None:
    for text in (kind.value, f" {kind.value}\n", f'"{kind.value}"', f'{{"type":"{kind.value}"}}'):
        assert parse_schema(text) == Primitive(kind)


def test_every_attribute_has_its_place_in_the_tree() -> None:
    text = """
    {"type": "record", "name": "Order", "namespace": "shop", "doc": "one", "aliases": ["Old"],
     "owner": {"b": 1, "a": [1.5]}, "fields": [
       {"name": "qty", "type": {"type": "int", "x": true}, "default": 1, "order": "descending",
        "doc": "how many", "aliases": ["quantity"], "logicalType": "stray"},
       {"name": "hash", "type": {"type": "fixed", "name": "md5", "size": 16, "doc": "d"}},
       {"name": "suit", "type": {"type": "enum", "name": "cards.Suit", "symbols": ["A", "B"],
        "default": "B", "aliases": ["x.S", "T"]}},
       {"name": "again", "type": ["null", "md5", {"type": "map", "values": "cards.Suit"}]},
       {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}}
    ]}"""
    assert parse_schema(text) == Record(
        "shop.Order",
        (
            Field(
                "qty",
                Primitive(Kind.INT, properties=(("x", "true"),)),
                "1",
                "descending",
                ("quantity",),
                "how many",
                (("logicalType", '"stray"'),),
            ),
            Field("hash", Fixed("shop.md5", 16, doc="d")),
            Field("suit", Enum("cards.Suit", ("A", "B"), "B", ("x.S", "cards.T"))),
            Field("again", Union((NULL, Reference("shop.md5"), Map(Reference("cards.Suit"))))),
            Field("price", Primitive(Kind.BYTES, Logical("decimal", 9, 0))),
        ),
        ("shop.Old",),
        "one",
        (("owner", '{"b":1,"a":[1.5]}'),),
    )


@pytest.mark.parametrize(
    ("attributes", "full"),
    [
        ({"name": "X"}, "org.foo.X"),
        ({"name": "X", "namespace": "other"}, "other.X"),
        ({"name": "X", "namespace": ""}, "X"),
        ({"name": "X", "namespace": None}, "org.foo.X"),
        ({"name": "a.full.X", "namespace": "ignored"}, "a.full.X"),
    ],
)
def test_names_and_namespaces_follow_the_specification(
    attributes: dict[str, Any], full: str
) -> None:
    inner = {"type": "fixed", "size": 1, **attributes}
    schema = parse_schema(_record({"name": "f", "type": inner}, name="org.foo.Y"))
    assert isinstance(schema, Record)
    assert schema.fields[0].type == Fixed(full, 1)


def test_a_namespace_is_inherited_from_the_enclosing_type() -> None:
    text = _record(
        {"name": "a", "type": {"type": "record", "name": "x.y.In", "fields": [
            {"name": "b", "type": {"type": "enum", "name": "E", "symbols": []}},
            {"name": "c", "type": ["null", {"type": "array", "items": "In"}]},
        ]}},
        {"name": "d", "type": ["x.y.E", "Order"]},
    )  # fmt: skip
    assert sorted(named_types(parse_schema(text))) == ["shop.Order", "x.y.E", "x.y.In"]


def test_a_record_may_contain_itself() -> None:
    link = parse_schema(
        '{"type":"record","name":"Link","fields":[{"name":"next","type":["null","Link"]},'
        '{"name":"all","type":{"type":"array","items":"Link"}},{"name":"self","type":"Link"}]}'
    )
    assert isinstance(link, Record)
    assert link.fields[0].type == Union((NULL, Reference("Link")))
    assert link.fields[2].type == Reference("Link")


@pytest.mark.parametrize(
    ("attributes", "logical"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, (4, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, (4, 0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 400, "scale": 400}, (400, 400)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": -1}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": "2"}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4.0}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": True}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 0}, None),
        ({"type": "bytes", "logicalType": "decimal"}, None),
        ({"type": "string", "logicalType": "decimal", "precision": 4}, None),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 9}, (9, 0)),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 10}, None),
        ({"type": "fixed", "size": 0, "logicalType": "decimal", "precision": 1}, None),
        ({"type": "fixed", "size": 16, "logicalType": "decimal", "precision": 38}, (38, 0)),
        ({"type": "fixed", "size": 16, "logicalType": "decimal", "precision": 39}, None),
        ({"type": "int", "logicalType": "date"}, (0, 0)),
        ({"type": "long", "logicalType": "date"}, None),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, (0, 0)),
        ({"type": "string", "logicalType": "uuid"}, (0, 0)),
        ({"type": "fixed", "size": 16, "logicalType": "uuid"}, (0, 0)),
        ({"type": "fixed", "size": 15, "logicalType": "uuid"}, None),
        ({"type": "fixed", "size": 12, "logicalType": "duration"}, None),
        ({"type": "bytes", "logicalType": "big-decimal"}, None),
        ({"type": "array", "items": "int", "logicalType": "date"}, None),
        ({"type": "string", "logicalType": "no-such-type"}, None),
        ({"type": "string", "logicalType": 7}, None),
    ],
)
def test_only_a_valid_logical_type_counts_and_others_stay_attributes(
    attributes: dict[str, Any], logical: tuple[int, int] | None
) -> None:
    named = {"name": "F"} if attributes["type"] == "fixed" else {}
    schema = parse_schema(json.dumps(attributes | named))
    kept = {name: json.loads(text) for name, text in schema.properties}  # type: ignore[union-attr]
    own = {"type", "size", "items"}
    if logical is None:
        assert getattr(schema, "logical", None) is None
        assert kept == {name: value for name, value in attributes.items() if name not in own}
    else:
        assert schema.logical == Logical(attributes["logicalType"], *logical)  # type: ignore[union-attr]
        assert kept == {}


_MD5 = {"type": "fixed", "name": "md5", "size": 2}
_SUIT = {"type": "enum", "name": "Suit", "symbols": ["A"]}
_POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int", "default": 0}],
}


@pytest.mark.parametrize(
    ("kind", "fitting", "unfit"),
    [
        ("null", [None], [0, "null"]),
        ("boolean", [True], [0, "true", None]),
        ("int", [0, -(2**31), 2**31 - 1], [1.0, True, 2**31, -(2**31) - 1, "1", None]),
        ("long", [2**63 - 1, -(2**63)], [2**63, 1.5]),
        ("float", [1, 1.5, 3.4e38, "NaN", "-Infinity"], ["1", 3.5e38, True, None, "inf"]),
        ("double", [1, 1.5, 1e308, "Infinity"], ["x", False]),
        ("bytes", ["", "\u00ff"], ["\u0100", 1]),
        ("string", ["", "\u0100"], [1, None]),
        (_MD5, ["\u00ff\u0000"], ["a", "abc", "a\u0100"]),
        (_SUIT, ["A"], ["B", 0]),
        ({"type": "array", "items": "int"}, [[], [1]], [["a"], {}, None]),
        ({"type": "map", "values": "int"}, [{}, {"a": 1}], [{"a": "b"}, []]),
        (_POINT, [{"x": 1}, {"x": 1, "y": 2}, {"x": 1, "z": 2}], [{}, {"x": "1"}, [1, 2]]),
        (["null", "int"], [None, 1], ["a", 1.5]),
        (["int", "null", _POINT], [None, {"x": 1}], [{"y": 1}]),
    ],
)
def test_a_default_is_of_its_fields_type_or_of_any_type_of_its_union(
    kind: Any, fitting: list[Any], unfit: list[Any]
) -> None:
    for default in fitting:
        schema = parse_schema(_with_default(kind, default))
        assert isinstance(schema, Record)
        assert json.loads(schema.fields[0].default or "") == default
    for default in unfit:
        with pytest.raises(InvalidSchema, match=r"record 'shop\.Order', field 'qty': the default"):
            parse_schema(_with_default(kind, default))
        read = parse_schema(_with_default(kind, default), strict=False)
        assert isinstance(read, Record)
        assert json.loads(read.fields[0].default or "") == default


def test_a_default_may_be_of_a_type_that_is_finished_only_later() -> None:
    tree = {"name": "left", "type": ["null", "shop.Order"], "default": {"left": None, "n": 1}}
    parse_schema(_record(tree, {"name": "n", "type": "int"}))
    with pytest.raises(InvalidSchema, match="field 'left': the default"):
        parse_schema(_record(tree, {"name": "n", "type": "string"}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("shop.Order", "not JSON"),
        ("{'type': 'int'}", "not JSON"),
        ('{"type":"int","type":"int"}', "has 'type' twice in one object"),
        ("NaN", "has NaN, which is no JSON number"),
        ('{"type":"int","x":-Infinity}', "has -Infinity"),
        ('{"type":"int","x":1e400}', "'1e400', which no double can hold"),
        ('{"type":"int","x":%s}' % ("9" * 9000), "which no double can hold"),
        ('{"type":"int","x":"\\ud800"}', "not valid Unicode"),
        ('{"type":"int","\\udc00":1}', "not valid Unicode"),
        ("[" * 100_000, "nested more than"),
        ("[" * 300 + "]" * 300, "nested more than"),
        ("1", "schema: 1 is no schema"),
        ("true", "schema: true is no schema"),
        ("{}", 'schema: an object without "type"'),
        ('{"type":{"type":"int"}}', 'schema: "type" must name a type'),
        ('{"type":["int"]}', '"type" must name a type'),
        ('"shop.Order"', "the type 'shop.Order' is not known"),
        ('"array"', 'written as an object: {"type": "array", ...}'),
        ('{"type":"array"}', 'a type array needs "items"'),
        ('{"type":"map","items":"int"}', 'a type map needs "values"'),
        ('["int",{"type":"int","logicalType":"date"}]', "a union has int twice"),
        ('["null",["int"]]', "a union directly in a union"),
        ('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', "has array twice"),
        ('[{"type":"fixed","name":"F","size":1},"F"]', "a union has F twice"),
        ('["int","nosuch"]', "schema, branch 1: the type 'nosuch' is not known"),
        ('{"type":"fixed","name":"F"}', "fixed 'F': it needs \"size\""),
        ('{"type":"fixed","name":"F","size":-1}', "0 to 2147483647 bytes; got -1"),
        ('{"type":"fixed","name":"F","size":2147483648}', "got 2147483648"),
        ('{"type":"fixed","name":"F","size":"16"}', "got '16'"),
        ('{"type":"fixed","name":"F","size":true}', "got true"),
        ('{"type":"fixed","size":1}', 'a type fixed needs a "name"; got null'),
        ('{"type":"fixed","name":"a-b","size":1}', "full: 'a-b'"),
        ('{"type":"fixed","name":"","size":1}', "is not allowed"),
        ('{"type":"fixed","name":".F","size":1}', "is not allowed"),
        ('{"type":"fixed","name":"a..F","size":1}', "is not allowed"),
        ('{"type":"fixed","name":"F","namespace":"1a","size":1}', "full: '1a.F'"),
        ('{"type":"fixed","name":"F","namespace":7,"size":1}', "the namespace 7 is no string"),
        ('{"type":"fixed","name":"gr\u00f6\u00dfe","size":1}', "letters, digits and _"),
        ('{"type":"fixed","name":"a.string","size":1}', "is that of a primitive type"),
        ('{"type":"enum","name":"E"}', "enum 'E': it needs \"symbols\""),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "the symbol 'A' twice"),
        ('{"type":"enum","name":"E","symbols":["a b"]}', "enum 'E': 'a b' is no symbol"),
        ('{"type":"enum","name":"E","symbols":[1]}', "1 is no symbol"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "default 'B' is none of"),
        ('{"type":"enum","name":"E","symbols":[],"aliases":"x"}', "are no list of strings"),
        ('{"type":"enum","name":"E","symbols":[],"doc":["x"]}', "the doc"),
        ('{"type":"record","name":"R"}', "record 'R': it needs \"fields\""),
        ('{"type":"record","name":"R","fields":[1]}', "1 is no field"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "field 'a': it needs a \"type\""),
        ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "null cannot name a field"),
        ('{"type":"record","name":"R","fields":[{"name":"a.b","type":"int"}]}', "cannot name"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},'
            '{"name":"a","type":"int"}]}',
            "record 'R': it has the field 'a' twice",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}',
            "the order 'up' is none of",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},'
            '{"name":"b","type":"int","aliases":["a"]}]}',
            "the fields 'a' and 'b' share the name 'a'",
        ),
        (
            '[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"G","size":1,'
            '"aliases":["F"]}]',
            "fixed 'G': its alias 'F' names another type too",
        ),
        (
            '[{"type":"fixed","name":"a.F","size":1},{"type":"array","items":'
            '{"type":"fixed","name":"F","namespace":"a","size":1}}]',
            "the type 'a.F' is defined twice",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"X"},'
            '{"name":"b","type":{"type":"fixed","name":"X","size":1}}]}',
            "record 'R', field 'a': the type 'X' is not known",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array",'
            '"items":{"type":"map","values":"X"}}}]}',
            "record 'R', field 'a', items, values: the type 'X'",
        ),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse_schema(text)
    assert message in str(refused.value)


def test_a_text_that_is_too_long_or_no_text_is_refused() -> None:
    parse_schema('"int"' + " " * (MAX_TEXT_CHARACTERS - 5))
    with pytest.raises(InvalidSchema, match=f"at most {MAX_TEXT_CHARACTERS}"):
        parse_schema('"int"' + " " * (MAX_TEXT_CHARACTERS - 4))
    with pytest.raises(InvalidSchema, match="got bytes"):
        parse_schema(b'"int"')  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('{"type":"array","items":', "}"),
        ('{"type":"map","values":', "}"),
        ('{"type":"record","name":"R%d","fields":[{"name":"f","type":', "}]}"),
    ],
)
def test_types_are_read_to_the_greatest_depth_and_refused_beyond(begin: str, end: str) -> None:
    def nested(depth: int) -> str:
        opened = "".join(begin % i if "%" in begin else begin for i in range(depth - 1))
        return f'{opened}"int"{end * (depth - 1)}'

    assert schema_text(parse_schema(nested(MAX_DEPTH))) == schema_text(
        parse_schema(schema_text(parse_schema(nested(MAX_DEPTH))))
    )
    with pytest.raises(InvalidSchema, match=f"nested more than {MAX_DEPTH} deep"):
        parse_schema(nested(MAX_DEPTH + 1))


def test_a_default_cannot_make_the_reader_work_for_ever() -> None:
    names = [f"R{i}" for i in range(10)]
    bodies: list[Any] = []
    for index, name in enumerate(names):
        inner = {"type": "array", "items": names[: index + 1]}
        bodies.append({"type": "record", "name": name, "fields": [{"name": "f", "type": inner}]})
    default: Any = "no"
    for _ in range(60):
        default = {"f": [default]}
    text = _record(
        *({"name": f"d{index}", "type": body} for index, body in enumerate(bodies)),
        {"name": "all", "type": names, "default": default},
        name="Top",
    )
    with pytest.raises(InvalidSchema, match="fit too many types to check them all"):
        parse_schema(text)


def test_long_names_cannot_fill_the_memory() -> None:
    space = "a." * 1500 + "b"
    types = [{"type": "fixed", "name": f"F{index}", "size": 1} for index in range(6000)]
    fields = [{"name": f"f{index}", "type": kind} for index, kind in enumerate(types)]
    with pytest.raises(InvalidSchema, match="Use shorter namespaces"):
        parse_schema(_record(*fields, name=f"{space}.R"))
    aliases = [f"a{index}" for index in range(6000)]
    with pytest.raises(InvalidSchema, match="Use shorter namespaces"):
        parse_schema(_record(name=f"{space}.R", aliases=aliases))
    fields = [{"name": f"f{index}", "type": "R"} for index in range(6000)]
    with pytest.raises(InvalidSchema, match="Use shorter namespaces"):
        parse_schema(_record(*fields, name=f"{space}.R"))
    parse_schema(_record(name="a" * 4096))
    with pytest.raises(InvalidSchema, match="full names have at most 4096"):
        parse_schema(_record(name="a" * 4097))


def test_types_of_referenced_schemas_are_known_by_name() -> None:
    money = parse_schema(
        '{"type":"record","name":"shop.Money","fields":[{"name":"n","type":"int"}]}'
    )
    text = _record(
        {"name": "a", "type": "Money", "default": {"n": 1}},
        {"name": "b", "type": ["null", "shop.Money"]},
    )
    for references in ([money], named_types(money)):
        schema = parse_schema(text, references)
        assert isinstance(schema, Record)
        assert schema.fields[0].type == Reference("shop.Money")
        whole = closed(schema, references)
        assert isinstance(whole, Record)
        assert whole.fields[0].type == money
        assert whole.fields[1].type == Union((NULL, Reference("shop.Money")))
        assert parse_schema(schema_text(whole)) == whole
    with pytest.raises(InvalidSchema, match="the type 'Money' is not known"):
        parse_schema(text)
    with pytest.raises(InvalidSchema, match=r"'shop\.Money', which none of its references"):
        closed(schema, [])
    with pytest.raises(InvalidSchema, match="field 'a': the default"):
        parse_schema(_record({"name": "a", "type": "Money", "default": {"n": "x"}}), [money])


def test_references_of_references_are_written_out_once() -> None:
    inner = parse_schema('{"type":"fixed","name":"In","size":1}')
    middle = parse_schema(_record({"name": "a", "type": "In"}, name="Mid"), [inner])
    outer = parse_schema('["In","Mid"]', [inner, middle])
    assert closed(outer, [middle, inner]) == Union(
        (Fixed("In", 1), Record("Mid", (Field("a", Reference("In")),)))
    )
    assert expanded(closed(middle, [inner])) == Record("Mid", (Field("a", Fixed("In", 1)),))


def test_a_known_type_is_not_defined_in_another_way() -> None:
    known = parse_schema('{"type":"fixed","name":"F","size":1}')
    same = parse_schema('{"type":"array","items":{"type":"fixed","name":"F","size":1}}', [known])
    assert same == Array(Fixed("F", 1))
    with pytest.raises(InvalidSchema, match="fixed 'F': a referenced schema defines this type"):
        parse_schema('{"type":"fixed","name":"F","size":2}', [known])
    with pytest.raises(InvalidSchema, match="Two of the referenced schemas define 'F'"):
        parse_schema('"int"', [known, Fixed("F", 2)])


def test_references_that_grow_too_deep_are_refused() -> None:
    chain: list[Schema] = [Fixed("R0", 1)]
    for index in range(1, 2 * MAX_DEPTH):
        chain.append(parse_schema(f'{{"type":"record","name":"R{index}","fields":'
                                  f'[{{"name":"f","type":"R{index - 1}"}}]}}', chain))  # fmt: skip
    with pytest.raises(InvalidSchema, match=f"more than {MAX_DEPTH} deep"):
        closed(chain[-1], chain)
