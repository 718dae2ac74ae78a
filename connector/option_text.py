"""Values of options as text, and what they mean. Each mistake is an InvalidSetting."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from duolog.errors import InvalidSetting

_DELAY = re.compile(r"(\d+)\s*([a-z]*)")
_UNIT_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "": 1e-3,  # as Spark reads a number without a unit
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86_400,
}


def text(name: str, value: object) -> str:
    """An option as it came, without blanks around it; a list with commas between."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    words = str(value).strip() if isinstance(value, str | int) else ""
    if not words:
        shown = "of no use" if name == "token" else repr(value)
        raise InvalidSetting(f"Option '{name}' is {shown}. Give it a value, or leave it out.")
    return words


def flag(name: str, words: str) -> bool:
    if words.lower() not in {"true", "false"}:
        raise InvalidSetting(f"Option '{name}' must be true or false; got '{words}'.")
    return words.lower() == "true"


def whole(name: str, words: str, least: int, *, most_digits: int = 4000) -> int:
    is_number = words.isascii() and words.isdigit() and len(words) <= most_digits
    if not is_number or int(words) < least:
        raise InvalidSetting(f"Option '{name}' must be a whole number from {least}; got '{words}'.")
    return int(words)


def seconds(name: str, words: str) -> float:
    """A stretch of time as Spark writes it: 15m, 30s, 500ms."""
    found = _DELAY.fullmatch(words.lower())
    if found is None or found[2] not in _UNIT_SECONDS:
        raise InvalidSetting(
            f"Option '{name}' must be a number with a unit, as in 15m, 30s or 500ms; got '{words}'."
        )
    return int(found[1]) * _UNIT_SECONDS[found[2]]


def numbers_by_partition(name: str, words: str) -> Mapping[tuple[str, int], int]:
    """`{"orders": {"0": 23, "1": -1}}` as a number for each topic and partition."""
    given = _object(words)
    found: dict[tuple[str, int], int] = {}
    for topic, partitions in (given or {}).items():
        if not isinstance(partitions, dict):
            given = None
            break
        for partition, number in partitions.items():
            if not _is_partition(partition) or not _is_whole(number):
                given = None
                break
            found[topic, int(partition)] = number
    if given is None or not found:
        raise InvalidSetting(
            f'Option \'{name}\' must be like {{"orders": {{"0": 23, "1": -1}}}}; got \'{words}\'.'
        )
    return found


def partitions_by_topic(name: str, words: str) -> Mapping[str, tuple[int, ...]]:
    """`{"orders": [0, 1]}` as the partitions of each topic."""
    given = _object(words) or {}
    if not given or not all(
        isinstance(numbers, list) and numbers and all(_is_whole(n) and n >= 0 for n in numbers)
        for numbers in given.values()
    ):
        raise InvalidSetting(f"Option '{name}' must be like {{\"orders\": [0, 1]}}; got '{words}'.")
    return {topic: tuple(sorted(set(numbers))) for topic, numbers in given.items()}


def _object(words: str) -> dict[str, Any] | None:
    try:
        found = json.loads(words)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _is_partition(words: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", words) is not None


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
