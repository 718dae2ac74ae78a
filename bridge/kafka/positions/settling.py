"""The thread that keeps group positions together, as both sides move.

A thread and no task of an event loop: it waits in Kafka's client and in calls of the log, and what
it does must be in one order. It looks at a group when Kafka's feed or the log tells of it, and
again and again as long as something is pending there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from duolog.bridge.kafka.feed.coordinator import Commits, GroupCoordinator, KafkaPartition
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.feed.hints import Hint, Hints
from duolog.bridge.kafka.feed.polling import GroupPolling
from duolog.bridge.kafka.feed.reading import GroupFeed
from duolog.bridge.kafka.feed.records import MembersChanged
from duolog.bridge.kafka.mirror.shared import Say, shown
from duolog.bridge.kafka.positions.agenda import Agenda
from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitEmptyGroup,
    MoveNative,
    OneWay,
    WriteKafka,
)
from duolog.bridge.kafka.positions.native_moves import NativeMoves
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.bridge.kafka.positions.settler import NotYet, Outcome, Settler
from duolog.bridge.kafka.positions.sides import Mirrors
from duolog.bridge.kafka.positions.stored_watch import StoredWatch
from duolog.bridge.kafka.positions.waits import Wait, Waits
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import DuologError, KafkaFeedForbidden, KafkaRefused, LogClosed
from duolog.log.access import LogAccess
from duolog.log.model import GroupPosition

POLL_SECONDS: Final = 0.05  # the feed wakes us at once; all else is seen after it
AT_ONCE: Final = 16  # groups, before it is asked again which ones have changed
MIRRORS_SECONDS: Final = 1.0  # how soon a partition that is newly mirrored is known
LONGEST_PAUSE_SECONDS: Final = 2.0  # between attempts to find Kafka
WAITED_SECONDS: Final = 0.005  # the same while somebody waits for a group
LOOK_SHARE: Final = 0.05  # of the time at most goes into finding out which positions have moved

Answer = TypeVar("Answer")
_Work = tuple["Future[Any]", Callable[[Settler], Any]]


@dataclass(frozen=True, slots=True)
class SettlingStatus:
    """What is pending, which groups Kafka refuses to tell of, and what is wrong with all."""

    watching: bool  # False: groups are asked for, since the feed may not be read
    pending: tuple[Outcome, ...]
    refused: Mapping[str, str]
    trouble: str | None
    running: bool = True  # False when it has ended, which it does only when told or the log closed


class GroupSettling:
    """Runs from `start` to `close`. All its methods may be called from any thread."""

    def __init__(
        self,
        log: LogAccess,
        settings: KafkaSettings,
        *,
        groups: GroupFilter | None = None,
        mirrors: Mirrors | None = None,
        own: OwnCommits | None = None,
        clock: Callable[[], float] = time.monotonic,
        say: Say = lambda *_, **__: None,
    ) -> None:
        """`own`: what the worker's own members commit."""
        self._say = say
        self._log = log
        self._settings = settings
        self._groups = groups or GroupFilter.of()
        self._mirrors = mirrors
        self._own = own or OwnCommits()
        self._clock = clock
        self._agenda = Agenda(clock)
        self._work: SimpleQueue[_Work] = SimpleQueue()
        self._waits = Waits()
        self._stopping = threading.Event()
        self._places: frozenset[KafkaPartition] = frozenset()
        self._mirrors_due_at = 0.0
        self._watching = False
        self._has_begun = False
        self._is_at_work = False
        self._trouble: str | None = None
        self._pending: dict[str, tuple[Outcome, ...]] = {}
        self._refused: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="duolog-groups", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """Whether it has reached Kafka, and may be in the middle of a step."""
        return self._is_at_work

    def ask_to_stop(self) -> None:
        """Stop after the step that is being done. What is pending goes on with the next one."""
        self._stopping.set()

    def close(self) -> None:
        """Stop, and wait until it has: for as long as Kafka may take to answer."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()

    def settle(self, group: str) -> Future[tuple[Outcome, ...]]:
        """Look at a group now: what was done, or is waited for, in each of its partitions."""
        return self._do(lambda settler: self._settle(settler, group))

    def wait(self, wait: Wait) -> None:
        """Have a wait answered once its group is where it is to be; to give up, cancel its future.

        It is looked at now, so all that was acknowledged or committed before counts.
        """

        def begin(_: Settler) -> None:
            self._waits.add(wait)
            self._agenda.add(wait.group)

        self._do(begin).add_done_callback(
            lambda begun: wait.future.cancel() if begun.cancelled() else None
        )

    def reset(
        self,
        group: str,
        topic: str,
        partition: int,
        position: int,
        expected_version: int | None = None,
    ) -> Future[GroupPosition | None]:
        """Move a group anywhere on both sides; refused while it has members in Kafka.

        None where there is no other side, and nothing is done.
        """
        self._agenda.add(group)
        return self._do(
            lambda settler: settler.reset(group, topic, partition, position, expected_version)
        )

    def delete(self, group: str, topic: str | None = None) -> Future[int]:
        """Forget a group on both sides; refused while it has members in Kafka."""
        self._agenda.add(group)
        return self._do(lambda settler: settler.delete(group, topic))

    def takes(self, group: str) -> bool:
        """Whether a group's position is one on both sides."""
        return self._groups.takes(group)

    def mirrored(self) -> frozenset[tuple[str, int]]:
        """The log's topics and partitions whose groups are kept together now."""
        mirrors = (self._mirrors or self._log.mirrors)()
        return frozenset((mirror.topic, mirror.partition) for mirror in mirrors)

    def status(self) -> SettlingStatus:
        pending = tuple(each for found in self._pending.copy().values() for each in found)
        return SettlingStatus(
            self._watching, pending, self._refused.copy(), self._trouble, self._thread.is_alive()
        )

    def _do(self, work: Callable[[Settler], Answer]) -> Future[Answer]:
        future: Future[Answer] = Future()
        self._work.put((future, work))
        if self._stopping.is_set():
            self._let_go()
        return future

    def _run(self) -> None:
        pause = POLL_SECONDS
        while not self._stopping.is_set():
            self._has_begun = self._is_at_work = False
            try:
                with closing(GroupCoordinator(self._settings, self._log.log_id)) as coordinator:
                    self._keep(coordinator)
            except LogClosed:
                break
            except DuologError as error:  # Kafka or the host is away: begin anew
                self._trouble = str(error)
                self._say("groups.wait", **shown(error))
                # A cluster that lets nobody in is not to be asked all the time.
                pause = POLL_SECONDS if self._has_begun else min(2 * pause, LONGEST_PAUSE_SECONDS)
                self._stopping.wait(pause)
        self._let_go()
        self._waits.give_up()

    def _keep(self, coordinator: GroupCoordinator) -> None:
        watch = StoredWatch(self._log, POLL_SECONDS)
        with closing(watch), closing(self._hints(coordinator)) as hints:
            self._is_at_work = True
            if self._stopping.is_set():
                return
            settler = Settler(self._log, coordinator, hints, self._mirrors)
            settler.resume()
            self._places, self._mirrors_due_at = frozenset(), 0.0
            natives = NativeMoves(self._log, watch.stored, self._clock, LOOK_SHARE)
            with_positions = {each.group for each in natives.moved()}
            self._agenda.add_all(filter(self._groups.takes, with_positions))
            while not self._stopping.is_set():
                self._work_off(settler)
                self._look_for_mirrors(settler, coordinator)
                for hint in hints.poll(self._pause_seconds()):
                    self._hear(settler, hint)
                for moved in natives.moved():
                    self._see(moved)
                groups = self._agenda.due(AT_ONCE)
                seen = settler.look(groups)
                for group in groups:
                    self._look_at(settler, group, seen.get(group))
                if self._trouble is not None:
                    self._say("groups.go_on")
                self._trouble, self._has_begun = None, True

    def _pause_seconds(self) -> float:
        if self._agenda.has_due():
            return 0
        is_waited_for = bool(self._waits.groups()) or not self._work.empty()
        return WAITED_SECONDS if is_waited_for else POLL_SECONDS

    def _hints(self, coordinator: GroupCoordinator) -> Hints:
        first: dict[str, int] = {}
        for position in self._log.group_positions():
            write = position.kafka.writing if position.kafka else None
            if write is not None and write.feed_from is not None:
                first[position.group] = min(
                    write.feed_from, first.get(position.group, write.feed_from)
                )
        try:
            feed = GroupFeed(self._settings.for_confluent(), first_offsets=first)
        except KafkaFeedForbidden:
            self._watching = False
            return GroupPolling(lambda: filter(self._groups.takes, coordinator.groups()))
        self._watching = True
        return feed

    def _look_for_mirrors(self, settler: Settler, coordinator: GroupCoordinator) -> None:
        """Whatever groups there are may have something to say of a partition that is new here."""
        if self._clock() < self._mirrors_due_at:
            return
        known, self._places = self._places, settler.places()
        self._mirrors_due_at = self._clock() + MIRRORS_SECONDS
        if self._places - known:
            native = {each.group for each in self._log.group_positions()}
            self._agenda.add_all(filter(self._groups.takes, native.union(coordinator.groups())))

    def _hear(self, settler: Settler, hint: Hint) -> None:
        settler.hear(hint)
        change = hint.change
        if not self._groups.takes(change.group):
            return
        if hint.feed_offset is None:  # not told, only supposed
            self._agenda.add(change.group)
        elif isinstance(change, MembersChanged):
            self._agenda.hear(change)
        elif change.place in self._places:
            if self._own.is_commit(change) and self._has_time(change.group):
                self._agenda.rest(change.group)
            else:
                self._agenda.hear(change)

    def _see(self, moved: GroupPosition) -> None:
        """A group has moved in the log."""
        if not self._groups.takes(moved.group):
            return
        if self._own.is_position(moved) and self._has_time(moved.group):
            self._agenda.rest(moved.group)
        else:
            self._agenda.add(moved.group)

    def _has_time(self, group: str) -> bool:
        """Whether nobody waits for it."""
        return group not in self._waits.groups()

    def _look_at(self, settler: Settler, group: str, seen: Commits | None) -> None:
        """One group; what Kafka refuses there is no trouble of the others."""
        try:
            self._settle(settler, group, seen)
        except KafkaRefused as error:
            self._refused[group] = str(error)
            self._agenda.keep(group, at_once=False, waits=True)
        except DuologError:
            self._agenda.add(group)
            raise
        else:
            self._refused.pop(group, None)

    def _settle(
        self, settler: Settler, group: str, seen: Commits | None = None
    ) -> tuple[Outcome, ...]:
        """A group's next step; it comes up again as long as there is another one."""
        outcomes = tuple(settler.settle(group, seen))
        waiting = tuple(each for each in outcomes if not _at_rest(each))
        self._agenda.keep(
            group,
            at_once=any(isinstance(each.step, MoveNative | WriteKafka) for each in outcomes),
            waits=bool(waiting) or any(each.on_its_way for each in outcomes),
            until_members_change=any(map(_has_time, outcomes)),
        )
        self._waits.looked(group, outcomes)
        if waiting:
            self._pending[group] = waiting
        else:
            self._pending.pop(group, None)
        return outcomes

    def _work_off(self, settler: Settler) -> None:
        for _ in range(self._work.qsize()):
            try:
                future, work = self._work.get_nowait()
            except Empty:
                return
            if future.cancelled():
                continue
            try:
                result = work(settler)
            except NotYet:  # the next look deals with it
                self._work.put((future, work))
            except DuologError as error:
                _conclude(future, error=error)
            else:
                _conclude(future, result)

    def _let_go(self) -> None:
        while True:
            try:
                future, _ = self._work.get_nowait()
            except Empty:
                break
            future.cancel()


def _conclude(future: Future[Any], result: Any = None, error: DuologError | None = None) -> None:
    with suppress(InvalidStateError):  # cancelled meanwhile
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _at_rest(outcome: Outcome) -> bool:
    return isinstance(outcome.step, OneWay) or outcome.step == Agreed() or _has_time(outcome)


def _has_time(outcome: Outcome) -> bool:
    return isinstance(outcome.step, AwaitEmptyGroup) and outcome.step.has_time
