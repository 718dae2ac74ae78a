"""Cuts a filter's text into words, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from duolog.errors import InvalidFilter

MAX_BYTES = 8 * 1024

WordKind = Literal["name", "quoted", "text", "number", "symbol", "end"]

RESERVED = frozenset(
    (
        *("AND", "AS", "BETWEEN", "CASE", "DISTINCT", "ELSE", "END", "ESCAPE", "EXISTS", "FALSE"),
        *("FROM", "ILIKE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "SELECT", "THEN", "TRUE"),
        *("WHEN", "WHERE", "WITH"),
    )
)
"""A column of such a name is written in double quotes."""

_LEXEME = re.compile(
    r"""(?P<gap>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<name>[^\W\d]\w*)
      | "(?P<quoted>(?:[^"]|"")*)"
      | '(?P<text>(?:[^']|'')*)'
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![\w.])
      | (?P<symbol><>|!=|<=|>=|\|\||::|/(?!\*)|[-+*%(),.=<>])""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES: dict[WordKind, str] = {"quoted": '"', "text": "'"}
_PARAMETER = re.compile(r"[?@$]|:\w")


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `text` is what is meant: without quotes, and `''` in a text is one quote."""

    kind: WordKind
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The word in capitals if it may be one of SQL's own, else nothing."""
        plain = self.kind in ("name", "symbol") and self.text.isascii()
        return self.text.upper() if plain else ""


def split(text: str) -> list[Word]:
    """The words of a text, and at last one of kind `end`."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidFilter(f"A filter may have {MAX_BYTES} bytes, this one has more.")
    found = []
    position = 0
    while position < len(text):
        lexeme = _LEXEME.match(text, position)
        if lexeme is None:
            raise InvalidFilter(_trouble(text, position), text=text, position=position)
        kind = lexeme.lastgroup
        if kind == "gap":
            if lexeme[0].startswith("/*") and "/*" in lexeme[0][2:]:
                raise InvalidFilter("Comments do not nest.", text=text, position=position)
        else:
            found.append(_word(cast("WordKind", kind), lexeme[kind or 0], text, position))
        position = lexeme.end()
    found.append(Word("end", "", len(text)))
    return found


def _word(kind: WordKind, content: str, text: str, position: int) -> Word:
    try:
        content.encode()
    except UnicodeEncodeError:
        raise InvalidFilter(
            "Half of a surrogate pair is no character.", text=text, position=position
        ) from None
    if kind == "quoted" and not content:
        raise InvalidFilter("A column's name is missing.", text=text, position=position)
    if kind in _QUOTES:
        content = content.replace(_QUOTES[kind] * 2, _QUOTES[kind])
    return Word(kind, content, position)


def _trouble(text: str, position: int) -> str:
    rest = text[position:]
    if rest.startswith("'"):
        return "This text has no closing quote."
    if rest.startswith('"'):
        return "This quoted name has no closing quote."
    if rest.startswith("/*"):
        return "This comment is not closed."
    if re.match(r"\.?[0-9]", rest):
        return "This is not a number."
    if _PARAMETER.match(rest):
        return "A filter has no parameters: write the value."
    return f"`{rest[0]}` means nothing in a filter."
