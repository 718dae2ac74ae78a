"""Consumers of one group, of both kinds, in threads; and what became of it, in one ledger."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duolog.client import ConsumedRecord, Consumer
from duolog.errors import PartitionRevoked

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

DEADLINE_SECONDS = 60.0
_IN_TIME_SECONDS = 5.0  # less than after which the group goes on without it
# Kafka's numbers for: not now, as members change or the broker is away.
_BETWEEN = frozenset({14, 15, 16, 22, 25, 27, 113, -180, -185, -187, -195})

Entry = tuple[str, int, int]  # who, partition, number


@dataclass
class Ledger:
    """Which record was processed by whom, and which of them were acknowledged before."""

    entries: list[Entry] = field(default_factory=list)
    acked: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)  # Kafka's consumer could not commit them
    after_ack: list[Entry] = field(default_factory=list)  # of these there must be none
    guard: threading.Lock = field(default_factory=threading.Lock)

    def note(self, who: str, partition: int, number: int) -> None:
        with self.guard:
            self.entries.append((who, partition, number))
            if number in self.acked:
                self.after_ack.append((who, partition, number))

    def note_acked(self, numbers: Iterable[int]) -> None:
        """Whoever processed these has been told that they are done."""
        with self.guard:
            self.acked.update(numbers)

    def note_given_up(self, numbers: Iterable[int]) -> None:
        """Whoever processed these could not say so: they may come again."""
        with self.guard:
            self.given_up.update(numbers)

    def counts(self) -> Counter[int]:
        with self.guard:
            return Counter(number for _, _, number in self.entries)

    def by_kind(self) -> Counter[str]:
        with self.guard:
            return Counter(who.partition("-")[0] for who, _, _ in self.entries)

    def by(self, kind: str) -> set[int]:
        """What consumers whose names begin so have processed."""
        with self.guard:
            return {number for who, _, number in self.entries if who.startswith(kind)}

    def twice(self) -> set[int]:
        return {number for number, count in self.counts().items() if count > 1}

    def owners(self) -> dict[int, str]:
        """Who processed something of each partition last."""
        with self.guard:
            return {partition: who for who, partition, _ in self.entries}


class Reading:
    """A consumer in a thread, until it is closed, killed (it does not say so) or paused."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name = name
        self.ledger = ledger
        self.failed: Exception | None = None
        self._stopping = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._rests = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()

    def until_it_rests(self) -> None:
        """It was paused, and what it was at is done."""
        assert self._rests.wait(DEADLINE_SECONDS), f"{self.name} goes on"

    def wait_to_go_on(self) -> None:
        if not self._going.is_set():
            self._rests.set()
            self._going.wait()
            self._rests.clear()

    def close(self) -> None:
        self._stopping.set()
        self._going.set()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    def _run(self) -> None:
        try:
            self.read()
        except Exception as error:
            self.failed = error
            raise

    def read(self) -> None:
        raise NotImplementedError


