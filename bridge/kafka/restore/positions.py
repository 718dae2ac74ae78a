"""Groups go on where Kafka says that they are."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.positions.marks import Author
from duolog.bridge.kafka.positions.sides import kafka_partition
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen
from duolog.log.offset_map import OffsetMap


@dataclass(frozen=True, slots=True)
class RestoredGroups:
    """How many groups have positions again, and how many of those lie beyond what is in Kafka."""

    groups: int
    positions: int
    beyond: int


def restore_positions(
    log: LogAccess, settings: KafkaSettings, takes: GroupFilter, ends: dict[tuple[str, int], int]
) -> RestoredGroups:
    """Every group's position in every partition, by what it has committed.

    `ends` says for each partition of the log how far Kafka reaches. A commit beyond that is left
    to the bridge, which waits for what it stands for.
    """
    groups, positions, beyond = set(), 0, 0
    mirrors = {kafka_partition(mirror): mirror for mirror in log.mirrors()}
    with closing(GroupCoordinator(settings, log.log_id)) as coordinator:
        for group in filter(takes.takes, coordinator.groups()):
            for place, commit in coordinator.committed(group, mirrors).items():
                if commit is None:
                    continue
                mirror = mirrors[place]
                where = (mirror.topic, mirror.partition)
                offsets = OffsetMap.of_mirror(mirror, known_kafka_end=ends[where])
                position = offsets.to_log(commit.offset)
                if position is None:
                    beyond += 1
                    continue
                seen = KafkaSeen(
                    foreign=commit.offset,
                    floor=commit.offset,
                    one_way=commit.author is Author.ONE_WAY,
                )
                log.remember_kafka(group, *where, seen, expected_version=0, position=position)
                groups.add(group)
                positions += 1
    return RestoredGroups(len(groups), positions, beyond)
