"""A filter as a small tree of plain values: stored as JSON with its route, sent to tasks.

What this version does not know in a stored filter is refused, not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from duolog.errors import UnsupportedFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 1  # of the stored form
MAX_DEPTH = 64  # nodes above one another; what walks a tree may recurse

Scalar: TypeAlias = bool | int | float | str | None
Side = Literal["row", "before", "after"]
ComparisonOp = Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
ArithmeticOp = Literal["+", "-", "*", "/", "%", "||"]
Test = Literal["NULL", "TRUE", "FALSE"]
TypeWord = Literal[
    "boolean", "tinyint", "smallint", "integer", "bigint", "float", "double", "decimal", "varchar",
    "date", "timestamp",
]  # fmt: skip
FunctionName = Literal[
    "abs", "ceil", "coalesce", "concat", "contains", "date_trunc", "ends_with", "extract", "floor",
    "left", "length", "lower", "ltrim", "nullif", "replace", "right", "round", "rtrim",
    "starts_with", "strpos", "substr", "trim", "upper",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """NULL, a boolean, a number or a text. DATE '…' is a cast of a text."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        # In Python 1, 1.0 and True are equal; in a filter they differ.
        return isinstance(other, Constant) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[type, Scalar]:
        return type(self.value), self.value


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field in a struct column. `row` is the old row for deletes, `after` is not."""

    side: Side
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """What the change did: 'insert', 'update', 'delete' or 'read'."""


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    op: ComparisonOp
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: ArithmeticOp
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Node


@dataclass(frozen=True, slots=True)
class In:
    operand: Node
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Between:
    operand: Node
    low: Node
    high: Node


@dataclass(frozen=True, slots=True)
class Like:
    operand: Node
    pattern: Node
    escape: str | None
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Is:
    operand: Node
    test: Test


@dataclass(frozen=True, slots=True)
class When:
    """One branch of a CASE."""

    condition: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Case:
    operand: Node | None
    whens: tuple[When, ...]
    default: Node | None


@dataclass(frozen=True, slots=True)
class TypeName:
    """What a cast makes. Only a decimal has digits."""

    word: TypeWord
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.word == "decimal" else self.word


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, or TRY_CAST: NULL where CAST would fail."""

    operand: Node
    to: TypeName
    or_null: bool


@dataclass(frozen=True, slots=True)
class Call:
    function: FunctionName
    arguments: tuple[Node, ...]


Node: TypeAlias = (
    Constant
    | Column
    | Operation
    | Not
    | And
    | Or
    | Comparison
    | Arithmetic
    | Negative
    | In
    | Between
    | Like
    | Is
    | Case
    | Cast
    | Call
)


def children(node: Node | When) -> Iterator[Node | When]:
    """The nodes right below, in the order of the text."""
    for each in fields(node):
        value = getattr(node, each.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Node | When):
                yield child


def columns(node: Node) -> tuple[Column, ...]:
    """The columns that a filter looks at, each once, in the order of the text."""
    found: dict[Column, None] = {}
    waiting: list[Node | When] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Column):
            found[each] = None
        waiting.extend(reversed(list(children(each))))
    return tuple(found)


def to_json(node: Node) -> object:
    """Plain lists, dicts and scalars, for json.dumps."""
    return {"v": VERSION, "filter": _plain(node)}


def from_json(value: object) -> Node:
    """The tree that `to_json` was given."""
    if not isinstance(value, dict) or set(value) != {"v", "filter"}:
        raise UnsupportedFormat("A stored filter is not one that any Duolog has written.")
    if value["v"] != VERSION:
        raise UnsupportedFormat(
            f"A stored filter has format {value['v']!r}, this Duolog reads {VERSION}: "
            "use the Duolog that wrote it, or a newer one."
        )
    node: Node = _node(value["filter"], depth=1)
    return node


def _plain(value: Any) -> object:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Node | When | TypeName):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        return (
            parts
            if isinstance(value, When | TypeName)
            else {"node": type(value).__name__.lower(), **parts}
        )
    return value


def _node(value: Any, depth: int) -> Any:
    name = value.get("node") if isinstance(value, dict) else None
    kind = _NODES.get(name) if isinstance(name, str) else None
    if kind is None or depth > MAX_DEPTH:
        raise _unknown(name if kind is None and name else value)
    return _parts(kind, {key: part for key, part in value.items() if key != "node"}, depth)


def _parts(kind: type, value: Any, depth: int) -> Any:
    known = {each.name: str(each.type) for each in fields(kind)}
    if not isinstance(value, dict) or set(value) != set(known):
        raise _unknown(value)
    return kind(**{name: _part(known[name], value[name], depth) for name in known})


def _part(annotation: str, value: Any, depth: int) -> Any:
    """A field's value, checked by what the field is annotated with."""
    if annotation.endswith(" | None"):
        return None if value is None else _part(annotation.removesuffix(" | None"), value, depth)
    if annotation.startswith("tuple["):
        inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
        if not isinstance(value, list):
            raise _unknown(value)
        return tuple(_part(inner, each, depth) for each in value)
    if annotation == "Node":
        return _node(value, depth + 1)
    if annotation == "When":
        return _parts(When, value, depth)
    if annotation == "TypeName":
        return _parts(TypeName, value, depth)
    if not _FITS[annotation](value):
        raise _unknown(value)
    return value


def _word_of(words: Any) -> Callable[[object], bool]:
    allowed = get_args(words)
    return lambda value: isinstance(value, str) and value in allowed


_NODES: dict[str, type] = {kind.__name__.lower(): kind for kind in get_args(Node)}
_FITS: dict[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int,
    "bool": lambda value: isinstance(value, bool),
    "Scalar": lambda value: value is None or isinstance(value, bool | int | float | str),
    "Side": _word_of(Side),
    "ComparisonOp": _word_of(ComparisonOp),
    "ArithmeticOp": _word_of(ArithmeticOp),
    "Test": _word_of(Test),
    "TypeWord": _word_of(TypeWord),
    "FunctionName": _word_of(FunctionName),
}


def _unknown(value: object) -> UnsupportedFormat:
    shown = repr(value)
    return UnsupportedFormat(
        f"A stored filter holds {shown if len(shown) <= 80 else shown[:77] + '...'}, which this "
        "Duolog does not know: use the Duolog that wrote it, or a newer one."
    )
