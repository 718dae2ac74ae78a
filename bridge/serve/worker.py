"""Keeps one worker process running, for as long as the host runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Self

from duolog.bridge.journal import Journal, Level
from duolog.bridge.metrics.names import WORKER_ENDS, WORKER_STARTS, WORKER_UP
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.asking import Asking
from duolog.bridge.serve.child import Process, Start, Status
from duolog.bridge.serve.exchange import heard_in
from duolog.bridge.serve.supervision import (
    AGAIN_AND_AGAIN,
    Course,
    Deed,
    Ended,
    Event,
    Patience,
    Phase,
    Sign,
    after,
    begun,
)
from duolog.clock import Clock

_LONGEST_WAIT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """How a worker is, for those who ask."""

    name: str
    phase: Phase
    starts: int
    status: Status  # what it said last, of this run or the one before
    pid: int | None
    exit_code: int | None  # of the run before
    ends_in_a_row: int = 0  # without a steady run in between

    def shown(self) -> dict[str, Any]:
        """For /readyz, which anybody may ask: no more of an error than its code."""
        shown: dict[str, Any] = {"state": str(self.phase), "starts": self.starts}
        phases = self.status.get("partitions")
        if self.phase is Phase.RUNNING and isinstance(phases, dict):
            shown["partitions"] = phases
        if self.ends_in_a_row >= AGAIN_AND_AGAIN:
            shown["ends_in_a_row"] = self.ends_in_a_row
        code = self.status.get("code")
        if isinstance(code, str) and self.phase in {Phase.WAITING, Phase.GIVEN_UP}:
            shown["code"] = code
        return shown


@dataclass(frozen=True, slots=True)
class _Said:
    run: int
    status: Status


@dataclass(frozen=True, slots=True)
class _Gone:
    run: int
    code: int


class Worker:
    """One worker, from `start` to `stop`. Its thread alone decides and starts processes."""

    def __init__(
        self,
        name: str,
        start: Start,
        clock: Clock,
        tally: Tally,
        journal: Journal,
        *,
        patience: Patience | None = None,
        heard: Callable[[int, Status], object] = lambda _run, _status: None,
    ) -> None:
        """`heard` is called with what it says, and the number of the run that says it."""
        self.name = name
        self._start = start
        self._clock = clock
        self._tally = tally
        self._journal = journal
        self._patience = patience or Patience()
        self._heard = heard
        self._events: SimpleQueue[_Said | _Gone | Sign] = SimpleQueue()
        self._course = Course(Phase.STARTING, clock.monotonic())
        self._process: Process | None = None
        self._starts = 0
        self._status: Status = {}
        self._exit_code: int | None = None
        self.asking = Asking(name, journal)
        self._thread = threading.Thread(target=self._supervise, name=f"duolog-{name}-worker")

    @property
    def state(self) -> WorkerState:
        process, course = self._process, self._course
        return WorkerState(
            self.name,
            course.phase,
            self._starts,
            self._status,
            None if process is None else process.pid,
            self._exit_code,
            course.ends_in_a_row(self._clock.monotonic(), self._patience),
        )

    def start(self) -> None:
        self.asking.start()
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Have it end, without waiting for that. May be called from a signal's handler."""
        self._events.put(Sign.STOP)

    def stop(self) -> None:
        """End it, and wait until it has."""
        self.ask_to_stop()
        self._thread.join()
        self.asking.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _supervise(self) -> None:
        self._course, deed = begun(self._clock.monotonic())
        self._do(deed)
        while self._course.phase is not Phase.STOPPED:
            event = self._next_event()
            if event is not None:
                self._take(event)

    def _next_event(self) -> Event | None:
        wake_at = self._course.wake_at
        left = math.inf if wake_at is None else wake_at - self._clock.monotonic()
        try:
            found = self._events.get(timeout=max(0.0, min(left, _LONGEST_WAIT_SECONDS)))
        except Empty:
            is_due = wake_at is not None and self._clock.monotonic() >= wake_at
            return Sign.TIME if is_due else None
        match found:
            case _Said(run, status) if run == self._starts:
                self._status = status
                self._heard(run, status)
                return Sign.SAID
            case _Gone(run, code) if run == self._starts:
                self._process, self._exit_code = None, code
                return Ended(code)
            case Sign():
                return found
        return None  # of a run that is over

    def _take(self, event: Event) -> None:
        before = self._course
        self._course, deed = after(before, event, self._clock.monotonic(), self._patience)
        self._tell(before, event)
        self._do(deed)

    def _do(self, deed: Deed | None) -> None:
        process = self._process
        if deed is Deed.START:
            self._begin()
        elif deed is Deed.TERMINATE and process is not None:
            process.terminate()
        elif deed is Deed.KILL and process is not None:
            self._journal.warn("worker.killed", worker=self.name, pid=process.pid)
            process.kill()

    def _begin(self) -> None:
        self._starts += 1
        run = self._starts
        self._tally.add(WORKER_STARTS, self.name)
        try:
            self._process = self._start(
                lambda said: self._sort(run, said), lambda code: self._end(run, code)
            )
            self.asking.begin(run, self._process)
        except (OSError, RuntimeError) as error:  # no process, or no thread to hear of it
            self._journal.error("worker.not_started", error, worker=self.name)
            self._take(Ended(None))
        else:
            self._journal.note("worker.started", worker=self.name, pid=self._process.pid)

    def _sort(self, run: int, said: Status) -> None:
        """Answers go at once to who waits for them; what it says of itself is taken in turn."""
        heard = heard_in(said)
        if heard is None:
            self._events.put(_Said(run, said))
        else:
            self.asking.hear(run, heard)

    def _end(self, run: int, code: int) -> None:
        self.asking.end(run, f"it ended with exit code {code}")
        self._events.put(_Gone(run, code))

    def _tell(self, before: Course, event: Event) -> None:
        phase = self._course.phase
        self._tally.put(WORKER_UP, self.name, number=int(phase is Phase.RUNNING))
        if not isinstance(event, Ended):
            return
        how = "asked" if before.phase is Phase.STOPPING else "failed"
        if phase is Phase.GIVEN_UP:
            how = "refused"
        self._tally.add(WORKER_ENDS, self.name, how)
        told: dict[str, Any] = {"worker": self.name, "exit_code": event.code}
        if how == "asked":
            self._journal.note("worker.stopped", **told)
            return
        told["error"] = self._status.get("error")
        if how == "refused":
            self._journal.tell(Level.ERROR, "worker.given_up", **told)
        else:
            pause = (self._course.wake_at or 0.0) - self._course.since
            ends = self._course.failures
            level = Level.ERROR if ends >= AGAIN_AND_AGAIN else Level.WARNING
            told["ends_in_a_row"] = ends
            self._journal.tell(level, "worker.ended", **told, again_in_seconds=round(pause, 3))
