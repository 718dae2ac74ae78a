"""One thread commits everything small: publishes, group positions, topics, retention.

Callers hand in a job, and wait or are told. The committer takes all jobs that are there, puts them
into one atomic write with one sync, and lets their callers go. So concurrent callers share a sync,
and what jobs decide upon has one owner and needs no locks. (Measured: a committer of its own beats
a caller that leads the others, which has to win Python's lock again at each hand-over.)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from duolog.errors import LogClosed, OutcomeUnknown
from duolog.log.forked import Forked, leave_to_parent_in_child
from duolog.log.model import TopicPartition
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.store import WriteFailed, named_failure

_ROUND_BYTES = 4 << 20
_TRIES = 3
_LOGGER = logging.getLogger(__name__)


class Job:
    """Something to commit. `prepare` decides and puts changes into the round, or raises.

    A job that raises leaves nothing in the round. It should decide before it changes anything: a
    round that was changed is thrown away, and the jobs before are prepared again.
    """

    alone = False  # True: nothing else is in its round
    is_written = True  # False: it only looks, and is told at once

    def __init__(self) -> None:
        self._done = threading.Lock()  # as a bare semaphore: an Event costs four times as much
        self._done.acquire()
        self._error: BaseException | None = None
        self._is_concluded = False

    def gates(self, state: State) -> frozenset[TopicPartition]:
        """The partitions that nobody else may append to meanwhile."""
        del state
        return frozenset()

    def prepare(self, round_: Round) -> None:
        """Decide, in the committer's thread. Called again if the round has to be repeated."""
        raise NotImplementedError

    def finish(self, error: BaseException | None) -> None:
        """It is durable, or refused. In the committer's thread, which must not wait here."""
        self._error = error
        self._done.release()

    def conclude(self, error: BaseException | None) -> None:
        """Call `finish`, once. What it raises is logged: the outcome stays what it is."""
        if self._is_concluded:
            return
        self._is_concluded = True
        try:
            self.finish(error)
        except BaseException:
            _LOGGER.exception(
                "A callback of a %s raised. The outcome that it was called with stands: %s.",
                type(self).__name__.strip("_"),
                "it is durable" if error is None else error,
            )

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
        leave_to_parent_in_child(self)

    def leave_to_parent(self) -> None:
        """In a forked child, which has no thread of the committer."""
        forked: Any = Forked(self._state.folder)
        self._guard = forked

    def run(self, job: Job) -> None:
        """Commit a job; returns when it is durable."""
        self.submit(job)
        job.wait()

    def submit(self, *jobs: Job) -> None:
        """Commit jobs without waiting: their `finish` is called. They come to the same round."""
        with self._guard:
            if self._closing:
                raise LogClosed("The log has been closed.")
            self._queue.extend(jobs)
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
        blocked: list[Job] = []
        for some in _split_behind_alone(jobs):
            blocked += self._commit_behind_gates(some)
        return blocked

    def _commit_behind_gates(self, jobs: list[Job]) -> list[Job]:
        """Hold the gates of as many jobs as possible and commit them; the others are returned."""
        held: set[TopicPartition] = set()
        admitted: list[Job] = []
        blocked: list[Job] = []
        try:
            for job in jobs:
                try:
                    missing = job.gates(self._state) - held
                except BaseException as error:  # noqa: BLE001 - handed to its caller
                    job.conclude(error)
                    continue
                if not missing or self._state.gates.try_hold(missing):
                    held |= missing
                    admitted.append(job)
                else:
                    blocked.append(job)
            self._commit_all(admitted)
        finally:
            if held:
                self._state.gates.free(held)
        return blocked

    def _commit_all(self, jobs: list[Job]) -> None:
        """Commit these, in as many rounds as it takes. Does not raise."""
        while jobs:
            try:
                jobs = self._commit_round(jobs)
            except BaseException as error:
                _LOGGER.exception("The committer failed in a way that it does not know.")
                _conclude(jobs, error)
                return

    def _commit_round(self, jobs: list[Job]) -> list[Job]:
        """Commit as many of these jobs as fit into one round; the others are returned."""
        outcome: BaseException | None = None
        for _ in range(_TRIES):
            try:
                self._state.ensure_writable()
                prepared = self._prepare(jobs)
            except BaseException as error:  # noqa: BLE001 - handed to every caller
                _conclude(jobs, error)
                return []
            round_, taken, undecided = prepared.round, prepared.taken, prepared.undecided
            if not taken:
                break
            try:
                if not round_.changes_nothing:
                    round_.write()
            except WriteFailed as failure:
                outcome = settle(
                    self._state, failure, round_.is_stored, partial(self._show, round_)
                )
                if outcome is None:
                    break
                if not failure.superseded or isinstance(outcome, OutcomeUnknown):
                    _conclude(taken, outcome)
                    return undecided
                jobs = taken + undecided
            except BaseException as error:  # noqa: BLE001 - handed to the caller whose fault it is
                self._discard(round_)
                if len(taken) == 1:
                    _conclude(taken, error)
                else:
                    half = len(taken) // 2
                    self._commit_all(taken[:half])
                    self._commit_all(taken[half:])
                return undecided
            else:
                self._show(round_)
                round_.remove_gone()
                outcome = None
                break
        if outcome is not None:
            _conclude(taken, outcome)
            return undecided
        _conclude(taken, None)
        for job, refusal in prepared.refused:
            job.conclude(refusal)
        return prepared.rest

    def _prepare(self, jobs: list[Job]) -> _Prepared:
        prepared = _Prepared(self._begin_round(), [], [], [])
        taken = prepared.taken
        for at, job in enumerate(jobs):
            if taken and (
                job.alone or taken[-1].alone or prepared.round.record_bytes > _ROUND_BYTES
            ):
                prepared.rest = jobs[at:]
                break
            prepared.round.is_changed = False
            try:
                job.prepare(prepared.round)
            except BaseException as error:  # noqa: BLE001 - handed to its caller
                prepared.refused.append((job, error))
                if prepared.round.is_changed:
                    self._prepare_again(prepared)
            else:
                if job.is_written:
                    taken.append(job)
                else:
                    job.conclude(None)
        return prepared

    def _prepare_again(self, prepared: _Prepared) -> None:
        """A job has raised after it had changed the round: the others get one without it."""
        refused = True
        while refused:
            refused = False
            prepared.round = self._begin_round()
            for job in tuple(prepared.taken):
                try:
                    job.prepare(prepared.round)
                except BaseException as error:  # noqa: BLE001 - handed to its caller
                    prepared.taken.remove(job)
                    prepared.refused.append((job, error))
                    refused = True
                    break

    def _begin_round(self) -> Round:
        self._round_number += 1
        return Round(self._state, self._round_number)

    def _show(self, round_: Round) -> None:
        """Show a durable round to readers. If that fails, memory is taken from the store anew."""
        try:
            round_.publish()
        except BaseException as error:
            _LOGGER.exception("What is durable could not be shown; the log is loaded anew.")
            self._state.store.doubt(error)
            try:
                self._state.recover()
            except BaseException:
                _LOGGER.exception("The log could not be loaded anew; the next write tries again.")

    def _discard(self, round_: Round) -> None:
        """Remove what was written of a round, now or before the next write."""
        try:
            round_.discard()
        except BaseException as error:  # noqa: BLE001 - opening anew removes it too
            self._state.store.doubt(error)


