"""Compares a log with what was acknowledged. What is wrong is returned in words; nothing is raised.

What it promises about a log that has no violations: every acknowledged record is there once, at its
place and as it was; offsets have no gaps, and each single offset reads the same as a long read;
epochs are there whole and in order or not at all; nothing is there that nobody wrote; group
positions are those that were acknowledged.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from duolog.errors import DuologError
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import AtTimestamp
from tests.drills.content import (
    GROUP,
    PLACES,
    STREAM,
    epoch_rows,
    published_value,
    row_value,
)
from tests.drills.ledger import Ledger, ranges_of

MOST_SHOWN = 20


@dataclass
class _Found:
    """What lies in the log."""

    published: dict[tuple[str, int], list[tuple[str, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    epochs: dict[int, dict[tuple[str, int], list[tuple[int, int]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    wrong: list[str] = field(default_factory=list)


def violations(log: EmbeddedLog, ledger: Ledger) -> list[str]:
    """All that is wrong with the log. A read that is refused is raised to the caller."""
    found = _Found()
    for topic, partition in _places(log):
        _read(log, topic, partition, found)
    wrong = found.wrong + _wrong_publications(found, ledger) + _wrong_epochs(log, found, ledger)
    return (wrong + _wrong_positions(log, ledger))[:MOST_SHOWN]


def _places(log: EmbeddedLog) -> list[tuple[str, int]]:
    """The partitions that are there: a process may have died before it made all topics."""
    known = {topic.name for topic in log.topics()}
    return [place for place in PLACES if place[0] in known]


def _read(log: EmbeddedLog, topic: str, partition: int, found: _Found) -> None:
    """Read a partition, forwards as a whole and each batch's last record alone."""
    bounds = log.offsets(topic)[partition]
    at = bounds.start
    while at < bounds.next_offset:
        fetched = log.fetch(topic, partition, at)
        if not fetched.batches:
            found.wrong.append(f"{topic}/{partition} has nothing at offset {at}")
            return
        for batch in fetched.batches:
            if batch.base_offset != at:
                found.wrong.append(f"{topic}/{partition} goes on at {batch.base_offset}, not {at}")
            values = batch.records.column("value").to_pylist()
            for offset, value in enumerate(values, at):
                _note(found, topic, partition, offset, value)
            at += len(values)
            if len(values) > 1:
                (alone,) = log.fetch(topic, partition, at - 1, max_records=1)
                if alone.value != values[-1]:
                    found.wrong.append(f"{topic}/{partition} reads two ways at offset {at - 1}")
    if at != bounds.next_offset:
        found.wrong.append(f"{topic}/{partition} ends at {at}, not {bounds.next_offset}")
    if bounds.next_offset and log.resolve(topic, partition, AtTimestamp(0)) != bounds.start:
        found.wrong.append(f"{topic}/{partition}: the index of times does not begin at its start")


def _note(found: _Found, topic: str, partition: int, offset: int, value: bytes) -> None:
    where = f"{topic}/{partition} offset {offset}"
    match value.split(b"|", 1)[0].split(b"/"):
        case [b"p", writer, sequence]:
            name, number = writer.decode(), int(sequence)
            if value != published_value(name, number):
                found.wrong.append(f"{where} is not the record that {name} {number} wrote")
            found.published[name, number].append((topic, partition, offset))
        case [b"e", writer, epoch, in_topic, in_partition, index]:
            place = (in_topic.decode(), int(in_partition))
            if place != (topic, partition):
                found.wrong.append(f"{where} holds a row of {place}")
            if value != row_value(writer.decode(), int(epoch), *place, int(index)):
                found.wrong.append(f"{where} is not row {int(index)} of epoch {int(epoch)}")
            found.epochs[int(epoch)][topic, partition].append((offset, int(index)))
        case _:
            found.wrong.append(f"{where} holds what nobody wrote")


def _wrong_publications(found: _Found, ledger: Ledger) -> list[str]:
    wrong = []
    for (writer, sequence), places in found.published.items():
        if len(places) > 1:
            wrong.append(f"{writer} {sequence} is there {len(places)} times: {places}")
        if sequence > ledger.last_sequence.get(writer, -1) + 1:
            wrong.append(f"{writer} {sequence} is there, but was never sent")
    for (writer, sequence), place in ledger.published.items():
        if place not in found.published.get((writer, sequence), ()):
            wrong.append(f"{writer} {sequence} is lost: it was acknowledged at {place}")
    return wrong


def _wrong_epochs(log: EmbeddedLog, found: _Found, ledger: Ledger) -> list[str]:
    wrong = []
    for epoch, by_place in sorted(found.epochs.items()):
        if epoch > ledger.last_epoch + 1:
            wrong.append(f"epoch {epoch} is there, but was never sent")
        for place, rows in epoch_rows(epoch).items():
            there = by_place.get(place, [])
            if len(there) != len(rows):
                wrong.append(f"epoch {epoch} has {len(there)} of {len(rows)} rows in {place}")
            elif [index for _, index in there] != list(range(len(rows))):
                wrong.append(f"epoch {epoch} is out of order in {place}")
            elif there and there[-1][0] - there[0][0] != len(rows) - 1:
                wrong.append(f"epoch {epoch} is not in one piece in {place}")
    for epoch, ranges in ledger.epochs.items():
        there_now = tuple(
            sorted(
                (*place, rows[0][0], rows[-1][0] + 1)
                for place, rows in found.epochs.get(epoch, {}).items()
            )
        )
        if there_now != ranges:
            wrong.append(f"epoch {epoch} is lost or moved: {there_now}, acknowledged {ranges}")
    last = log.last_epoch(STREAM)
    highest = max(found.epochs, default=None)
    if (None if last is None else last.epoch) != highest:
        wrong.append(f"the stream's last epoch is said to be {last}, {highest} is there")
    elif last is not None and last.epoch in ledger.epochs:
        answer = ranges_of((r.topic, r.partition, r.start, r.next_offset) for r in last.ranges)
        if answer != ledger.epochs[last.epoch]:
            wrong.append(f"epoch {last.epoch} is said to be at {answer}")
    return wrong


def _wrong_positions(log: EmbeddedLog, ledger: Ledger) -> list[str]:
    wrong = []
    there = _places(log)
    for topic, partition in PLACES:
        known = (topic, partition) in there
        stored = log.group_position(GROUP, topic, partition) if known else None
        position = None if stored is None else stored.position
        acknowledged = ledger.positions.get((topic, partition))
        allowed = {acknowledged, ledger.asked_positions.get((topic, partition), acknowledged)}
        if position not in allowed:
            wrong.append(f"{GROUP} is at {position} in {topic}/{partition}, not {acknowledged}")
    return wrong


def outcome(log: EmbeddedLog, ledger: Ledger) -> list[str]:
    """Like `violations`, with a refused read as one of them."""
    try:
        return violations(log, ledger)
    except DuologError as error:
        return [f"a read was refused: {error.code}: {error}"]
