"""Metrics of the mirror in Kafka, from what its worker says and from its silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.metrics import names
from duolog.bridge.metrics.names import Metric
from duolog.bridge.metrics.tally import Sample

if TYPE_CHECKING:
    from duolog.clock import Clock

MIRROR_WORKER: Final = "kafka"
PHASES: Final = ("mirroring", "recovering", "halted", "paused")
SILENT_AFTER_SECONDS: Final = 15.0  # it says something every five

Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MirrorState:
    """What is known of the mirror, over all runs of its worker."""

    heard_at: float  # on a clock that only goes forward; at first, since when it is waited for
    run: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    behind: Mapping[str, float] = field(default_factory=dict)  # by topic, the others as ""
    skipped: float = 0
    foreign_before: float = 0  # in earlier runs
    foreign: float = 0  # in this one
    pending: float = 0
    refused: float = 0
    is_watching: bool = False
    stands_since: float | None = None


def after(before: MirrorState, run: int, status: Status, now: float) -> MirrorState:
    """The state after the worker has said something. Pure."""
    state = replace(
        before, run=run, heard_at=now, stands_since=_stands_since(before, run, status, now)
    )
    if run != before.run:
        state = replace(state, foreign_before=before.foreign_before + before.foreign, foreign=0)
    if not isinstance(status.get("partitions"), Mapping):
        return state  # it ends, or a library printed this: the figures stay as they were
    told = status.get("groups")
    groups = told if isinstance(told, Mapping) else {}
    return replace(
        state,
        phases=_numbers(status["partitions"]),
        behind=_behind(status) if status.get("state") == "mirroring" else before.behind,
        # Skips are stored: a worker that starts finds out anew how many there were.
        skipped=max(state.skipped, _number(status.get("skipped"))),
        foreign=max(state.foreign, _number(status.get("foreign"))),
        pending=_number(groups.get("pending")),
        refused=_number(groups.get("refused_groups")),
        is_watching=groups.get("watching") is True,
    )


def _behind(status: Status) -> dict[str, float]:
    behind = _numbers(status.get("topics"))
    if status.get("all_topics") is False:
        behind[""] = _number(status.get("behind_elsewhere"))
    return behind


def _stands_since(before: MirrorState, run: int, status: Status, now: float) -> float | None:
    """Since when it has not got on, over the ends of workers; None while it does."""
    if status.get("state") != "mirroring":  # it cannot reach Kafka, or it ends
        return before.heard_at if before.stands_since is None else before.stands_since
    if _number(status.get("behind")) <= _number(status.get("behind_paused")):
        is_known = not _numbers(status.get("partitions")).get("recovering")
        return None if is_known else before.stands_since
    said = now - _number(status.get("stands_seconds"))
    if status.get("has_got_on") is True:
        return said
    earlier = before.stands_since
    if earlier is None:
        earlier = said if run == before.run else before.heard_at
    return min(earlier, said)


def samples_of(state: MirrorState, now: float) -> dict[Metric, list[Sample]]:
    """What Prometheus is told. Pure."""
    silent = now - state.heard_at
    stands = 0.0
    if state.stands_since is not None:
        stands = now - state.stands_since
    elif silent > SILENT_AFTER_SECONDS:
        stands = silent
    return {
        names.MIRROR_PARTITIONS: [((phase,), state.phases.get(phase, 0)) for phase in PHASES],
        names.MIRROR_BEHIND: [((topic,), behind) for topic, behind in state.behind.items()],
        names.MIRROR_STANDS: [((), round(max(0.0, stands), 3))],
        names.MIRROR_SKIPPED: [((), state.skipped)],
        names.MIRROR_FOREIGN: [((), state.foreign_before + state.foreign)],
        names.MIRROR_GROUPS: [(("pending",), state.pending), (("refused",), state.refused)],
        names.MIRROR_WATCHING: [((), float(state.is_watching))],
    }


class Mirrored:
    """The state, kept by the thread that hears the worker and read by any other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state = MirrorState(clock.monotonic())

    def hear(self, run: int, status: Status) -> None:
        self._state = after(self._state, run, status, self._clock.monotonic())

    def samples(self) -> dict[Metric, list[Sample]]:
        return samples_of(self._state, self._clock.monotonic())


def _number(told: object) -> float:
    return told if isinstance(told, int | float) and 0 <= told < float("inf") else 0


def _numbers(told: object) -> dict[str, float]:
    if not isinstance(told, Mapping):
        return {}
    return {str(name): _number(number) for name, number in told.items()}
