"""Functions, casts and typed texts, with the words that SQL puts between their arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast, get_args

from duolog.log.routing.filter import refused
from duolog.log.routing.filter.reader import Level, Reader, shown
from duolog.log.routing.filter.tree import (
    Call,
    Cast,
    Constant,
    FunctionName,
    Node,
    TypeName,
    TypeWord,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.log.routing.filter.words import Word

    Expression = Callable[[Level], Node]

FUNCTIONS: tuple[str, ...] = get_args(FunctionName)
EXTRACTED = ("year", "month", "day", "hour", "minute", "second")
_ALIASES = {"char_length": "length", "character_length": "length", "substring": "substr"}
_CALLABLE = tuple(sorted((*FUNCTIONS, *_ALIASES, "cast", "position", "try_cast")))
_MANY = 1000
_ARGUMENTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("abs", "ceil", "floor", "length", "lower", "upper"), (1, 1)),
    **dict.fromkeys(("contains", "date_trunc", "ends_with", "left", "nullif"), (2, 2)),
    **dict.fromkeys(("right", "starts_with", "strpos"), (2, 2)),
    **dict.fromkeys(("ltrim", "round", "rtrim", "trim"), (1, 2)),
    **dict.fromkeys(("coalesce", "concat"), (1, _MANY)),
    "replace": (3, 3),
    "substr": (2, 3),
}
_TYPES: dict[str, TypeWord] = {
    **{word.upper(): word for word in get_args(TypeWord)},
    "BOOL": "boolean",
    "INT": "integer",
    "REAL": "float",
    "NUMERIC": "decimal",
    "TEXT": "varchar",
    "STRING": "varchar",
}
_MAX_DIGITS = 38


def call(reader: Reader, word: Word, expression: Expression) -> Node:
    """The call of the function `word`; the reader stands at the opening parenthesis."""
    match word.text.lower():
        case "cast":
            return _cast(reader, word, expression, or_null=False)
        case "try_cast":
            return _cast(reader, word, expression, or_null=True)
        case "extract":
            return _extract(reader, word, expression)
        case "position":
            return _position(reader, word, expression)
        case "trim":
            return _trim(reader, word, expression)
        case lower:
            name = _ALIASES.get(lower, lower)
    if name not in FUNCTIONS:
        raise reader.error(word, refused.reason(word.text, _CALLABLE))
    reader.expect("(")
    arguments = _arguments(reader, expression)
    if name == "substr" and len(arguments) == 1:
        arguments += _from_for(reader, expression)
    reader.expect(")")
    return _called(reader, word, name, arguments)


def typed_text(reader: Reader, word: Word) -> Node:
    """DATE '…' or TIMESTAMP '…'."""
    if word.keyword == "INTERVAL":
        raise reader.error(word, "Intervals are not supported: compare with a date or a timestamp.")
    if word.keyword not in ("DATE", "TIMESTAMP"):
        raise reader.error(
            word, f"{shown(word)} before a text has no meaning here; DATE and TIMESTAMP have."
        )
    text = reader.take()
    return reader.place(
        Cast(reader.place(Constant(text.text), text), TypeName(_TYPES[word.keyword]), False), text
    )


def type_name(reader: Reader) -> TypeName:
    """The name of a type, as in a cast."""
    word = reader.take()
    known = _TYPES.get(word.keyword)
    if known is None:
        types = ", ".join(_TYPES).lower()
        raise reader.error(word, f"Expected a type here, found {shown(word)}. There is: {types}.")
    if word.keyword == "DOUBLE":
        reader.accept("PRECISION")
    if known == "decimal":
        return _decimal(reader, word)
    if reader.next.keyword == "(":
        hint = "LEFT(…, n) cuts a text" if known == "varchar" else "leave the digits out"
        raise reader.error(reader.next, f"{shown(word)} takes no length or precision here: {hint}.")
    return TypeName(known)


def _decimal(reader: Reader, word: Word) -> TypeName:
    if not reader.accept("("):
        raise reader.error(
            word, "Engines differ in what a bare DECIMAL is: write DECIMAL(digits, places)."
        )
    precision = _digits(reader, 1, _MAX_DIGITS)
    scale = _digits(reader, 0, precision) if reader.accept(",") else 0
    reader.expect(")")
    return TypeName("decimal", precision, scale)


def _digits(reader: Reader, least: int, most: int) -> int:
    word = reader.take()
    number = (
        int(word.text) if word.kind == "number" and re.fullmatch("[0-9]{1,4}", word.text) else -1
    )
    if not least <= number <= most:
        raise reader.error(
            word, f"Expected a number from {least} to {most} here, found {shown(word)}."
        )
    return number


def _cast(reader: Reader, word: Word, expression: Expression, *, or_null: bool) -> Node:
    reader.expect("(")
    operand = expression(Level.OR)
    reader.expect("AS")
    to = type_name(reader)
    reader.expect(")")
    return reader.place(Cast(operand, to, or_null), word)


def _extract(reader: Reader, word: Word, expression: Expression) -> Node:
    reader.expect("(")
    unit = reader.take()
    if unit.keyword.lower() not in EXTRACTED:
        raise reader.error(
            unit, f"Expected one of {', '.join(EXTRACTED)} here, found {shown(unit)}."
        )
    reader.expect("FROM")
    operand = expression(Level.OR)
    reader.expect(")")
    place = reader.place(Constant(unit.keyword.lower()), unit)
    return reader.place(Call("extract", (place, operand)), word)


def _position(reader: Reader, word: Word, expression: Expression) -> Node:
    reader.expect("(")
    part = expression(Level.SUM)
    reader.expect("IN")
    whole = expression(Level.SUM)
    reader.expect(")")
    return reader.place(Call("strpos", (whole, part)), word)


def _trim(reader: Reader, word: Word, expression: Expression) -> Node:
    """TRIM(x), TRIM(x, chars) or TRIM([BOTH | LEADING | TRAILING] [chars] FROM x)."""
    names = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    reader.expect("(")
    sided = reader.next.keyword in names and reader.after_next.kind != "symbol"
    name = names[reader.take().keyword] if sided else "trim"
    arguments = () if reader.next.keyword == "FROM" else _arguments(reader, expression)
    if sided or (len(arguments) == 1 and reader.next.keyword == "FROM"):
        reader.expect("FROM")
        arguments = (expression(Level.OR), *arguments)
    reader.expect(")")
    return _called(reader, word, name, arguments)


def _from_for(reader: Reader, expression: Expression) -> tuple[Node, ...]:
    """The second half of SUBSTRING(x FROM start FOR length); either part can be missing."""
    if reader.accept("FROM"):
        begin = expression(Level.SUM)
    elif reader.next.keyword == "FOR":
        begin = reader.place(Constant(1), reader.next)
    else:
        return ()
    return (begin, expression(Level.SUM)) if reader.accept("FOR") else (begin,)


def _arguments(reader: Reader, expression: Expression) -> tuple[Node, ...]:
    if reader.next.keyword == ")":
        return ()
    return tuple(expression(Level.OR) for _ in reader.commas())


def _called(reader: Reader, word: Word, name: str, arguments: tuple[Node, ...]) -> Node:
    least, most = _ARGUMENTS[name]
    if not least <= len(arguments) <= most:
        wanted = f"{least}" if least == most else f"{least} or {most}"
        wanted = f"at least {least}" if most == _MANY else wanted
        plural = "" if wanted.endswith("1") else "s"
        raise reader.error(
            word, f"{shown(word)} takes {wanted} argument{plural}, not {len(arguments)}."
        )
    return reader.place(Call(cast("FunctionName", name), arguments), word)
