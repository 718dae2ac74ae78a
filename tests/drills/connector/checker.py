"""Reads a topic and holds it to the change rows that were streamed.

What it promises of a topic without violations: it has the events of whole batches from the first
one on, at least of as many as Spark takes for committed; each is there once, complete, and in its
key's order; a key lies in one partition, without gaps.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.options import LogOptions
from tests.drills.connector.changes import VERSIONS, Event, keys, story
from tests.drills.connector.streams import Stream

_MOST_SHOWN = 5

Told = dict[int, list[Event]]


def staged_files(log: Path) -> list[str]:
    """What lies in the staging folders; ask before the log is opened, which sweeps them."""
    return sorted(
        str(path.relative_to(log)) for path in (log / "staging").rglob("*") if path.is_file()
    )


def violations(stream: Stream, batches: int | None = None) -> list[str]:
    """All that is wrong with a stream's topic.

    With `batches`, it must have exactly so many; else at least those that its checkpoint says are
    committed.
    """
    patient = LogOptions(lock_wait_seconds=60.0)  # a commit of Spark's may still be under way
    with open_log(stream.log, options=patient, create=False) as log:
        told = _told(log, stream.topic)
        last = log.last_epoch(stream.writer)
    there = _batches_of(told)
    wrong = []
    if batches is not None and there != batches:
        wrong.append(f"{stream.name} has {there} batches, not {batches}")
    if there < (least := _committed(stream.checkpoint)):
        wrong.append(f"{stream.name} has {there} batches, Spark was told of {least}")
    if there < (epochs := 0 if last is None else last.epoch + 1):
        wrong.append(f"{stream.name} has {there} batches in {epochs} epochs")
    return [*wrong, *differences(stream.name, told, there)][:_MOST_SHOWN]


def differences(name: str, told: Told, batches: int) -> list[str]:
    """In which keys the events are not those of the first so many batches."""
    wrong = []
    for key in sorted(keys(batches) | set(told)):
        expected, events = story(key, batches), told.get(key, [])
        if events != expected:
            wrong.append(f"{name}, key {key}: {_difference(expected, events)}")
    return wrong[:_MOST_SHOWN]


def batches_in(stream: Stream) -> int:
    """How many batches the topic has, if they are whole."""
    with open_log(stream.log, create=False) as log:
        return _batches_of(_told(log, stream.topic))


def _batches_of(told: Told) -> int:
    """By the last version: an epoch may have two files, where a driver died as it planned one."""
    rows = [event.after for events in told.values() for event in events if event.after is not None]
    return 1 + max((int(row["n"]) for row in rows), default=-1) // VERSIONS


def _committed(checkpoint: Path) -> int:
    """How many files a checkpoint has committed."""
    numbers = [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")]
    if not numbers:
        return 0
    plan = checkpoint / "offsets" / str(max(numbers))
    return 1 + int(json.loads(plan.read_text().splitlines()[-1])["logOffset"])


def _told(log: EmbeddedLog, topic: str) -> Told:
    return told_by(_records(log, topic))


def _records(log: EmbeddedLog, topic: str) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for bounds in log.offsets(topic):
        at = 0
        while at < bounds.next_offset:
            fetched = log.fetch(topic, bounds.partition, at)
            for record in fetched:
                assert record.offset == at, f"{topic}/{bounds.partition} has a gap at {at}"
                at += 1
                yield bounds.partition, record.key, record.value


def told_by(records: Iterable[tuple[int, bytes | None, bytes | None]]) -> Told:
    """The events of each key in their order, by partition, key and value of each record."""
    told: Told = defaultdict(list)
    home: dict[int, int] = {}
    for partition, key_text, value in records:
        key = json.loads(key_text or b"")["id"]
        assert home.setdefault(key, partition) == partition, key
        event = json.loads(value or b"")
        told[key].append(Event(event["op"], event["before"], event["after"]))
    return told


def _difference(expected: list[Event], told: list[Event]) -> str:
    same = 0
    while same < min(len(expected), len(told)) and expected[same] == told[same]:
        same += 1
    return (
        f"{len(told)} events, not {len(expected)}; after {same} that are right comes "
        f"{told[same : same + 1]}, not {expected[same : same + 1]}"
    )
