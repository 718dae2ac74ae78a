"""Requests that were right and no longer are: changed at random, from a seed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

_BEARER = re.compile(rb"(?<=Bearer )[A-Za-z0-9._-]+")
_LENGTH = re.compile(rb"(?<=\r\n)content-length: *[0-9]+", re.IGNORECASE)
_NUMBER = re.compile(rb"[0-9]+")
_FAULTS = (
    b"\x00", b"\r\n", b"\n", b" ", b"%0a", b"%00", b"%2e%2e/", b"../", b"'", b'"', b"\\",
    b"\\u0000", b"\\ud800", b"\xff\xfe", b"\xc3\xa9", b"{", b"}", b"[", b"]", b"null", b"NaN",
    b"-1", b"1e400", b"true", b":", b",", b"/", b"?", b"#", b"%", b";", b"*/", b"/*", b"--",
    b"chunked",
)  # fmt: skip
_NUMBERS = (
    b"0", b"-1", b"1", b"255", b"65535", b"65536", b"2147483648", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"1e9", b"0.5", b"9" * 400,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 0.5, -0.0, "", "x", "orders", "\u0000",
    "é", "\U0001f600", "x" * 300, "../..", [], [[]], {}, {"": None}, [None], ["x"] * 20,
    {"x": {"x": 1}},
)  # fmt: skip
_LONGEST = 1 << 20


def mutated(chance: random.Random, requests: Sequence[bytes], tokens: Sequence[str]) -> bytes:
    """One of the requests with some faults, brought with one of the tokens."""
    head, _, body = chance.choice(requests).partition(b"\r\n\r\n")
    head = _BEARER.sub(chance.choice(tokens).encode(), head)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 5))):
        if body and chance.random() < 0.7:
            body = _broken_json(chance, body) if chance.random() < 0.7 else _broken(chance, body)
        else:
            head = _broken(chance, head)
    if chance.random() < 0.85:
        head = _LENGTH.sub(b"Content-Length: %d" % len(body), head)
    return (head + b"\r\n\r\n" + body)[:_LONGEST]


def _broken(chance: random.Random, sent: bytes) -> bytes:
    at = chance.randrange(len(sent) + 1)
    to = min(len(sent), at + chance.choice((0, 1, 2, 8, 40)))
    match chance.randrange(7):
        case 0:
            return sent[:at] + chance.randbytes(to - at) + sent[to:]
        case 1:
            return sent[:at] + sent[to:]
        case 2:
            return sent[:at] + sent[at:to] * chance.choice((2, 3, 50)) + sent[to:]
        case 3:
            return _with_another_number(chance, sent)
        case 4:
            return sent[:at]
        case 5:
            lines = sent.split(b"\r\n")
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
            return b"\r\n".join(lines)
        case _:
            return sent[:at] + chance.choice(_FAULTS) + sent[to:]


def _with_another_number(chance: random.Random, sent: bytes) -> bytes:
    found = list(_NUMBER.finditer(sent))
    if not found:
        return sent
    number = chance.choice(found)
    return sent[: number.start()] + chance.choice(_NUMBERS) + sent[number.end() :]


def _broken_json(chance: random.Random, body: bytes) -> bytes:
    """JSON with another value, name or length somewhere; other bodies are broken as bytes."""
    try:
        content = json.loads(body)
    except ValueError:
        return _broken(chance, body)
    places = list(_places(content))
    if not places:
        return json.dumps(chance.choice(_VALUES)).encode()
    holder, key = chance.choice(places)
    match chance.randrange(4):
        case 0 if isinstance(holder, dict):
            holder[chance.choice(("", "x", "topic", "sql", "é" * 30))] = holder.pop(key)
        case 1:
            del holder[key]
        case 2 if isinstance(holder[key], str):
            text = holder[key].encode("utf-8", "replace")
            holder[key] = _broken(chance, text).decode("utf-8", "replace")
        case _:
            holder[key] = chance.choice(_VALUES)
    return json.dumps(content, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")


def _places(content: Any) -> list[tuple[Any, Any]]:
    """Every place in nested lists and objects that holds a value."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(content, dict | list):
        keys = list(content) if isinstance(content, dict) else range(len(content))
        for key in keys:
            pairs += [(content, key), *_places(content[key])]
    return pairs
