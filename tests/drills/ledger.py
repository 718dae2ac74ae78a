"""What a writing process was told, and so may rely on. A line of JSON for each thing.

    ["published", writer, sequence, topic, partition, offset]
    ["appended", epoch, [[topic, partition, start, next_offset], …]]
    ["acking", topic, partition, position]     about to acknowledge
    ["acked", topic, partition, position]

A publisher sends its next record, and the stream its next epoch, only when the one before has been
acknowledged: so there is at most one of each that may be there without having been acknowledged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Range = tuple[str, int, int, int]
KINDS = frozenset({"published", "appended", "acking", "acked"})


@dataclass
class Ledger:
    """All that was acknowledged up to a moment."""

    published: dict[tuple[str, int], tuple[str, int, int]] = field(default_factory=dict)
    last_sequence: dict[str, int] = field(default_factory=dict)
    epochs: dict[int, tuple[Range, ...]] = field(default_factory=dict)
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    asked_positions: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def last_epoch(self) -> int:
        """-1 when there is none."""
        return max(self.epochs, default=-1)

    def note(self, entry: Any) -> bool:
        """Take one line; False when it is about something else."""
        match entry:
            case ["published", writer, sequence, topic, partition, offset]:
                self.published[writer, sequence] = (topic, partition, offset)
                self.last_sequence[writer] = max(sequence, self.last_sequence.get(writer, -1))
            case ["appended", epoch, ranges]:
                self.epochs[epoch] = ranges_of(ranges)
            case ["acking", topic, partition, position]:
                self.asked_positions[topic, partition] = position
            case ["acked", topic, partition, position]:
                self.positions[topic, partition] = position
            case _:
                return False
        return True


def ranges_of(listed: Iterable[Iterable[Any]]) -> tuple[Range, ...]:
    """Ranges in one order, whatever the order in which they were told."""
    return tuple(sorted((t, p, start, next_offset) for t, p, start, next_offset in listed))


def ledger_of(entries: Iterable[Any]) -> Ledger:
    ledger = Ledger()
    for entry in entries:
        ledger.note(entry)
    return ledger


def read_ledger(path: Path | str) -> Ledger:
    return ledger_of(json.loads(line) for line in Path(path).read_bytes().splitlines())


def write_ledger(path: Path, entries: Iterable[Any]) -> None:
    with path.open("ab") as file:
        for entry in entries:
            file.write(json.dumps(entry).encode() + b"\n")
