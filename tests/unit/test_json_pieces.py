"""A large JSON object read in pieces is what json.loads makes of it, whatever it holds."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.server import json_pieces
from duolog.server.json_pieces import (
    NoObject,
    NotUnicode,
    NotUtf8,
    TooManyValues,
    has_more_values,
    has_surrogates,
    read_object,
)

TEXTS = st.text(st.sampled_from('ab,[{"\\:é🌍\n \u2028'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6),
    max_leaves=40,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=8)
STYLES = st.sampled_from([(None, True), (None, False), (2, True), (7, False)])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short texts take many windows."""
    monkeypatch.setattr(json_pieces, "_BLOCK_BYTES", 5)


def as_it_is(_: str, __: int, item: Any) -> Any:
    return item


def read(body: bytes, values: int = 3) -> Any:
    return read_object(body, as_it_is, values_in_a_piece=values)


def written(value: Any, style: tuple[int | None, bool]) -> bytes:
    indent, is_ascii = style
    return json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()


@settings(max_examples=300, deadline=None)
@given(OBJECTS, STYLES, st.integers(1, 60))
def test_pieces_make_the_same_object(
    value: dict[str, Any], style: tuple[int | None, bool], values: int
) -> None:
    body = written(value, style)
    try:
        found = read(body, values)
    except TooManyValues:
        assert any(has_more_values(written(each, style), values) for each in pieces_of(value))
    else:
        assert found == json.loads(body)


@pytest.mark.parametrize("number", [-12.5e-7, 1e300, 123456789012345678901234567890, -0.25])
def test_a_number_may_lie_across_windows(number: float) -> None:
    for before in range(40):
        value = {"a": "x" * before, "b": [number, 1, number], "c": number, "d": 1}
        assert read(json.dumps(value).encode(), 2) == value


def pieces_of(value: dict[str, Any]) -> list[Any]:
    """What is parsed at once."""
    found: list[Any] = []
    for each in value.values():
        found += each if isinstance(each, list) else [each]
    return found


@settings(max_examples=300, deadline=None)
@given(OBJECTS, STYLES, st.integers(0, 2**32))
def test_what_json_refuses_is_refused_in_pieces(
    value: dict[str, Any], style: tuple[int | None, bool], seed: int
) -> None:
    chance, noisy = random.Random(seed), bytearray(written(value, style))
    at = chance.randrange(len(noisy))
    noisy[at : at + chance.randint(0, 2)] = chance.choice([b"", b"]", b'"', b",", b"}", b"1", b":"])
    body = bytes(noisy)
    try:
        wanted = json.loads(body)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - which one, depends on the mistake
            read(body)
        return
    if isinstance(wanted, dict):
        try:
            assert read(body) == wanted
        except TooManyValues:
            assert has_more_values(body, 3)
        except NotUnicode:
            assert has_surrogates(body)


def test_a_mistake_in_a_long_piece_is_told_as_a_mistake() -> None:
    body = json.dumps({"a": [[1, "x", *[2] * 100]]}).encode()
    with pytest.raises(json.JSONDecodeError, match="Expecting ',' delimiter"):
        read(body.replace(b'"x"', b"1 1"), 30)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", json.JSONDecodeError),
        (b"{", json.JSONDecodeError),
        (b'{"a"', json.JSONDecodeError),
        (b'{"a" 1}', json.JSONDecodeError),
        (b'{"a":1,}', json.JSONDecodeError),
        (b'{"a":[1,]}', json.JSONDecodeError),
        (b'{"a":[1 2]}', json.JSONDecodeError),
        (b'{"a":1} x', json.JSONDecodeError),
        (b'{"a":[1', json.JSONDecodeError),
        (b'{"a":"' + b"x" * 100, json.JSONDecodeError),
        (b'{"a":' + b"9" * 5000 + b"}", ValueError),
        (b'{"a":' + b"[" * 100_000, (TooManyValues, RecursionError)),
        (b"[1]", NoObject),
        (b"[" + b"1," * 100 + b"1]", NoObject),
        (b'{"a":"\\ud800"}', NotUnicode),
        (b'{"\\ud800":1}', NotUnicode),
        (b'{"a":["\\udc00"]}', NotUnicode),
        (b'{"a":"\xff"}', NotUtf8),
        (b'{"a":"\0"}', NotUtf8),
    ],
)
def test_what_is_no_object_of_json_has_its_error(body: bytes, error: Any) -> None:
    with pytest.raises(error):
        read(body)


def test_a_piece_with_more_values_than_allowed_is_named() -> None:
    body = json.dumps({"a": 1, "messages": [[1], [2] * 100, [3]]}).encode()
    with pytest.raises(TooManyValues) as refused:
        read(body, 50)
    assert refused.value.place == "messages.1"
    assert read(body, 101) == json.loads(body)


def test_only_values_count_and_no_text_that_looks_like_some() -> None:
    text = json.dumps({"a": ['"[[{{,,\\'] * 10}).encode()
    assert not has_more_values(text, 12)
    assert has_more_values(text, 10)
    assert read_object(text, as_it_is, values_in_all=12) == json.loads(text)
    with pytest.raises(TooManyValues) as refused:
        read_object(text, as_it_is, values_in_a_piece=9, values_in_all=10)
    assert refused.value.place == ""


def test_items_of_lists_are_taken_in_their_order_and_replaced() -> None:
    taken: list[tuple[str, int, Any]] = []

    def take(name: str, number: int, item: Any) -> Any:
        taken.append((name, number, item))
        return len(taken)

    body = b'{"a": [5, {"b": [1]}], "c": {"d": [1]}, "e": []}'
    assert read_object(body, take) == {"a": [1, 2], "c": {"d": [1]}, "e": []}
    assert taken == [("a", 0, 5), ("a", 1, {"b": [1]})]
