"""One proxy: a member of a Kafka group in the place of a native consumer.

It subscribes, pauses what it is given, so that it is never sent a record, and commits what the
native consumer has acknowledged. One thread does all of it: librdkafka's Python calls wait for each
other, and a revocation is complete when its callback returns. In there it goes on to commit, until
the host says that the native consumer has let go, or the time for that is over.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.kafka.access import client_of
from duolog.bridge.kafka.members.protocol import Protocol
from duolog.errors import (
    DuologError,
    IncompatibleGroup,
    KafkaTokenUnavailable,
    KafkaUnreachable,
    PartitionRevoked,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

POLL_SECONDS: Final = 0.1  # so soon it leaves, and so soon it commits when it has been idle
_BUSY_SECONDS: Final = 1.0  # after a commit, others are likely to follow: it waits for them
_BUSY_POLL_SECONDS: Final = 0.02  # meanwhile it hears so soon of changes
_GATHER_SECONDS: Final = 0.002  # for commits of its other partitions, which mostly come at once
_AGAIN_SECONDS: Final = 0.02
_COMMIT_SECONDS: Final = 10.0
_DRAIN_SECONDS: Final = 8.0  # the host decides; this is for one that does not
_ON_THE_WAY: Final = frozenset({14, 15, 16, 22, 27, 113})
"""Kafka's numbers for: the coordinator is not ready, or the group is between two assignments."""

_SHUT_OUT: Final = frozenset({-165, -150, 23, 29, 30, 35, 69, 112})
"""Another way of sharing out, a protocol that the broker or the group does not speak, no right; and
what librdkafka calls fatal without another number.
"""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Kafka has given partitions to a proxy: each with the number of that assignment."""

    since: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Revoking:
    """Kafka takes partitions back, and waits until they are let go, by the number of this."""

    partitions: frozenset[int]
    number: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Kafka has given partitions to others already."""

    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Refused:
    """The proxy cannot be a member of its group."""

    error: DuologError


_turns = itertools.count(1)  # of all proxies, so that none is taken for an earlier one's

Event = Assigned | Revoking | Lost | Refused


@dataclass(frozen=True, slots=True)
class _Commit:
    partition: int
    offset: int
    future: Future[None]
    until: float


class _NotNow:
    """Kafka takes it when the group has its next assignment, or the coordinator is there."""


