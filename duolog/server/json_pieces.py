"""Reads a large JSON object piece by piece, so that other threads run in between.

Python's JSON parser keeps Python's lock until it is through: 8 MB may take half a second. Here it
is called for one member of the object, or one item of a list in it, at a time; and how many values
such a piece has is limited. What a text means is the same as for `json.loads`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from duolog.server.text import is_utf8

SMALL_BYTES: Final = 64 << 10
"""A body up to this size is parsed on the event loop: 2 ms at most, 0.7 ms for common records."""

MOST_VALUES_IN_A_PIECE: Final = 100_000  # 10 to 40 ms of Python's lock

_BLOCK_BYTES: Final = 4096
_COUNTED_AT_ONCE: Final = 64 * _BLOCK_BYTES  # numpy takes four times as much to count them
_LONGEST_WORD: Final = 16  # -Infinity, and \ud83d\ude00
_SPACES: Final = " \t\n\r"
_SPACE: Final = re.compile(f"[{_SPACES}]*")
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

TakeItem = Callable[[str, int, Any], Any]
"""Given a list's name, a position in it, and the item there: what takes its place."""


class NotUtf8(ValueError):
    """JSON is written in UTF-8 here."""


class NotUnicode(ValueError):
    """Half of a surrogate pair can be written in JSON, but not stored or sent."""


class NoObject(ValueError):
    """It is JSON, perhaps, but no object."""


class TooManyValues(ValueError):
    """`place` has more values than are parsed at once; it is empty for the whole text."""

    def __init__(self, place: str) -> None:
        self.place = place
        super().__init__(place)


def read_object(
    body: bytes,
    take_item: TakeItem,
    *,
    values_in_a_piece: int = MOST_VALUES_IN_A_PIECE,
    values_in_all: int | None = None,
) -> dict[str, Any]:
    """The JSON object that a text holds. What `take_item` raises is passed on.

    Raises:
        json.JSONDecodeError: It is no JSON.
        ValueError, RecursionError: It is JSON that cannot be read: a number that is too long, or
            too many brackets. Or it is one of the errors above, each a ValueError of its own.
    """
    if not is_utf8(body):
        raise NotUtf8
    body = body.removeprefix(_UTF8_MARK)
    counts = None
    if _values_at_most(body) > min(values_in_a_piece, values_in_all or values_in_a_piece):
        counts = _values_of_blocks(body)
        if values_in_all is not None and counts[-1] > values_in_all:
            raise TooManyValues("")
    return _Reading(body, counts, values_in_a_piece, take_item).run()


def has_surrogates(body: bytes) -> bool:
    """Whether a text has escaped surrogates, in pairs or not."""
    return _SURROGATE.search(body) is not None


