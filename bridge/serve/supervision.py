"""When a worker process is started, stopped and started again. Pure: no clock, no process.

    starting -> running -> waiting -> starting …      it ended by itself: again, after a pause
        \\___________\\________\\-> stopping -> stopped   it was told to
         \\___________\\-> given up                      it says that starting it again cannot help

There is one process at a time: a new one is started only from `waiting`, and that comes only after
the end of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Final

from duolog.bridge.serve.leash import NOT_RUNNABLE
from duolog.errors import InvalidSetting

AGAIN_AND_AGAIN: Final = 2
"""So many ends in a row are no accident."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for what."""

    first_pause_seconds: float = 0.5  # before it is started again; doubles with each failure
    longest_pause_seconds: float = 60.0
    steady_seconds: float = 60.0  # after so long at work, failures are counted from one again
    stop_seconds: float = 10.0  # to end in order, before it is killed

    def __post_init__(self) -> None:
        for name in ("first_pause_seconds", "longest_pause_seconds", "stop_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InvalidSetting(f"{name} must be above 0; got {getattr(self, name)}.")

    def pause_seconds(self, failures: int) -> float:
        """After so many failures in a row."""
        doubled = self.first_pause_seconds * 2.0 ** min(failures - 1, 30)
        return min(doubled, self.longest_pause_seconds)


class Phase(StrEnum):
    """Where a worker is."""

    STARTING = "starting"  # started, and has not said yet that it is at work
    RUNNING = "running"
    WAITING = "waiting"  # ended by itself; will be started again
    STOPPING = "stopping"
    STOPPED = "stopped"
    GIVEN_UP = "given up"

    @property
    def has_process(self) -> bool:
        return self in {Phase.STARTING, Phase.RUNNING, Phase.STOPPING}


class Sign(Enum):
    """What happens to a worker, besides its end."""

    SAID = auto()  # it told the host something
    STOP = auto()  # it is not wanted any more
    TIME = auto()  # `wake_at` has come


@dataclass(frozen=True, slots=True)
class Ended:
    """Its process is gone; without a code, it could not even be started."""

    code: int | None


Event = Sign | Ended


class Deed(Enum):
    """What is to be done with the process."""

    START = auto()
    TERMINATE = auto()
    KILL = auto()


@dataclass(frozen=True, slots=True)
class Course:
    """One worker's state. `wake_at` is the moment of the next `Sign.TIME`."""

    phase: Phase
    since: float
    failures: int = 0  # in a row
    wake_at: float | None = None

    def ends_in_a_row(self, now: float, patience: Patience) -> int:
        """How often it has ended by itself; 0 after a steady run."""
        is_steady = self.phase is Phase.RUNNING and now - self.since >= patience.steady_seconds
        return 0 if is_steady else self.failures


def begun(now: float) -> tuple[Course, Deed]:
    """How it begins."""
    return Course(Phase.STARTING, now), Deed.START


def after(
    course: Course, event: Event, now: float, patience: Patience
) -> tuple[Course, Deed | None]:
    """What becomes of it. What does not concern its phase changes nothing."""
    match course.phase, event:
        case Phase.STARTING, Sign.SAID:
            return replace(course, phase=Phase.RUNNING, since=now), None
        case Phase.STARTING | Phase.RUNNING, Ended(code):
            return _ended(course, code, now, patience), None
        case Phase.STARTING | Phase.RUNNING, Sign.STOP:
            until = now + patience.stop_seconds
            return Course(Phase.STOPPING, now, course.failures, until), Deed.TERMINATE
        case Phase.WAITING, Sign.TIME:
            return Course(Phase.STARTING, now, course.failures), Deed.START
        case Phase.WAITING | Phase.GIVEN_UP, Sign.STOP:
            return Course(Phase.STOPPED, now, course.failures), None
        case Phase.STOPPING, Sign.TIME:
            return replace(course, wake_at=None), Deed.KILL
        case Phase.STOPPING, Ended():
            return Course(Phase.STOPPED, now, course.failures), None
    return course, None


def _ended(course: Course, code: int | None, now: float, patience: Patience) -> Course:
    if code == NOT_RUNNABLE:
        return Course(Phase.GIVEN_UP, now, course.failures + 1)
    failures = course.ends_in_a_row(now, patience) + 1
    return Course(Phase.WAITING, now, failures, now + patience.pause_seconds(failures))