class Proxy:
    """From `start` to `close`. `told` is called from its thread."""

    def __init__(
        self,
        settings: dict[str, Any],
        group: str,
        topic: str,
        protocol: Protocol,
        told: Callable[[Event], object],
    ) -> None:
        self._settings = {
            **settings,
            **protocol.settings(),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 5000,  # so soon new partitions are known
            "queued.max.messages.kbytes": 1024,
        }
        self.group = group
        self.topic = topic
        self.protocol = protocol
        self._told = told
        self._commits: SimpleQueue[_Commit] = SimpleQueue()
        self._has_commits = threading.Event()
        self._owned: Mapping[int, int] = {}  # by partition, the number of the assignment
        self._being_taken: frozenset[int] = frozenset()  # of these
        self._committed_upto: dict[int, int] = {}  # since they were assigned
        self._revocation = 0
        self._let_go = threading.Event()
        self._stopping = threading.Event()
        self._busy_until = 0.0
        self._thread = threading.Thread(target=self._run, name="duolog-proxy", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._let_go.set()

    def close(self) -> None:
        """Leave the group, and wait until that is done."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()

    def commit(self, partition: int, offset: int) -> Future[None]:
        """Tell Kafka. Raises, in the future, PartitionRevoked or KafkaUnreachable."""
        future: Future[None] = Future()
        self._commits.put(_Commit(partition, offset, future, time.monotonic() + _COMMIT_SECONDS))
        self._has_commits.set()
        if self._stopping.is_set() and not self._thread.is_alive():
            self._drop_commits()
        return future

    def _refused(self, why: DuologError) -> None:
        self._told(Refused(why))
        self._stopping.set()
        self._drop_commits()

    def let_go(self, revocation: int) -> None:
        """The native consumer has nothing more to say of what is being taken from it."""
        if revocation == self._revocation:
            self._let_go.set()

    @property
    def owned(self) -> Mapping[int, int]:
        """What it has and is to keep, each with the number of its assignment."""
        taken = self._being_taken
        return {at: number for at, number in self._owned.items() if at not in taken}

    def still(self, since: Mapping[int, int]) -> frozenset[int]:
        """Of what it was given, what it has had ever since and is to keep."""
        return frozenset(at for at, number in self.owned.items() if since.get(at) == number)

    def _run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        try:
            consumer = client_of(Consumer, self._settings)
        except KafkaException as failure:
            self._refused(_incompatible(self.group, failure.args[0].str()))
            return
        except KafkaTokenUnavailable as unavailable:
            self._refused(unavailable)
            return
        try:
            consumer.subscribe(
                [self.topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
            )
            while not self._stopping.is_set():
                self._work_off(consumer)
                busy = time.monotonic() < self._busy_until
                if busy:
                    self._has_commits.wait(_BUSY_POLL_SECONDS)
                message = consumer.poll(0 if busy else POLL_SECONDS)
                error = None if message is None else message.error()
                if error is not None and (error.fatal() or error.code() in _SHUT_OUT):
                    self._refused(_incompatible(self.group, error.str()))
        finally:
            consumer.close()
            self._owned = {}
            self._drop_commits()

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self.protocol.is_incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        if partitions:
            consumer.pause(partitions)
            since = dict.fromkeys(_numbers(partitions), next(_turns))
            for partition in since:
                self._committed_upto.pop(partition, None)
            self._owned = {**self._owned, **since}
            self._told(Assigned(since))

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        taken = _numbers(partitions)
        if taken and not self._stopping.is_set():
            self._let_go.clear()
            self._revocation = next(_turns)
            self._being_taken = taken  # before it is told: nobody is given them after that
            self._told(Revoking(taken, self._revocation))
            until = time.monotonic() + _DRAIN_SECONDS
            while not self._has_let_go and time.monotonic() < until:
                self._work_off(consumer)
                self._let_go.wait(_AGAIN_SECONDS / 4)
        self._work_off(consumer)  # what was asked before it was let go
        self._unassign(consumer, partitions)

    @property
    def _has_let_go(self) -> bool:
        return self._let_go.is_set() or self._stopping.is_set()

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        lost = _numbers(partitions)
        self._unassign(consumer, partitions)
        if lost:
            self._told(Lost(lost))

    def _unassign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = _numbers(partitions)
        self._owned = {at: number for at, number in self._owned.items() if at not in gone}
        self._being_taken = frozenset()
        if self.protocol.is_incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _work_off(self, consumer: Consumer) -> None:
        """Commit what has come in, each partition's last one."""
        self._has_commits.clear()
        waiting = self._gathered()
        if not waiting:
            return
        self._busy_until = time.monotonic() + _BUSY_SECONDS
        wanted = {at: max(each.offset for each in commits) for at, commits in waiting.items()}
        results = self._committed(consumer, wanted)
        for partition, commits in waiting.items():
            result = results[partition]
            for each in commits:
                if result is None:
                    each.future.set_result(None)
                elif not isinstance(result, _NotNow):
                    each.future.set_exception(result)
                elif time.monotonic() < each.until:
                    self._commits.put(each)  # the group is polled on meanwhile
                else:
                    each.future.set_exception(_not_taken(self.group))

    def _gathered(self) -> dict[int, list[_Commit]]:
        """What is to be committed now, by partition: a broker takes as long for all as for one."""
        waiting: dict[int, list[_Commit]] = {}
        until = 0.0
        while True:
            left = until - time.monotonic()
            waits = bool(waiting) and left > 0 and waiting.keys() < self._owned.keys()
            try:
                commit = self._commits.get(waits, left if waits else None)
            except Empty:
                return waiting
            if not waiting:
                until = time.monotonic() + _GATHER_SECONDS
            waiting.setdefault(commit.partition, []).append(commit)

    def _committed(
        self, consumer: Consumer, offsets: dict[int, int]
    ) -> dict[int, DuologError | _NotNow | None]:
        """What became of each partition's commit; None when it is done."""
        from confluent_kafka import KafkaException, TopicPartition

        results: dict[int, DuologError | _NotNow | None] = {
            at: _elsewhere(self.group, self.topic, at)
            for at in offsets
            if at not in self._owned  # a broker takes those of others as well
        }
        # One that was overtaken is done: it would move the group back.
        upto = self._committed_upto
        results |= {
            at: None for at in offsets if at in self._owned and offsets[at] <= upto.get(at, -1)
        }
        own = [at for at in offsets if at not in results]
        if not own:
            return results
        wanted = [TopicPartition(self.topic, at, offsets[at]) for at in own]
        try:
            answers = consumer.commit(offsets=wanted, asynchronous=False) or ()
        except KafkaException as failure:
            return results | dict.fromkeys(own, self._meaning(failure.args[0]))
        told = {each.partition: each.error for each in answers}
        results |= {at: self._meaning(told.get(at)) for at in own}
        upto.update((at, offsets[at]) for at in own if results[at] is None)
        return results

    def _meaning(self, error: KafkaError | None) -> DuologError | _NotNow | None:
        if error is None:
            return None
        if error.code() in _ON_THE_WAY or error.retriable():
            return _NotNow()
        return KafkaUnreachable(f"Kafka did not take an offset of '{self.group}': {error}.")

    def _drop_commits(self) -> None:
        while True:
            try:
                commit = self._commits.get_nowait()
            except Empty:
                return
            commit.future.set_exception(
                PartitionRevoked(f"The member has left group '{self.group}' in Kafka.")
            )


def _elsewhere(group: str, topic: str, partition: int) -> PartitionRevoked:
    return PartitionRevoked(
        f"Kafka has given '{topic}' partition {partition} of group '{group}' to another consumer, "
        "which begins behind the last acknowledgement that was taken."
    )


def _not_taken(group: str) -> KafkaUnreachable:
    return KafkaUnreachable(
        f"Kafka has not taken an offset of '{group}' for {_COMMIT_SECONDS:g} s, as its members "
        "change, or it is away. Acknowledge again."
    )


def _numbers(partitions: Iterable[TopicPartition]) -> frozenset[int]:
    return frozenset(each.partition for each in partitions)


def _incompatible(group: str, said: str) -> IncompatibleGroup:
    return IncompatibleGroup(
        f"A native consumer cannot be a member of group '{group}' beside its members in Kafka: "
        f"{said}. Give those partition.assignment.strategy range, roundrobin or "
        "cooperative-sticky, or group.protocol=consumer; or use another group."
    )
