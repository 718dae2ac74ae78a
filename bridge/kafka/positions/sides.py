"""What the log holds of a group in the partitions that are mirrored, and their maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.mirror_model import Mirror
from duolog.log.model import GroupPosition
from duolog.log.offset_map import OffsetMap

Mirrors = Callable[[], Iterable[Mirror]]


@dataclass(frozen=True, slots=True)
class Side:
    """One partition of a group as it was read; `seen` is further where a write has concluded."""

    mirror: Mirror
    position: GroupPosition | None
    seen: KafkaSeen

    @property
    def native(self) -> int | None:
        return None if self.position is None else self.position.position

    @property
    def is_first(self) -> bool:
        """Whether native consumers have only begun there."""
        return self.position is not None and self.position.is_first

    @property
    def version(self) -> int:
        return 0 if self.position is None else self.position.version

    @property
    def stored(self) -> KafkaSeen:
        """What the log remembers of Kafka."""
        return _stored(self.position)


class BothSides:
    """Reads groups of one log; `mirrors` says which of its partitions are in Kafka."""

    def __init__(self, log: LogAccess, coordinator: GroupCoordinator, mirrors: Mirrors) -> None:
        self._log = log
        self._coordinator = coordinator
        self._mirrors = mirrors

    def of(self, group: str) -> dict[KafkaPartition, Side]:
        """A group in every mirrored partition, also where it has no position."""
        native = {(each.topic, each.partition): each for each in self._log.group_positions(group)}
        sides = {}
        for mirror in self._mirrors():
            position = native.get((mirror.topic, mirror.partition))
            sides[kafka_partition(mirror)] = Side(mirror, position, _stored(position))
        return sides

    def places(self) -> frozenset[KafkaPartition]:
        """All mirrored partitions."""
        return frozenset(kafka_partition(mirror) for mirror in self._mirrors())

    def writes_on_their_way(self) -> Iterator[tuple[str, KafkaPartition, KafkaWrite]]:
        """What was being written to Kafka when the log was looked at last."""
        mirrors = {(mirror.topic, mirror.partition): mirror for mirror in self._mirrors()}
        for position in self._log.group_positions():
            mirror = mirrors.get((position.topic, position.partition))
            write = _stored(position).writing
            if mirror is not None and write is not None:
                yield position.group, kafka_partition(mirror), write

    def known_further(self, mirror: Mirror) -> OffsetMap:
        """The map when Kafka's end is known not to hide anything of ours.

        Records that were in Kafka when the commit was read are in the log as well; if the mirror
        has told of all the log has, what else lies in Kafka is foreign.
        """
        written = self._log.offsets(mirror.topic)[mirror.partition].next_offset
        now = self._log.mirror(mirror.topic, mirror.partition)
        if now is None or now.target != mirror.target or now.next_log_offset < written:
            return OffsetMap.of_mirror(mirror)
        place = kafka_partition(mirror)
        return OffsetMap.of_mirror(now, known_kafka_end=self._coordinator.ends([place])[place])


def kafka_partition(mirror: Mirror) -> KafkaPartition:
    """Where a mirrored partition lies in Kafka."""
    return KafkaPartition(mirror.target.kafka_topic, mirror.partition)


def _stored(position: GroupPosition | None) -> KafkaSeen:
    return KafkaSeen() if position is None or position.kafka is None else position.kafka
