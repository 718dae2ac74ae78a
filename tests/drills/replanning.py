"""A stream whose checkpoint is lost plans its last epoch anew; says what the log made of it."""

from __future__ import annotations

import random
from typing import Any

from duolog.errors import EpochContentMismatch
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Appended, TopicSettings, Writer
from duolog.log.model import Mode as WriterMode
from duolog.log.part import Part, PartBuilder
from tests.drills.worker import say
from tests.support.records import record_batch

_STREAM = Writer(WriterMode.STREAM, "drill", "orders")
_PARTITIONS = 3
_EPOCHS = 4

Row = tuple[int, bytes | None, bytes | None]  # partition, key, value


def replan(folder: str, *, seed: str) -> None:
    """The role."""
    chance = random.Random(seed)
    rows = [_row(chance) for _ in range(chance.randrange(50, 400))]
    with open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=_PARTITIONS))
        for epoch in range(_EPOCHS):
            first = log.append(_STREAM, epoch, _parts(log, rows, chance))
        before = _content(log)
        wrong = _repeated_wrongly(log, first, rows, chance)
        wrong += _replanned_wrongly(log, first.epoch, rows, chance)
    with open_log(folder) as log:
        wrong += _repeated_wrongly(log, first, rows, chance)
        if _content(log) != before:
            wrong.append("the log is not as it was")
    say(["violations", wrong])


def _row(chance: random.Random) -> Row:
    key = None if chance.random() < 0.2 else chance.randbytes(chance.randrange(9))
    value = None if chance.random() < 0.1 else chance.randbytes(chance.randrange(200))
    return chance.randrange(_PARTITIONS), key, value


def _parts(log: EmbeddedLog, rows: list[Row], chance: random.Random) -> list[Part]:
    """The rows in any order and split, with other times."""
    shuffled = chance.sample(rows, len(rows))
    builders = [
        PartBuilder(target_bytes=chance.choice((100, 5000, 1 << 20)))
        for _ in range(chance.randrange(1, 5))
    ]
    for row in shuffled:
        partition, key, value = row
        records = record_batch([value], keys=[key], ts_ms=chance.randrange(1 << 40))
        chance.choice(builders).add(log.topic("orders"), partition, records)
    return [builder.finish() for builder in builders]


def _repeated_wrongly(
    log: EmbeddedLog, first: Appended, rows: list[Row], chance: random.Random
) -> list[str]:
    """The same rows must get the first answer."""
    try:
        again = log.append(_STREAM, first.epoch, _parts(log, rows, chance))
    except EpochContentMismatch as refused:
        return [f"the same rows were refused: {refused}"]
    if not again.repeated or again.ranges != first.ranges:
        return [f"the same rows got {again}, first {first}"]
    return []


def _replanned_wrongly(
    log: EmbeddedLog, epoch: int, rows: list[Row], chance: random.Random
) -> list[str]:
    """Other rows must be refused."""
    wrong = []
    for what, other in _others(rows, chance).items():
        try:
            answer = log.append(_STREAM, epoch, _parts(log, other, chance))
        except EpochContentMismatch:
            continue
        wrong.append(f"{what} was taken: {answer}")
    return wrong


def _others(rows: list[Row], chance: random.Random) -> dict[str, list[Row]]:
    at = chance.randrange(len(rows))
    partition, key, value = rows[at]
    rest = rows[:at] + rows[at + 1 :]
    content = value or b"x"
    flipped = content[:-1] + bytes([content[-1] ^ 1]) if content else b"x"
    return {
        "a row less": rest,
        "a row more": [*rows, _row(chance)],
        "a row twice": [*rows, rows[at]],
        "another value": [*rest, (partition, key, flipped)],
        "another key": [*rest, (partition, (key or b"") + b"x", value)],
        "no row": [],
    }


def _content(log: EmbeddedLog) -> Any:
    return [
        [(record.key, record.value) for record in log.fetch("orders", partition, 0)]
        for partition in range(_PARTITIONS)
    ]