class NativeReading(Reading):
    """Through the Python client. It may go on to process without acknowledging.

    With `auto_ack`, the ledger does not hear of what is acknowledged.
    """

    def __init__(
        self, name: str, ledger: Ledger, url: str, topic: str, group: str, **options: Any
    ) -> None:
        given = {"start": "earliest", "auto_ack": False, "max_records": 50}
        self._consumer = Consumer(topic, url=url, group=group, **{**given, **options})
        self._auto_ack = bool(options.get("auto_ack"))
        self._vanishes = False
        self._holds = threading.Event()
        self._acks = threading.Event()
        self.has_lost_some = False
        super().__init__(f"native-{name}", ledger)

    def hold_acks(self) -> None:
        self._holds.set()

    def release_acks(self) -> None:
        self._acks.clear()
        self._holds.clear()

    def until_it_acks(self) -> None:
        assert self._acks.wait(DEADLINE_SECONDS), f"{self.name} acknowledges nothing"

    def vanish(self) -> None:
        """It is gone without a word, as when its machine is."""
        self._vanishes = True
        self._stopping.set()
        self._thread.join(DEADLINE_SECONDS)
        inner = self._consumer._consumer
        self._consumer._portal.run(inner._beats.stop())

    def close(self) -> None:
        super().close()
        self._consumer.close()

    def read(self) -> None:
        unacked: list[ConsumedRecord] = []
        while not self._stopping.is_set():
            self.wait_to_go_on()
            records = self._consumer.poll(0.2)
            for record in records:
                self.ledger.note(self.name, record.partition, int(record.value))
            if not self._auto_ack:
                unacked += records
            if unacked and not self._holds.is_set():
                self._ack(unacked)
                unacked = []
        if not self._vanishes:
            if self._auto_ack:
                with suppress(PartitionRevoked):
                    self._consumer.ack()  # what is in hand is done
            self._consumer.close()

    def _ack(self, records: list[ConsumedRecord]) -> None:
        self._acks.set()
        try:
            self._consumer.ack(*records)
        except PartitionRevoked:
            self.has_lost_some = True  # they come again to who has them now
            return
        self.ledger.note_acked(int(record.value) for record in records)


class KafkaReading(Reading):
    """Through librdkafka: commits what it has processed, also when partitions are taken from it."""

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        bootstrap: str,
        topic: str,
        group: str,
        settings: Mapping[str, Any],
    ) -> None:
        from confluent_kafka import Consumer as KafkaConsumer

        self._consumer = KafkaConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 2000,
                **settings,
            }
        )
        self._topic = topic
        self._done: dict[int, int] = {}
        self._numbers: dict[int, list[int]] = {}  # of what is done, and not committed yet
        super().__init__(f"kafka-{name}", ledger)

    def read(self) -> None:
        consumer = self._consumer
        consumer.subscribe([self._topic], on_revoke=self._give_up, on_lost=self._forget)
        while not self._stopping.is_set():
            self.wait_to_go_on()
            for message in consumer.consume(50, 0.1):
                if message.error() is not None:
                    continue
                value, partition = message.value(), int(message.partition() or 0)
                assert value is not None
                self.ledger.note(self.name, partition, int(value))
                self._done[partition] = int(message.offset() or 0) + 1
                self._numbers.setdefault(partition, []).append(int(value))
            self._commit()
        self._commit(in_time=True)
        consumer.close()

    def _give_up(self, _: Any, partitions: list[TopicPartition]) -> None:
        self._commit(in_time=True)
        self._forget(_, partitions)

    def _forget(self, _: Any, partitions: list[TopicPartition]) -> None:
        """A commit for what others have would be taken, and would move them."""
        for each in partitions:
            self._done.pop(each.partition, None)
            self._numbers.pop(each.partition, None)

    def _commit(self, *, in_time: bool = False) -> None:
        """What is done. While the group is between two assignments, it is done with the next one;
        or now, if the partitions are being taken.
        """
        from confluent_kafka import KafkaException, TopicPartition

        deadline = time.monotonic() + _IN_TIME_SECONDS
        while self._done:
            wanted = [
                TopicPartition(self._consumer_topic(p), p, at) for p, at in self._done.items()
            ]
            try:
                self._consumer.commit(offsets=wanted, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in _BETWEEN:
                    raise
                if not in_time or time.monotonic() > deadline:
                    return
                time.sleep(0.02)
            else:
                for numbers in self._numbers.values():
                    self.ledger.note_acked(numbers)
                self._numbers.clear()
                self._done.clear()

    def _consumer_topic(self, partition: int) -> str:
        found = {each.partition: each.topic for each in self._consumer.assignment()}
        return found.get(partition, self._topic)


def until(
    condition: Callable[[], bool],
    what: str | Callable[[], str],
    seconds: float = DEADLINE_SECONDS,
) -> None:
    """Wait for something that others do; `what` is asked when they have not done it."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {seconds:g} s: {told}")
        time.sleep(0.02)