@dataclass
class _Prepared:
    """A round, and what became of the jobs that were to be in it."""

    round: Round
    taken: list[Job]
    refused: list[tuple[Job, BaseException]]
    """Told when the round is durable: they may have been decided by what others put into it."""
    rest: list[Job]

    @property
    def undecided(self) -> list[Job]:
        """The jobs to decide again if this round is not written."""
        return [job for job, _ in self.refused] + self.rest


def _split_behind_alone(jobs: list[Job]) -> Iterator[list[Job]]:
    """The jobs in pieces, each of which ends with a job that is alone in its round, or with the
    last. Such a job may change which partitions the jobs behind it need the gates of.
    """
    piece: list[Job] = []
    for job in jobs:
        piece.append(job)
        if job.alone:
            yield piece
            piece = []
    if piece:
        yield piece


def _conclude(jobs: Sequence[Job], error: BaseException | None) -> None:
    for job in jobs:
        job.conclude(error)


def settle(
    state: State,
    failure: WriteFailed,
    is_stored: Callable[[], bool],
    publish: Callable[[], None],
) -> BaseException | None:
    """After a write that raised: None when it is there all the same, else what to tell callers.

    "Nothing of it was kept" only when the log was opened anew and it was looked up there.
    """
    try:
        recovered = state.recover()
        is_there = recovered and is_stored()
    except Exception as error:  # noqa: BLE001 - whatever it was, nobody knows what is there
        return _unknown(state, failure, str(error))
    if not recovered:
        return _unknown(state, failure, state.store.not_reopened_for)
    if is_there:
        publish()
        return None
    return named_failure(failure, state.folder)


def _unknown(state: State, failure: WriteFailed, reason: str) -> OutcomeUnknown:
    unknown = OutcomeUnknown(
        f"A write to the log in {state.folder} failed ({failure}), and whether it is there "
        f"cannot be seen until the disk works again{f' ({reason})' if reason else ''}. Send it "
        "again then: with an epoch or a sequence it is written once."
    )
    unknown.__cause__ = failure
    return unknown
