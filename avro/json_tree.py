"""JSON from outside, without surprises: bounded, and each object's names are unique."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Final, NoReturn

from duolog.avro.schema import MAX_DEPTH
from duolog.errors import InvalidSchema

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_TEXT_CHARACTERS: Final = 1 << 20
_MAX_DEPTH: Final = 4 * MAX_DEPTH  # a level of a record takes three, and defaults need some
_LONGEST_INTEGER: Final = 310  # digits; a double ends before


def read_json(text: str) -> Json:
    """The JSON value of a text from outside.

    Refused are, by InvalidSchema: what is too long or too deep, a name twice in one object,
    numbers that are none or that no double can hold, and halves of surrogate pairs.
    """
    if not isinstance(text, str):
        raise InvalidSchema(f"A schema is text; got {type(text).__name__}.")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidSchema(
            f"The schema's text has {len(text)} characters; at most {MAX_TEXT_CHARACTERS} are read."
        )
    try:
        tree: Json = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_not_json,
            parse_float=_float,
            parse_int=_int,
        )
    except json.JSONDecodeError as failure:
        raise InvalidSchema(
            f"The schema is not JSON: {failure.msg} at line {failure.lineno}, "
            f"column {failure.colno}."
        ) from None
    except RecursionError:
        raise _too_deep() from None
    _check_json(tree)
    return tree


def json_text(value: Json) -> str:
    """A JSON value as compact text, members in the order that they have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object(pairs: list[tuple[str, Json]]) -> Json:
    members = dict(pairs)
    if len(members) < len(pairs):
        count = Counter(name for name, _ in pairs)
        raise InvalidSchema(
            f"The schema's JSON has {shown(count.most_common(1)[0][0])} twice in one object."
        )
    return members


def _not_json(word: str) -> NoReturn:
    raise InvalidSchema(f"The schema's JSON has {word}, which is no JSON number.")


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise InvalidSchema(f"The schema's JSON has {shown(digits)}, which no double can hold.")
    return value


def _int(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER or math.isinf(float(digits)):
        raise InvalidSchema(f"The schema's JSON has {shown(digits)}, which no double can hold.")
    return int(digits)


def _too_deep() -> InvalidSchema:
    return InvalidSchema(f"The schema's JSON is nested more than {_MAX_DEPTH} deep.")


def _check_json(tree: Json) -> None:
    waiting: list[tuple[Json, int]] = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise _too_deep()
        if isinstance(node, str):
            _check_characters(node)
        elif isinstance(node, list):
            waiting.extend((item, depth + 1) for item in node)
        elif isinstance(node, dict):
            for name, item in node.items():
                _check_characters(name)
                waiting.append((item, depth + 1))


def _check_characters(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema(
            f"The schema's JSON has {shown(text)}, which is not valid Unicode."
        ) from None


def shown(value: Json) -> str:
    """For messages."""
    text = ascii(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
