"""A log made anew from Kafka: records, where they lie there, and the positions of groups.

What Kafka never had is not in it: routes and settings of topics, schemas of a registry that lived
in the log, operations and tables of records, the last epochs of writers, positions that were
acknowledged natively and not yet written to Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.audit.stretches import Edges
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.restore.numbering import Numbering, Offsets
from duolog.bridge.kafka.restore.plain_reader import PlainReader
from duolog.bridge.kafka.restore.positions import RestoredGroups, restore_positions
from duolog.bridge.kafka.restore.records import refill_partition
from duolog.bridge.kafka.restore.sources import Cluster, Source, find_sources
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.mirror_model import MirrorChange, MirrorTarget
from duolog.log.model import TopicSettings
from duolog.log.restoring import restoring

Advance = Callable[[int], object]


class Watcher(Protocol):
    """Who wants to see how far it is."""

    def begins(self, records: int) -> Advance:
        """So many are to be read at most; what is answered is told of each piece."""


@dataclass(frozen=True, slots=True)
class RestoredPartition:
    """What was read of one partition."""

    topic: str
    partition: int
    kafka_topic: str
    start: int  # of the log
    next_offset: int
    renumbered: int  # how many offsets of Kafka have no record in the log

    @property
    def records(self) -> int:
        return self.next_offset - self.start


@dataclass(frozen=True, slots=True)
class RestoredLog:
    """A log that is there again."""

    log_id: str
    partitions: tuple[RestoredPartition, ...]
    groups: RestoredGroups

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)


def restore_from_kafka(
    folder: Path,
    settings: KafkaSettings,
    *,
    topics: Sequence[str] = (),
    offsets: Offsets = Offsets.KAFKA,
    groups: GroupFilter | None = None,
    options: LogOptions | None = None,
    watcher: Watcher | None = None,
) -> RestoredLog:
    """Make the log in a folder that is empty, or not there; all of it or nothing.

    Afterwards it is mirrored on into the same topics, behind what they have. `topics` are names in
    Kafka, or `KAFKA=NAME`.
    """
    options = options or LogOptions()
    with restoring(folder, options) as place:
        cluster = find_sources(settings, topics)
        with open_log(place.work, options=options) as log:
            log.keep_mirror_producer(cluster.producer)
            partitions, ends = _restore_records(log, settings, cluster, offsets, watcher)
            restored = restore_positions(log, settings, groups or GroupFilter.of(), ends)
        identity = place.finish()
    return RestoredLog(identity.log_id, partitions, restored)


def _restore_records(
    log: EmbeddedLog,
    settings: KafkaSettings,
    cluster: Cluster,
    offsets: Offsets,
    watcher: Watcher | None,
) -> tuple[tuple[RestoredPartition, ...], dict[tuple[str, int], int]]:
    """All partitions, one after the other; and how far each reached in Kafka."""
    found = []
    names = [source.kafka_topic for source in cluster.sources]
    with (
        PlainReader(settings, names) as plain,
        KafkaReader(settings.for_confluent(), purpose="restore", committed=True) as reader,
    ):
        edges = {
            (source.kafka_topic, number): reader.edges(source.kafka_topic, number)
            for source in cluster.sources
            for number in range(source.partitions)
        }
        total = sum(each.next_offset - each.start for each in edges.values())
        advance = watcher.begins(total) if watcher else _silent
        for source in cluster.sources:
            is_renamed = source.name != source.kafka_topic
            kept_name = source.kafka_topic if is_renamed else None
            log.create_topic(
                source.name, TopicSettings(partitions=source.partitions, kafka_topic=kept_name)
            )
            for number in range(source.partitions):
                seen = edges[source.kafka_topic, number]
                numbering = Numbering(source.kafka_topic, number, seen.start, offsets)
                refill = log.refill(source.name, number, seen.start)
                place = (source.kafka_topic, number)
                refill_partition(plain, reader, place, seen, numbering, refill, advance)
                refill.sync()
                _remember_mirror(log, cluster, source, number, seen, numbering)
                found.append(
                    RestoredPartition(
                        source.name,
                        number,
                        source.kafka_topic,
                        seen.start,
                        numbering.next_log,
                        seen.next_offset - numbering.next_log,
                    )
                )
    ends = {
        (source.name, number): edges[source.kafka_topic, number].next_offset
        for source in cluster.sources
        for number in range(source.partitions)
    }
    return tuple(found), ends


def _remember_mirror(
    log: EmbeddedLog,
    cluster: Cluster,
    source: Source,
    partition: int,
    edges: Edges,
    numbering: Numbering,
) -> None:
    """Where the records lie, and that others wrote them: the mirror goes on behind them."""
    target = MirrorTarget(
        cluster.cluster_id,
        source.kafka_topic,
        source.kafka_topic_id,
        cluster.producer.producer_id,
        cluster.producer.producer_epoch,
        edges.start,
        edges.start,
        edges.next_offset,
    )
    begun = log.begin_mirror(source.name, partition, target)
    if numbering.runs:
        change = MirrorChange(begun.version, 0, 0, numbering.runs)
        log.change_mirror(source.name, partition, change)


def _silent(_records: int) -> None:
    """Nobody watches."""
