"""Nothing that is shown may be obeyed by a terminal, and JSON means what it meant."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from duolog.printable import one_line, printable, printable_json

ALL = "".join(map(chr, range(sys.maxunicode + 1)))
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u061c\u200e\u200f"
CASES = [
    ("plain, ünïcode, 漢字, 🙂, \u200d\u200c", "plain, ünïcode, 漢字, 🙂, \u200d\u200c"),
    ("\x1b[2J", r"\x1b[2J"),
    ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
    ("over\rwritten\b\b", r"over\rwritten\x08\x08"),
    ("\x7f\x80\x9b2J\x9f", r"\x7f\x80\x9b2J\x9f"),
    ("\u202egpj.exe\u2066", r"\u202egpj.exe\u2066"),
    ("\u2028\u2029", r"\u2028\u2029"),
    ("\ud800", r"\ud800"),
    ("\U000e0041", r"\U000e0041"),
]


def is_obeyed(letter: str) -> bool:
    """By Unicode's own tables, which the product does not ask."""
    return (
        unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(letter) in DIRECTIONS
        or letter in MARKS
    )


@pytest.mark.parametrize(("text", "shown"), CASES)
def test_what_a_terminal_would_obey_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert printable(text) == one_line(text) == shown


def test_every_character_of_unicode_that_is_obeyed_is_escaped() -> None:
    for letter in filter(is_obeyed, ALL):
        assert one_line(letter) == ascii(letter)[1:-1]
        assert letter in "\n\t" or printable(letter) == one_line(letter)


def test_what_has_a_picture_is_left_as_it_is() -> None:
    letters = "".join(filter(str.isprintable, ALL))
    assert printable(letters) == one_line(letters) == letters


def test_line_ends_and_tabs_stay_in_a_text_and_go_from_a_name() -> None:
    assert printable("a\tb\nc") == "a\tb\nc"
    assert one_line("a\tb\nc") == r"a\tb\nc"


def test_json_keeps_every_value_exactly() -> None:
    value = [*ALL, {"\u202e\x9b": 1.5}]  # one by one: two halves would become a pair
    for exact in (True, False):
        text = json.dumps(value, ensure_ascii=exact, indent="\t")
        shown = printable_json(text)
        assert json.loads(shown) == value
        assert not any(is_obeyed(each) for each in shown if each not in "\n\t")
