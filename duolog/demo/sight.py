"""How far everybody is, looked at from outside."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from duolog.demo.ledger import LedgerReader
from duolog.demo.places import PARTITIONS, Places
from duolog.log.access import LogAccess


@dataclass(frozen=True, slots=True)
class MemberSeen:
    """A consumer: how many records it has done, and of which partitions it was the last."""

    name: str
    done: int
    partitions: tuple[int, ...]
    is_killed: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """One look. Counts are of records; `in_kafka` is where Kafka has the group."""

    seconds: float
    versions: int
    changed: int
    written: int
    mirrored: int
    native_position: int
    kafka_position: int
    members: tuple[MemberSeen, ...]

    @property
    def lag(self) -> int:
        return self.written - self.native_position

    @property
    def is_settled(self) -> bool:
        """All that is written is mirrored and done, and both sides know it."""
        ends = {self.mirrored, self.native_position, self.kafka_position}
        return self.written > 0 and ends == {self.written}


@dataclass(slots=True)
class _Member:
    reader: LedgerReader
    done: int = 0
    is_killed: bool = False
    offsets: dict[int, list[int]] = field(default_factory=dict)


class Looker:
    """Asks the log, Kafka, and what the members have written down."""

    def __init__(self, places: Places, log: LogAccess, bootstrap_servers: str) -> None:
        from confluent_kafka import Consumer

        from duolog.bridge.kafka.access import Overheard

        self._places = places
        self._log = log
        self._members: dict[str, _Member] = {}
        self._last_done_by: dict[int, str] = {}
        # Asks for the group's offsets and never joins it.
        options = {"bootstrap.servers": bootstrap_servers, "group.id": places.group}
        self._kafka = Consumer({**options, **Overheard().options})  # it would write into the table
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._kafka.close()

    def watch(self, member: str) -> None:
        """A consumer that begins, perhaps again after it was killed."""
        known = self._members.get(member)
        if known is None:
            self._members[member] = _Member(LedgerReader(self._places.ledger(member)))
        else:
            known.is_killed = False

    def was_killed(self, member: str) -> None:
        self._members[member].is_killed = True

    def look(self) -> Sight:
        for name, member in self._members.items():
            for partition, offset in member.reader.more():
                member.done += 1
                member.offsets.setdefault(partition, []).append(offset)
                self._last_done_by[partition] = name
        versions, changed = self._shop()
        topic, group = self._places.topic, self._places.group
        return Sight(
            time.monotonic() - self._began,
            versions,
            changed,
            sum(each.next_offset for each in self._log.offsets(topic)),
            sum(each.next_log_offset for each in self._log.mirrors(topic)),
            sum(each.position for each in self._log.group_positions(group, topic)),
            self._kafka_position(),
            tuple(self._seen(name, member) for name, member in self._members.items()),
        )

    def done(self) -> Mapping[str, Mapping[int, list[int]]]:
        """Offsets by member and partition, in the order in which they were done."""
        return {name: member.offsets for name, member in self._members.items()}

    def _seen(self, name: str, member: _Member) -> MemberSeen:
        partitions = tuple(p for p in range(PARTITIONS) if self._last_done_by.get(p) == name)
        return MemberSeen(name, member.done, partitions, member.is_killed)

    def _shop(self) -> tuple[int, int]:
        try:
            lines = self._places.progress.read_text().splitlines()
        except FileNotFoundError:
            return 0, 0
        told = [json.loads(line) for line in lines if line.endswith("}")]
        return len(told), sum(each["changed"] for each in told)

    def _kafka_position(self) -> int:
        from confluent_kafka import KafkaException, TopicPartition

        places = [TopicPartition(self._places.topic, partition) for partition in range(PARTITIONS)]
        try:
            found: Iterable[TopicPartition] = self._kafka.committed(places, timeout=2)
        except KafkaException:  # a coordinator that has only just begun
            return 0
        return sum(max(0, each.offset) for each in found)
