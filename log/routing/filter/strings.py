"""Texts: patterns, pieces and places. Positions count characters from 1, as in SQL."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps
from duolog.log.routing.filter.kinds import INTEGER, TEXT
from duolog.log.routing.filter.steps import Array, Refusal, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_END = 2**31 - 1  # beyond the end of any text
_QUICK = frozenset(("", "x", "x%", "%x", "%x%"))  # patterns that are no regular expression
_MAX_PATTERN = 1000  # characters
_MAX_WILDCARDS = 32  # so many has a UUID that is written with `_`


def like(pattern: str, escape: str | None, *, ignore_case: bool) -> Callable[[Values], Values]:
    """A test for LIKE: `%` stands for any text, `_` for one character.

    The character after the escape, a backslash if none is given, stands for itself.
    """
    parts = list(_like_parts(pattern, escape or "\\"))
    text = "".join(letter for _, letter in parts)
    if not ignore_case:
        match _outline(parts):
            case "" | "x":
                return lambda values: pc.equal(values, pa.scalar(text, TEXT))
            case "x%":
                return lambda values: pc.starts_with(values, pattern=text)
            case "%x":
                return lambda values: pc.ends_with(values, pattern=text)
            case "%x%":
                return lambda values: pc.match_substring(values, pattern=text)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(kind) or re.escape(letter) for kind, letter in parts)
    flags = "is" if ignore_case else "s"
    return lambda values: pc.match_substring_regex(values, pattern=rf"(?{flags})\A{regex}\z")


def check_like(pattern: str, escape: str | None, *, ignore_case: bool) -> None:
    """Refuse a pattern that takes seconds for a text of some hundred kilobytes."""
    parts = list(_like_parts(pattern, escape or "\\"))
    if not ignore_case and _outline(parts) in _QUICK:
        return
    if len(pattern) > _MAX_PATTERN:
        raise Refusal(
            f"A pattern for ILIKE, or with wildcards in between, has at most {_MAX_PATTERN} "
            f"characters; this one has {len(pattern)} characters."
        )
    wildcards = sum(kind != "x" for kind, _ in parts)
    if wildcards > _MAX_WILDCARDS:
        raise Refusal(
            f"A pattern has at most {_MAX_WILDCARDS} of % and _ together; this one has "
            f"{wildcards} of these."
        )


def _outline(parts: list[tuple[str, str]]) -> str:
    """A pattern with each text in it as one `x`."""
    return re.sub(r"x+", "x", re.sub(r"%+", "%", "".join(kind for kind, _ in parts)))


def _like_parts(pattern: str, escape: str) -> Iterator[tuple[str, str]]:
    """Each part of a pattern: `%`, `_`, or `x` with the character that it stands for."""
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            yield "x", next(letters, escape)
        else:
            yield (letter, "") if letter in "%_" else ("x", letter)


def join(left: Values, right: Values) -> Array:
    """left || right: NULL if either is."""
    return pc.binary_join_element_wise(left, right, "", null_handling="emit_null")


def concat(*parts: Values) -> Array:
    """The parts behind one another, NULL as nothing."""
    return pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")


def joined_bytes(*parts: Array) -> int:
    """How many bytes the parts have together."""
    return sum(_bytes_of(part) for part in parts)


def _bytes_of(values: Array) -> int:
    return int(pc.sum(pc.binary_length(values), min_count=0).as_py())


def length(values: Array) -> Array:
    return pc.cast(pc.utf8_length(values), INTEGER)


def upper(values: Array) -> Array:
    return _with_long_letters(values, pc.utf8_upper(values), str.upper)


def lower(values: Array) -> Array:
    return _with_long_letters(values, pc.utf8_lower(values), str.lower)


def substring(values: Array, start: int, count: int | None = None) -> Array:
    """From the start-th character; what lies before the first one counts, and is empty."""
    if count is not None and count < 0:
        raise Refusal("A negative length has no meaning.")
    stop = _END if count is None else max(start - 1 + count, 0)
    return pc.utf8_slice_codeunits(values, min(max(start - 1, 0), _END), min(stop, _END))


def left(values: Array, count: int) -> Array:
    """The first characters; a negative count: all but the last ones."""
    return pc.utf8_slice_codeunits(values, 0, _bounded(count))


def right(values: Array, count: int) -> Array:
    """The last characters; a negative count: all but the first ones."""
    if count == 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    return pc.utf8_slice_codeunits(values, _bounded(-count), _END)


def place(values: Array, part: str) -> Array:
    """Where the part begins for the first time; 0 if nowhere."""
    if not part:
        return pc.if_else(values.is_valid(), pa.scalar(1, INTEGER), pa.scalar(None, INTEGER))
    before = pc.list_element(pc.split_pattern(values, pattern=part, max_splits=1), 0)
    found = pc.match_substring(values, pattern=part)
    return pc.if_else(found, pc.add(length(before), 1), pa.scalar(0, INTEGER))


def replace(values: Array, part: str, by: str) -> Array:
    return pc.replace_substring(values, pattern=part, replacement=by) if part else values


def replaced_bytes(values: Array, part: str, by: str) -> int:
    """How many bytes `replace` makes."""
    more = len(by.encode()) - len(part.encode())
    if not part or more <= 0:
        return _bytes_of(values)
    found = int(pc.sum(pc.count_substring(values, pattern=part), min_count=0).as_py())
    return _bytes_of(values) + found * more


def _bounded(count: int) -> int:
    return max(-_END, min(count, _END))


def _with_long_letters(values: Array, changed: Array, change: Callable[[str], str]) -> Array:
    """Arrow maps character by character; `ß` and a few more become several, or look around."""
    if pc.all(pc.string_is_ascii(values)).as_py() is not False:
        return changed
    special = pc.fill_null(pc.match_substring_regex(values, pattern=_long_letters()), False)
    if not steps.count(special):
        return changed
    words = pa.array([change(text) for text in values.filter(special).to_pylist()], TEXT)
    return pc.replace_with_mask(changed, special, words)


@cache
def _long_letters() -> str:
    """A character class of all whose capital or small form is not one character, and sigma."""
    letters = (chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000)
    long = [each for each in letters if len(each.upper()) > 1 or len(each.lower()) > 1]
    return f"[{''.join(long)}Σ]"