def check_unicode(value: Any) -> None:
    """Refuse text that cannot be encoded."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotUnicode from None


class _Reading:
    """A window lies over the text: as much of it as has so many values, and is parsed at once."""

    def __init__(
        self, body: bytes, counts: Any, values_in_a_piece: int, take_item: TakeItem
    ) -> None:
        self._body = body
        self._counts = counts  # of values up to the end of each block; None: few enough in all
        self._values = values_in_a_piece
        self._take_item = take_item
        self._decode = json.JSONDecoder().raw_decode
        self._place: tuple[str | int, ...] = ()
        self._has_surrogates = has_surrogates(body)
        self._start = self._at = 0  # of the window, in bytes; in it, in characters
        self._open_window(0)

    def run(self) -> dict[str, Any]:
        if self._next_character() != "{":
            return self._no_object()
        found: dict[str, Any] = {}
        self._at += 1
        if self._next_character() == "}":
            self._at += 1
        else:
            while True:
                self._member(found)
                if self._ends("}"):
                    break
        if self._next_character():
            raise self._wrong("Extra data")
        return found

    def _member(self, found: dict[str, Any]) -> None:
        if self._next_character() != '"':
            raise self._wrong("Expecting property name enclosed in double quotes")
        self._place = ()
        name = self._value()
        if self._next_character() != ":":
            raise self._wrong("Expecting ':' delimiter")
        self._at += 1
        self._place = (name,)
        found[name] = self._items(name) if self._next_character() == "[" else self._value()

    def _items(self, name: str) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        if self._next_character() == "]":
            self._at += 1
            return items
        while True:
            self._next_character()
            self._place = name, len(items)
            items.append(self._take_item(name, len(items), self._value()))
            if self._ends("]"):
                return items

    def _ends(self, bracket: str) -> bool:
        """Step over what comes after a value: whether it is this bracket, and no comma."""
        following = self._next_character()
        if following not in (",", bracket) or not following:
            raise self._wrong("Expecting ',' delimiter")
        self._at += 1
        return following == bracket

    def _value(self) -> Any:
        while True:
            begin = self._at
            try:
                value, end = self._decode(self._text, begin)
            except json.JSONDecodeError as error:
                if not self._is_cut(error):
                    raise
                if begin == 0:
                    place = ".".join(str(each)[:100] for each in self._place)
                    raise TooManyValues(place) from None
            else:
                # A number that ends near the window's end may go on behind it: 1.5e|-7.
                is_near_the_end = end > len(self._text) - _LONGEST_WORD
                if self._is_last or begin == 0 or not is_near_the_end:
                    self._at = end
                    if self._has_surrogates:
                        check_unicode(value)
                    return value
            self._move_window()

    def _is_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether it may be no mistake, with what follows behind the window."""
        if self._is_last:
            return False
        near_the_end = error.pos > len(self._text) - _LONGEST_WORD
        return near_the_end or error.msg.startswith("Unterminated")

    def _next_character(self) -> str:
        """What follows behind white space; nothing at the end."""
        while True:
            following = self._text[self._at : self._at + 1]
            if following and following not in _SPACES:
                return following
            space = _SPACE.match(self._text, self._at)
            self._at = self._at if space is None else space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._is_last:
                return ""
            self._move_window()

    def _move_window(self) -> None:
        self._open_window(self._start + len(self._text[: self._at].encode()))

    def _open_window(self, start: int) -> None:
        """The window from this byte, with as many values as are parsed at once, and a few more."""
        stop = len(self._body)
        if self._counts is not None:
            first = min(start // _BLOCK_BYTES, len(self._counts) - 1)
            beyond = self._counts[first] + self._values + 1
            last = int(np.searchsorted(self._counts, beyond))
            stop = min(stop, (last + 1) * _BLOCK_BYTES)
        self._is_last = stop == len(self._body)
        self._text, _ = codecs.utf_8_decode(self._body[start:stop], "strict", self._is_last)
        self._start, self._at = start, 0

    def _no_object(self) -> dict[str, Any]:
        if self._counts is None:
            json.loads(self._body)
        raise NoObject

    def _wrong(self, what: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self._text, self._at)


def has_more_values(body: bytes, most: int) -> bool:
    """Whether a JSON text has more values than these; found without parsing it."""
    return _values_at_most(body) > most and int(_values_of_blocks(body)[-1]) > most


def count_values(body: bytes) -> int:
    """How many values a JSON text has; found without parsing it. Never too few, and more than there
    are only where that is a small number all the same.
    """
    at_most = _values_at_most(body)
    return at_most if at_most <= SMALL_BYTES else int(_values_of_blocks(body)[-1])


def _values_at_most(body: bytes) -> int:
    """Of values in a text: what only looks like one, inside a string, counts too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _values_of_blocks(body: bytes) -> Any:
    """How many values there are up to the end of each block. numpy counts without Python's lock."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    counts: list[Any] = []
    is_inside = False  # of a string, at the beginning of a stretch
    for start in range(0, len(body), _COUNTED_AT_ONCE):
        characters = np.frombuffer(body[start : start + _COUNTED_AT_ONCE], np.uint8)
        quotes = np.cumsum(characters == ord('"'), dtype=np.uint8) & 1
        found = (characters == ord(",")) | (characters == ord("[")) | (characters == ord("{"))
        found &= quotes == is_inside
        blocks = np.arange(0, len(characters), _BLOCK_BYTES)
        counts.append(np.add.reduceat(found, blocks, dtype=np.int64))
        is_inside ^= bool(quotes[-1])
    return np.cumsum(np.concatenate(counts))
