"""What is true of a log: topics, records, positions and writers, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

NO_OP = 0


class Kept(NamedTuple):
    """One record."""

    value: str
    key: str | None
    ts: int
    op: int


class Latest(NamedTuple):
    """The latest change of a key in a topic that leaves out repeats."""

    ts: int
    op: int
    value: str
    offset: int


@dataclass
class Partition:
    start: int = 0
    records: list[Kept] = field(default_factory=list)
    latest: dict[str, Latest] = field(default_factory=dict)
    last_ts: int = 0  # the highest so far: retention by age takes records in their order

    @property
    def next_offset(self) -> int:
        return self.start + len(self.records)


@dataclass
class Topic:
    id: int
    name: str
    alias: str | None
    partitions: list[Partition]
    seconds: float | None = None
    max_bytes: int | None = None
    window_seconds: float | None = None
    routes: list[tuple[str, int]] = field(default_factory=list)  # table and operation


class Epoch(NamedTuple):
    """A writer's last epoch."""

    number: int
    content: dict[int, list[tuple[str | None, str]]]  # keys and values by topic id, sorted
    ranges: list[tuple[str, int, int, int]]
    at_ms: int


class Sent(NamedTuple):
    """A record that was published with a sequence."""

    topic_id: int
    partition: int
    offset: int
    key: str | None
    value: str
    op: int


@dataclass
class World:
    now_ms: int
    topics: dict[str, Topic] = field(default_factory=dict)  # by name
    next_topic_id: int = 1
    positions: dict[tuple[str, int, int], tuple[int, int]] = field(default_factory=dict)
    epochs: dict[tuple[str, str], Epoch] = field(default_factory=dict)  # by mode and name
    sent: dict[str, dict[int, Sent]] = field(default_factory=dict)  # by publisher
    sent_at_ms: dict[str, int] = field(default_factory=dict)  # the last new record, by publisher
    looked_at_ms: list[int] = field(default_factory=list)  # when idle writers were looked for

    def topic(self, reference: str) -> Topic | None:
        """By name, and then by alias."""
        known = self.topics.get(reference)
        return known or next((t for t in self.topics.values() if t.alias == reference), None)

    def taken(self, name: str) -> bool:
        return self.topic(name) is not None
