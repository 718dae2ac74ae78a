"""Feeds run as Spark would run them: rows spread over tasks and batches, then merged by order."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from duolog.connector.feeds import Feed, FeedCounts, Ordered
from duolog.log.model import Op
from duolog.log.routing.changes import Changes
from duolog.log.staging import StagingPlace

Row = dict[str, Any]
Tasks = Sequence[Sequence[pa.RecordBatch]]


@dataclass(frozen=True)
class Event:
    """One change as a consumer sees it. `old` is None where it is not known or there is none."""

    op: str
    new: Row | None
    old: Row | None
    ts_ms: int


@dataclass(frozen=True)
class Run:
    """What came of all tasks: events in the order of their offsets."""

    events: list[Event]
    counts: FeedCounts
    left_over: int


def run(feed: Feed, tasks: Tasks, place: StagingPlace | None = None) -> Run:
    """Read each task by itself, settle what is left, and merge by order as the log does."""
    parts: list[list[Ordered]] = []
    messages: list[bytes] = []
    counts = FeedCounts()
    for batches in tasks:
        reader = pickle.loads(pickle.dumps(feed)).reader(place)
        part: list[Ordered] = []
        for batch in batches:
            part.extend(reader.changes_of(batch))
        part.extend(reader.finish())
        message = reader.left_over()
        if message is not None:
            messages.append(message)
        counts += reader.counts
        parts.append(part)
    settled = feed.settle(messages, place)
    parts.append(list(settled))
    counts += settled.counts
    places = [
        (order, number, at, changes)
        for number, part in enumerate(parts)
        for at, (order, changes) in enumerate(part)
    ]
    places.sort(key=lambda place: place[:3])
    events = [event for *_, changes in places for event in events_of(changes, feed)]
    return Run(events, counts, len(parts[-1]))


def events_of(changes: Changes, feed: Feed) -> Iterable[Event]:
    assert changes.schema == feed.rows
    known = changes.known()
    after = changes.after.to_pylist()
    before = [None] * len(changes) if changes.before is None else changes.before.to_pylist()
    for row, op in enumerate(changes.op.to_pylist()):
        yield Event(
            Op(op).name.lower(),
            None if op == Op.DELETE else after[row],
            before[row] if known[row] else None,
            changes.ts[row].as_py(),
        )


def batches_of(rows: Sequence[Row], schema: pa.Schema, size: int) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pylist(list(rows[at : at + size]), schema=schema)
        for at in range(0, len(rows), size)
    ]
