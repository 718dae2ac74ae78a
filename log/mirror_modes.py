"""What is wanted of a mirror, and what its worker says of itself, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class MirrorMode(StrEnum):
    """What somebody wants of a topic's mirror. Stored in the log, so it outlives all processes."""

    ON = "on"
    PAUSED = "paused"  # nothing is sent until it is resumed, which goes on exactly there
    DETACHED = "detached"  # it has ended, and does not begin again by itself


@dataclass(frozen=True, slots=True)
class MirrorModes:
    """The modes of all topics: the usual one, also of topics to come, and others by name."""

    usual: MirrorMode = MirrorMode.ON
    others: dict[str, MirrorMode] = field(default_factory=dict)

    def of(self, topic: str) -> MirrorMode:
        return self.others.get(topic, self.usual)


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """What a worker says of one partition. The log remembers it for a moment, and stores nothing.

    `phase` is one of the worker's own words; `code` and `trouble` say why it is not mirrored.
    """

    topic: str
    partition: int
    phase: str
    code: str | None = None
    trouble: str | None = None


UNKNOWN_PHASE = "unknown"
"""Of a partition of which no worker has said anything lately."""


def shown_phase(mode: MirrorMode, report: MirrorReport | None) -> str:
    """The phase to show: what is wanted holds, whatever a worker has not noticed yet. Pure."""
    if mode is not MirrorMode.ON:
        return mode.value
    return UNKNOWN_PHASE if report is None else report.phase


def by_partition(reports: tuple[MirrorReport, ...]) -> Mapping[tuple[str, int], MirrorReport]:
    """The reports by where they belong."""
    return {(report.topic, report.partition): report for report in reports}
