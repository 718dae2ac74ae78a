"""What drills write: each record says who wrote it and where it belongs, and can be made anew.

So a checker needs no copy of what was written: it reads a value, makes it again and compares. A
value is a tag and bytes that follow from the tag; `p/writer/sequence` for a published record and
`e/writer/epoch/topic/partition/index` for a row of an epoch.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import lru_cache

from duolog.log.access import LogAccess
from duolog.log.model import Mode, Record, TopicSettings, Writer
from duolog.log.part import Part, PartBuilder
from tests.support.records import record_batch

TOPICS = {"single": 1, "spread": 4}
PLACES = [(topic, partition) for topic, count in TOPICS.items() for partition in range(count)]
STREAM = Writer(Mode.STREAM, "drill", "all")
GROUP = "readers"
SHIFTER = "shifter"
"""A publisher that writes to every partition in turn."""

_KINDS_OF_EPOCHS = 6
_BATCH_BYTES = 16 << 10

Rows = dict[tuple[str, int], list[bytes]]


def make_topics(log: LogAccess) -> None:
    for topic, partitions in TOPICS.items():
        log.create_topic(topic, TopicSettings(partitions=partitions), if_not_exists=True)


def _filled(tag: bytes, size: int) -> bytes:
    return tag + b"|" + hashlib.shake_128(tag).digest(size)


def _chosen(tag: bytes, count: int) -> int:
    return zlib.crc32(tag, 7) % count


@lru_cache(maxsize=20_000)
def published_value(writer: str, sequence: int) -> bytes:
    tag = b"p/%s/%d" % (writer.encode(), sequence)
    size = 6000 if _chosen(tag + b"large", 40) == 0 else 10 + _chosen(tag, 250)
    return _filled(tag, size)


def publication(writer: str, sequence: int) -> tuple[str, Record]:
    """A publisher's record, and the topic that it goes to."""
    value = published_value(writer, sequence)
    if writer == SHIFTER:
        topic, partition = PLACES[sequence % len(PLACES)]
        return topic, Record(value, partition=partition)
    topic = ("single", "spread")[_chosen(value[:20], 2)]
    return topic, Record(value, key=b"k%d" % _chosen(value[:20], 23))


@lru_cache(maxsize=50)
def epoch_rows(epoch: int, writer: str = STREAM.name) -> Rows:
    """An epoch's rows by topic and partition, in order."""
    large = epoch % _KINDS_OF_EPOCHS == 5
    tiny = epoch % _KINDS_OF_EPOCHS == 4
    rows: Rows = {}
    for topic, partition in PLACES:
        place = b"e/%s/%d/%s/%d" % (writer.encode(), epoch, topic.encode(), partition)
        if tiny:  # a row in one topic and one in the other: each byte of them is tried
            count = int(partition == 0)
        else:
            count = 150 + _chosen(place, 100) if large else _chosen(place, 60)
        rows[topic, partition] = [
            _filled(b"%s/%d" % (place, index), 2 if tiny else 2000 if large else 40 + index % 200)
            for index in range(count)
        ]
    return rows


def row_value(writer: str, epoch: int, topic: str, partition: int, index: int) -> bytes | None:
    """A row of an epoch; None when the epoch has no such row."""
    rows = epoch_rows(epoch, writer).get((topic, partition), [])
    return rows[index] if index < len(rows) else None


def parts_of_epoch(log: LogAccess, epoch: int, *, pieces: int = 2) -> list[Part]:
    """The epoch as tasks would stage it: in several parts, of every third epoch as files."""
    place = log.staging(STREAM, epoch) if epoch % 3 == 0 else None
    builders = [PartBuilder(place, target_bytes=_BATCH_BYTES) for _ in range(pieces)]
    for (topic, partition), values in epoch_rows(epoch).items():
        each = -(-len(values) // pieces)
        for number, builder in enumerate(builders):
            some = values[number * each : (number + 1) * each]
            if some:
                builder.add(log.topic(topic), partition, record_batch(some, ts_ms=1000 + epoch))
    return [builder.finish() for builder in builders]
