"""The mirror of each partition as it is shown: as the log has it, and as its worker says it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from duolog.log.mirror_model import Mirror
from duolog.log.mirror_modes import (
    MirrorMode,
    MirrorModes,
    MirrorReport,
    by_partition,
    shown_phase,
)
from duolog.log.model import PartitionOffsets, Topic, by_topic


class MirrorsSeen(Protocol):
    """The part of LogAccess that is asked here; reports and modes may be those of some topics."""

    def topic(self, reference: str | int) -> Topic: ...
    def topics(self) -> tuple[Topic, ...]: ...
    def offsets(self, reference: str | int) -> tuple[PartitionOffsets, ...]: ...
    def all_offsets(self) -> tuple[PartitionOffsets, ...]: ...
    def mirrors(self, reference: str | int | None = None) -> tuple[Mirror, ...]: ...
    def mirror_modes(self) -> MirrorModes: ...
    def mirror_reports(self, reference: str | int | None = None) -> tuple[MirrorReport, ...]: ...


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """One partition. Without a `mirror` none was begun, or it was detached."""

    topic: str
    partition: int
    mirror: Mirror | None
    mode: MirrorMode
    report: MirrorReport | None
    start: int
    next_offset: int  # of the log

    @property
    def phase(self) -> str:
        return shown_phase(self.mode, self.report)

    @property
    def code(self) -> str | None:
        return None if self.report is None else self.report.code

    @property
    def trouble(self) -> str | None:
        return None if self.report is None else self.report.trouble

    @property
    def kafka_topic(self) -> str | None:
        return None if self.mirror is None else self.mirror.target.kafka_topic

    @property
    def mirrored_offset(self) -> int:
        return self.start if self.mirror is None else self.mirror.next_log_offset

    @property
    def behind(self) -> int:
        """How many records Kafka has still to get; of a detached one none."""
        if self.mode is MirrorMode.DETACHED:
            return 0
        return max(0, self.next_offset - self.mirrored_offset)


def mirrored_partitions(
    log: MirrorsSeen, reference: str | int | None = None
) -> Iterator[MirroredPartition]:
    """All partitions that have a mirror, or of which there is something to say, in order."""
    modes, mirrors = log.mirror_modes(), log.mirrors(reference)
    reports = by_partition(log.mirror_reports(reference))
    known = {(mirror.topic, mirror.partition): mirror for mirror in mirrors}
    told = {topic for topic, _ in (*known, *reports)}
    heads = by_topic(log.all_offsets() if reference is None else log.offsets(reference))
    topics = log.topics() if reference is None else (log.topic(reference),)
    for topic in sorted(topics, key=lambda topic: topic.name):
        mode = modes.of(topic.name)
        if topic.name not in told and mode is MirrorMode.ON:
            continue
        for head in heads.get(topic.name, ()):
            place = topic.name, head.partition
            if place in known or place in reports or mode is not MirrorMode.ON:
                yield MirroredPartition(
                    *place,
                    known.get(place),
                    mode,
                    reports.get(place),
                    head.start,
                    head.next_offset,
                )
