"""Records that Kafka does not take: where they go instead, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from duolog.bridge.kafka.mirror.pieces import Fuse, Limits, Refused
from duolog.bridge.kafka.mirror.reading import Stretch
from duolog.errors import (
    DamagedBatch,
    InvalidTimestamp,
    MirrorMeetsDamage,
    RecordsRefused,
    RecordTooLarge,
)
from duolog.log.access import LogAccess
from duolog.log.mirror_model import SkipReason
from duolog.log.model import Record, Topic, TopicSettings
from duolog.log.record_check import MAX_HEADERS

SUFFIX: Final = ".kafka-refused"
"""Of the topic of the log that takes them. It is not mirrored itself."""

_HEADER: Final = "__connect.errors."  # as Kafka Connect names what it adds
_ADDED: Final = 5  # headers


def refused_topic(topic: Topic) -> str:
    """The name of the topic that takes what Kafka refuses of this one."""
    return topic.name[: 249 - len(SUFFIX)] + SUFFIX


def set_aside(
    log: LogAccess, topic: Topic, partition: int, refused: Stretch, reason: SkipReason, said: str
) -> None:
    """Write them to the topic for refused records, each once, however often this is done."""
    name = refused_topic(topic)
    log.create_topic(name, TopicSettings(), if_not_exists=True)
    for offset, row in enumerate(refused.records.to_pylist(), refused.first):
        if refused.has_offset_header:  # the mirror's, not the record's own
            row["headers"] = row["headers"][:-1]
        record = _record(row, topic, partition, offset, reason, said)
        writer = f"{SUFFIX}:{topic.id}:{partition}"
        try:
            _publish(log, name, record, writer, offset)
        except InvalidTimestamp:  # of a log from before such times were refused
            ahead = (f"{_HEADER}timestamp", str(record.ts_ms).encode())
            record = replace(record, ts_ms=None, headers=(ahead, *record.headers))
            _publish(log, name, record, writer, offset)


def _publish(log: LogAccess, name: str, record: Record, writer: str, offset: int) -> None:
    try:
        log.publish(name, record, writer=writer, sequence=offset)
    except RecordTooLarge:  # with the headers: the value stays where it is in the log
        slim = Record(None, record.key, record.headers[-_ADDED:], ts_ms=record.ts_ms)
        log.publish(name, slim, writer=writer, sequence=offset)


def _record(
    row: dict[str, Any], topic: Topic, partition: int, offset: int, reason: SkipReason, said: str
) -> Record:
    headers = (row["headers"] or ())[: MAX_HEADERS - _ADDED - 1]
    own = tuple((header["name"], header["value"]) for header in headers)
    added = {
        "topic": topic.name,
        "partition": str(partition),
        "offset": str(offset),
        "exception.class.name": reason.value,
        "exception.message": said,
    }
    told = ((f"{_HEADER}{name}", value.encode()) for name, value in added.items())
    return Record(row["value"], row["key"], (*own, *told), ts_ms=row["ts"], table=row["table"])


def why_refused(kafka_topic: str, refused: Refused, limits: Limits) -> str:
    """One refusal in words."""
    if refused.reason is SkipReason.TOO_LARGE:
        return (
            f"{refused.largest_bytes} bytes are more than Kafka topic '{kafka_topic}' takes "
            f"(max.message.bytes={limits.max_batch_bytes})"
        )
    return (
        f"the time {refused.ts_ms} ms is too far from now for Kafka topic '{kafka_topic}' "
        "(message.timestamp.before.max.ms, message.timestamp.after.max.ms)"
    )


def halted_at(topic: Topic, partition: int, offset: int, said: str) -> RecordsRefused:
    """The mirror is not to skip anything."""
    return RecordsRefused(
        f"Topic '{topic.name}' partition {partition}: Kafka does not take the record at offset "
        f"{offset}: {said}. Change the Kafka topic's settings, and the mirror goes on by itself."
    )


def burnt_out(topic: Topic, partition: int, offset: int, said: str, fuse: Fuse) -> RecordsRefused:
    """Too many: that is no single bad record."""
    return RecordsRefused(
        f"Topic '{topic.name}' partition {partition}: Kafka refuses more than {fuse.records} of "
        f"{fuse.of_last} records, the last one at offset {offset}: {said}. Change the Kafka "
        "topic's settings, and the mirror goes on by itself."
    )


def damaged(met: DamagedBatch) -> MirrorMeetsDamage:
    """The log cannot decode what comes next."""
    return MirrorMeetsDamage(
        f"Topic '{met.topic}' partition {met.partition}: the log has a damaged batch at offsets "
        f"{met.first_offset}-{met.next_offset - 1}, and copies nothing behind it: {met.reason} "
        "Restore the log from a backup, or give its records up with `duolog topic skip "
        f"{met.topic} --partition {met.partition} --to {met.next_offset}`; the mirror goes on by "
        "itself then."
    )
