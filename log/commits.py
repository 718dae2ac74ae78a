"""One thread commits everything small: publishes, group positions, topics, retention.

Callers hand in a job, and wait or are told. The committer takes all jobs that are there, puts them
into one atomic write with one sync, and lets their callers go. So concurrent callers share a sync,
and what jobs decide upon has one owner and needs no locks. (Measured: a committer of its own beats
a caller that leads the others, which has to win Python's lock again at each hand-over.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from duolog.errors import DuologError, LogClosed, OutcomeUnknown
from duolog.log.model import TopicPartition
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.store import WriteFailed, named_failure

_ROUND_BYTES = 4 << 20
_TRIES = 3


class Job:
    """Something to commit. `prepare` decides and puts changes into the round, or raises."""

    alone = False  # True: nothing else is in its round
    is_written = True  # False: it only looks, and is told at once

    def __init__(self) -> None:
        self._done = threading.Lock()  # as a bare semaphore: an Event costs four times as much
        self._done.acquire()
        self._error: BaseException | None = None

    def gates(self, state: State) -> frozenset[TopicPartition]:
        """The partitions that nobody else may append to meanwhile."""
        del state
        return frozenset()

    def prepare(self, round_: Round) -> None:
        """Decide, in the committer's thread. Called again if the round has to be repeated."""
        raise NotImplementedError

    def finish(self, error: BaseException | None) -> None:
        """It is durable, or refused. In the committer's thread: neither waits nor raises."""
        self._error = error
        self._done.release()

    def wait(self) -> None:
        self._done.acquire()
        if self._error is not None:
            raise self._error


class Nothing(Job):
    """To see that the committer is at work."""

    is_written = False

    def __init__(self, then: Callable[[None, BaseException | None], object]) -> None:
        super().__init__()
        self._then = then

    def prepare(self, round_: Round) -> None:
        pass

    def finish(self, error: BaseException | None) -> None:
        self._then(None, error)


class Committer:
    """The thread, and the queue of jobs before it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._guard = threading.Lock()  # of all below
        self._queue: list[Job] = []
        self._blocked: list[Job] = []  # behind a gate that somebody else holds
        self._gates_opened = 0
        self._idle = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Lock()  # a semaphore: released to wake the thread
        self._wake.acquire()
        self._round_number = time.time_ns()  # no two rounds of a log have the same
        state.gates.when_opened(self._gate_opened)

    def run(self, job: Job) -> None:
        """Commit a job; returns when it is durable."""
        self.submit(job)
        job.wait()

    def submit(self, job: Job) -> None:
        """Commit a job without waiting: its `finish` is called."""
        with self._guard:
            if self._closing:
                raise LogClosed("The log has been closed.")
            self._queue.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="duolog-committer", daemon=True
                )
                self._thread.start()
            self._rouse()

    def close(self) -> None:
        """Finish what is waiting, also behind gates, and stop."""
        with self._guard:
            self._closing = True
            self._rouse()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _rouse(self) -> None:
        if self._idle:
            self._idle = False
            self._wake.release()

    def _gate_opened(self) -> None:
        with self._guard:
            self._gates_opened += 1
            if self._blocked:
                self._queue[:0] = self._blocked
                self._blocked.clear()
                self._rouse()

    def _serve(self) -> None:
        while True:
            with self._guard:
                jobs, self._queue = self._queue, []
                gates_opened = self._gates_opened
                if not jobs:
                    if self._closing and not self._blocked:
                        return
                    self._idle = True
            if jobs:
                blocked = self._commit(jobs)
                with self._guard:
                    missed_one = self._gates_opened != gates_opened
                    (self._queue if missed_one else self._blocked).extend(blocked)
            else:
                self._wake.acquire()

    def _commit(self, jobs: list[Job]) -> list[Job]:
        """Commit the jobs whose gates are open; the others are returned."""
        held: set[TopicPartition] = set()
        admitted: list[Job] = []
        blocked: list[Job] = []
        for job in jobs:
            try:
                missing = job.gates(self._state) - held
            except DuologError as error:
                job.finish(error)
                continue
            if not missing or self._state.gates.try_hold(missing):
                held |= missing
                admitted.append(job)
            else:
                blocked.append(job)
        try:
            while admitted:
                admitted = self._commit_round(admitted)
        finally:
            if held:
                self._state.gates.free(held)
        return blocked

    def _commit_round(self, jobs: list[Job]) -> list[Job]:
        """Commit as many of these jobs as fit into one round; the others are returned."""
        error: BaseException | None = None
        taken: list[Job] = jobs
        rest: list[Job] = []
        for _ in range(_TRIES):
            try:
                self._state.ensure_writable()
                taken, rest, round_ = self._prepare(jobs)
                if taken:
                    round_.write()
                    round_.publish()
                error = None
                break
            except WriteFailed as failure:
                error = self._settle(round_, failure)
                if error is None or not failure.superseded:
                    break
                jobs = taken + rest
            except Exception as refused:  # noqa: BLE001 - handed to every caller
                error = refused
                break
        for job in taken:
            job.finish(error)
        return rest

    def _prepare(self, jobs: list[Job]) -> tuple[list[Job], list[Job], Round]:
        self._round_number += 1
        round_ = Round(self._state, self._round_number)
        taken: list[Job] = []
        for at, job in enumerate(jobs):
            if taken and (job.alone or taken[-1].alone or round_.record_bytes > _ROUND_BYTES):
                return taken, jobs[at:], round_
            try:
                job.prepare(round_)
            except Exception as error:  # noqa: BLE001 - handed to its caller
                job.finish(error)
            else:
                if job.is_written:
                    taken.append(job)
                else:
                    job.finish(None)
        return taken, [], round_

    def _settle(self, round_: Round, failure: WriteFailed) -> BaseException | None:
        """A write raised: open the store anew and look whether the round is there."""
        return settle(self._state, failure, round_.is_stored, round_.publish)


def settle(
    state: State,
    failure: WriteFailed,
    is_stored: Callable[[], bool],
    publish: Callable[[], None],
) -> BaseException | None:
    """After a write that raised: None when it is there all the same, else what to tell callers."""
    try:
        recovered = state.store.recover(state.load)
    except DuologError as error:
        return error
    if not recovered:
        unknown = OutcomeUnknown(
            f"A write to the log in {state.folder} failed ({failure}), and whether it is there "
            "cannot be seen until the disk works again. Send it again then: with an epoch or a "
            "sequence it is written once."
        )
        unknown.__cause__ = failure
        return unknown
    if is_stored():
        publish()
        return None
    return named_failure(failure, state.folder)
