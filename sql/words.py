"""Cuts SQL into words, each with its place, and into statements at the semicolons.

What only DataFusion understands, the inside of a SELECT, passes through here as symbols.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from duolog.errors import InvalidSql

MAX_BYTES = 256 * 1024

WordKind = Literal["name", "quoted", "text", "number", "symbol", "end"]

_LEXEME = re.compile(
    r"""(?P<gap>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<name>[^\W\d]\w*)
      | "(?P<quoted>(?:[^"]|"")*)"
      | '(?P<text>(?:[^']|'')*)'
      | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?!\w)
      | (?P<symbol>[^\s\w"'](?<!/)|/(?!\*)|\d\w*)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES: dict[WordKind, str] = {"quoted": '"', "text": "'"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `text` is what is meant: without quotes, and `''` in a text is one quote."""

    kind: WordKind
    text: str
    position: int
    end: int  # where what follows begins

    @property
    def keyword(self) -> str:
        """The word in capitals if it may be one of SQL's own, else nothing."""
        plain = self.kind in ("name", "symbol") and self.text.isascii()
        return self.text.upper() if plain else ""


def split(text: str) -> list[list[Word]]:
    """The words of each statement; each ends with one of kind `end`. Empty statements are none."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidSql("This is no text: half of a surrogate pair is no character.") from None
    if size > MAX_BYTES:
        raise InvalidSql(f"SQL may have {MAX_BYTES:,} bytes, this has more. Send it in parts.")
    statements: list[list[Word]] = []
    words: list[Word] = []
    position = 0
    while position < len(text):
        word, position = _next(text, position)
        if word is None:
            continue
        if word.keyword != ";":
            words.append(word)
        elif words:
            statements.append([*words, _end(word.position)])
            words = []
    if words:
        statements.append([*words, _end(words[-1].end)])
    return statements


def _end(position: int) -> Word:
    return Word("end", "", position, position)


def _next(text: str, position: int) -> tuple[Word | None, int]:
    lexeme = _LEXEME.match(text, position)
    if lexeme is None:
        raise InvalidSql(_trouble(text[position:]), text=text, position=position)
    kind = lexeme.lastgroup
    content = lexeme[kind or 0]
    if kind == "gap":
        if content.startswith("/*") and "/*" in content[2:]:
            raise InvalidSql("Comments do not nest.", text=text, position=position)
        return None, lexeme.end()
    return _word(cast("WordKind", kind), content, text, position, lexeme.end()), lexeme.end()


def _word(kind: WordKind, content: str, text: str, position: int, end: int) -> Word:
    if kind == "quoted" and not content:
        raise InvalidSql("A name is missing between these quotes.", text=text, position=position)
    if kind in _QUOTES:
        content = content.replace(_QUOTES[kind] * 2, _QUOTES[kind])
    return Word(kind, content, position, end)


def _trouble(rest: str) -> str:
    if rest.startswith("'"):
        return "This text has no closing quote."
    if rest.startswith('"'):
        return "This quoted name has no closing quote."
    return "This comment is not closed."
