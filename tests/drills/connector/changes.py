"""The change rows that drills of the connector stream, and what each key's events must be.

All of it follows from the number of a batch, so a checker needs no copy of what was written. A
batch is one file of a change feed as Delta's tables have it: a few versions, both images of each
update, and now and then a delete and an insert of one key in one version, as an overwrite makes.
The rows of a batch lie in any order, so that those of one key come to different tasks.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

SCHEMA = (
    "id BIGINT, note STRING, n BIGINT, _change_type STRING, _commit_version BIGINT,"
    " _commit_timestamp TIMESTAMP"
)
_KEYS = 40
VERSIONS = 4  # in a batch
_LONGEST_NOTE = 120

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """What a record about one key says."""

    op: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class Batch:
    """The lines of a file, and the events that they are by key, in order."""

    lines: tuple[str, ...]
    events: dict[int, tuple[Event, ...]]
    table: dict[int, Row]  # as it stands afterwards


def batch(number: int) -> Batch:
    """A batch. Those before it are made first, since its old images follow from them."""
    for earlier in range(number):
        _batch(earlier)
    return _batch(number)


@lru_cache(maxsize=10_000)
def _batch(number: int) -> Batch:
    chance = random.Random(f"batch {number}")
    table = dict(_batch(number - 1).table) if number else {}
    events: dict[int, list[Event]] = {}
    lines: list[str] = []
    touched = chance.choice((0.2, 0.5, 0.9))
    for version in range(number * VERSIONS, (number + 1) * VERSIONS):
        for key in range(_KEYS):
            if chance.random() > touched:
                continue
            for event in _changed(key, table.get(key), version, chance):
                events.setdefault(key, []).append(event)
                lines += _lines(event, version)
                if event.after is None:
                    del table[key]
                else:
                    table[key] = event.after
    chance.shuffle(lines)
    return Batch(tuple(lines), {key: tuple(told) for key, told in events.items()}, table)


def _changed(key: int, row: Row | None, version: int, chance: random.Random) -> list[Event]:
    note = "x" * chance.randrange(_LONGEST_NOTE)
    new = {"id": key, "note": note, "n": version}
    if row is None:
        return [Event("c", None, new)]
    lot = chance.random()
    if lot < 0.15:
        return [Event("d", row, None)]
    if lot < 0.3:
        return [Event("d", row, None), Event("c", None, new)]
    return [Event("u", row, new)]


def _lines(event: Event, version: int) -> list[str]:
    words = {
        "c": [("insert", event.after)],
        "d": [("delete", event.before)],
        "u": [("update_preimage", event.before), ("update_postimage", event.after)],
    }
    own = {"_commit_version": version, "_commit_timestamp": "2026-01-01T00:00:00Z"}
    return [
        json.dumps({**(row or {}), "_change_type": word, **own}) for word, row in words[event.op]
    ]


def story(key: int, batches: int) -> list[Event]:
    """All events of a key in the first so many batches."""
    return [event for number in range(batches) for event in batch(number).events.get(key, ())]


def keys(batches: int) -> set[int]:
    """The keys that have events in the first so many batches."""
    return {key for number in range(batches) for key in batch(number).events}


def replanned(number: int) -> tuple[str, ...]:
    """The batch's lines with one value changed, as if its file had been changed."""
    lines = list(batch(number).lines)
    row = json.loads(lines[0])
    lines[0] = json.dumps({**row, "note": row["note"] + "!"})
    return tuple(lines)
