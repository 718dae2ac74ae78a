"""A record that failed too often, as it goes to another topic. Pure.

Key, value and headers are the record's own; what became of it stands in headers with the names of
Kafka Connect's dead letters:

| header `__connect.errors.…` | holds                                              |
|-----------------------------|----------------------------------------------------|
| topic, partition, offset    | where the record lies                              |
| connector.name              | the group that gave it up                          |
| attempts                    | how often it was tried                             |
| exception.class.name        | the error's name, when one was given               |
| exception.message           | its message                                        |
| value.bytes                 | how long the value was, where it had to be cut     |
| timestamp                   | the record's time, where it is too far ahead       |
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Final

from duolog.client.messages import NewRecord
from duolog.client.records import ConsumedRecord
from duolog.log.record_check import MAX_HEADERS

HEADER: Final = "__connect.errors."
_MESSAGE_CHARACTERS: Final = 1000
_MOST_OWN_HEADERS: Final = MAX_HEADERS - 10  # of the record: those above have to go in too


def dead_letter(record: ConsumedRecord, group: str | None, reason: object) -> NewRecord:
    """The record to publish. `reason` is an exception, or a text."""
    told: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "connector.name": group,
        "attempts": record.attempt,
    }
    if isinstance(reason, BaseException):
        told["exception.class.name"] = type(reason).__name__
    if reason is not None:
        told["exception.message"] = str(reason)[:_MESSAGE_CHARACTERS]
    added = _headers(told)
    return NewRecord(
        record.payload,
        record.key,
        (*record.headers[:_MOST_OWN_HEADERS], *added),
        op=record.op,
        table=record.table,
        payload_mode=record.payload_mode,
        ts_ms=record.ts_ms,
    )


def cut_letter(letter: NewRecord) -> NewRecord:
    """The same with half of its value, for one that has become too large by its new headers."""
    value = letter.value or b""
    return NewRecord(
        value[: len(value) // 2],
        letter.key,
        (*letter.headers, *_headers({"value.bytes": len(value)})),
        op=letter.op,
        table=letter.table,
        payload_mode=letter.payload_mode,
        ts_ms=letter.ts_ms,
    )


def letter_of_now(letter: NewRecord) -> NewRecord:
    """The same with the time at which it is written, for a record of an old log that no log would
    take any more.
    """
    headers = (*letter.headers, *_headers({"timestamp": letter.ts_ms}))
    return dataclasses.replace(letter, headers=headers, ts_ms=None)


def letter_writer(record: ConsumedRecord, group: str) -> str:
    """Who publishes the dead letters of a partition; a letter's sequence is its record's offset.

    So a record that is given up again after a crash is no second letter.
    """
    whose = f"{group}\n{record.topic}\n{record.partition}"  # may be longer than a writer's name
    if record.topic_id is not None:
        whose += f"\n{record.topic_id}"
    return f"dead-letters-{hashlib.blake2b(whose.encode(), digest_size=16).hexdigest()}"


def _headers(told: dict[str, object]) -> tuple[tuple[str, bytes], ...]:
    return tuple(
        (HEADER + name, str(what).encode(errors="replace"))
        for name, what in told.items()
        if what is not None
    )
