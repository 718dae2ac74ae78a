"""Where a consumer begins, as JSON says it.

"Latest"   "Earliest"   {"Offset": 7}   {"Timestamp": 1700000000000}
{"type": "Offset", "offset": 7}   {"type": "Timestamp", "timestamp": 1700000000000}
{"Offsets": {"0": 7, "1": 12}}    an answer's next_offsets, to read on without a group
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from duolog.errors import InvalidRequest, UnknownPartition
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Start, Topic

_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; those that are not named begin at their first record."""

    offsets: dict[int, int]


Begin = Start | AtOffsets

_WORDS: Final[dict[str, Begin]] = {"latest": Latest(), "earliest": Earliest()}
_WRONG: Final = (
    'start is "Latest", "Earliest", {"Offset": n}, {"Timestamp": ms since 1970} or '
    '{"Offsets": {"0": n, …}}'
)
_NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": _MOST}
SCHEMA: Final[dict[str, Any]] = {
    "title": "Start",
    "description": "Where to begin. For a group its first read says so; later ones go on where the "
    "group is.",
    "default": "Earliest",
    "anyOf": [
        {"type": "string", "enum": ["Latest", "Earliest"]},
        *(
            {
                "type": "object",
                "properties": {word: _NUMBER},
                "required": [word],
                "additionalProperties": False,
            }
            for word in ("Offset", "Timestamp")
        ),
        {
            "type": "object",
            "properties": {
                "Offsets": {
                    "type": "object",
                    "propertyNames": {"pattern": "^(0|[1-9][0-9]{0,4})$"},
                    "additionalProperties": _NUMBER,
                }
            },
            "required": ["Offsets"],
            "additionalProperties": False,
        },
        *(
            {
                "type": "object",
                "properties": {"type": {"type": "string", "enum": [word]}, **more},
                "required": ["type", *more],
                "additionalProperties": False,
            }
            for word, more in (
                ("Latest", {}),
                ("Earliest", {}),
                ("Offset", {"offset": _NUMBER}),
                ("Timestamp", {"timestamp": _NUMBER}),
            )
        ),
    ],
}


def begin_of(found: Any) -> Begin:
    """What it means. Raises ValueError, as pydantic has it."""
    if isinstance(found, str) and found.lower() in _WORDS:
        return _WORDS[found.lower()]
    if isinstance(found, dict) and isinstance(found.get("type"), str):
        word = found["type"].lower()
        names = found.keys() - {"type"}
        if word in _WORDS and not names:
            return _WORDS[word]
        if word == "offset" and names == {"offset"}:
            return AtOffset(_whole(found["offset"]))
        if word == "timestamp" and names == {"timestamp"}:
            return AtTimestamp(_whole(found["timestamp"]))
    elif isinstance(found, dict) and len(found) == 1:
        (name, number) = next(iter(found.items()))
        match str(name).lower():
            case "offset":
                return AtOffset(_whole(number))
            case "timestamp":
                return AtTimestamp(_whole(number))
            case "offsets" if isinstance(number, dict):
                return AtOffsets({_partition(name): _whole(each) for name, each in number.items()})
    raise ValueError(_WRONG)


def start_in(begin: Begin, topic: Topic, partition: int, *, is_only: bool) -> Start:
    """Where to begin in one partition. `is_only`: no other one is read."""
    match begin:
        case AtOffset() if not is_only:
            raise InvalidRequest(
                f"Topic '{topic.name}' has {topic.partitions} partitions, and each counts its own "
                'offsets: name one by partition_id, or start from {"Offsets": {"0": n, …}}.'
            )
        case AtOffsets(offsets):
            unknown = [each for each in offsets if each >= topic.partitions]
            if unknown:
                raise UnknownPartition(
                    f"Topic '{topic.name}' has {topic.partitions} partitions; start names "
                    f"{unknown[0]}."
                )
            return AtOffset(offsets[partition]) if partition in offsets else Earliest()
        case _:
            return begin


def _whole(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _MOST:
        raise ValueError(f"{_WRONG}, with whole numbers from 0")
    return number


def _partition(name: Any) -> int:
    if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) <= 5:
        return int(name)
    raise ValueError(f"{_WRONG}; a partition there is a number in quotes")
