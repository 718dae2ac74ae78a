"""Consumers of both sides that take turns in one group, each for a portion of records.

Each acknowledges what it did, and hands over when both sides know it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from tests.drills.mirror.scene import Scene
from tests.support.groups import PROTOCOLS, consumer
from tests.support.kafka import DEADLINE_SECONDS
from tests.support.kafka_tools import Place, console_consumer, verifiable_consumer

_EMPTY_POLLS = 3


class Turns:
    """One group of one topic, whose records lie at equal offsets on both sides."""

    def __init__(self, scene: Scene, records: int) -> None:
        self.scene = scene
        self.group = scene.kafka.new_group()
        self.records = records
        self.done: Counter[Place] = Counter()
        self.had_a_turn: Counter[str] = Counter()

    @property
    def left(self) -> int:
        return self.records - len(self.done)

    def turn(self, who: str, portion: int) -> None:
        """Let a consumer do some records, and wait until both sides know."""
        done = CONSUMERS[who](self, min(portion, self.left))
        self.done.update(done)
        self.had_a_turn[who] += 1
        self.settle()

    def settle(self) -> None:
        """What a consumer's `wait=settled` is to do; here by asking both sides."""
        self.scene.until(self._is_settled, f"settle {self.native()}")

    def native(self) -> dict[int, int]:
        positions = self.scene.log.group_positions(self.group, self.scene.topic)
        return {each.partition: each.position for each in positions}

    def _is_settled(self) -> bool:
        native = self.native()
        with consumer(self.scene.kafka, self.group) as asking:
            places = [TopicPartition(self.scene.topic, number) for number in range(3)]
            known = asking.committed(places, timeout=DEADLINE_SECONDS)
        in_kafka = {place.partition: place.offset for place in known if place.offset >= 0}
        return native == in_kafka


def native_consumer(turns: Turns, portion: int) -> list[Place]:
    """Fetches from the log, and acks there."""
    log, topic, group = turns.scene.log, turns.scene.topic, turns.group
    positions = turns.native()
    done: list[Place] = []
    for partition in range(3):
        at = positions.get(partition, 0)
        upto = min(at + portion - len(done), log.offsets(topic)[partition].next_offset)
        while at < upto:
            fetched = log.fetch(topic, partition, at)
            done += [(partition, record.offset) for record in fetched if record.offset < upto]
            at = min(upto, fetched.next_offset)
        if upto > positions.get(partition, 0):
            log.ack(group, topic, upto - 1, partition=partition)
    return done


def _subscriber(protocol: str) -> Callable[[Turns, int], list[Place]]:
    def consume(turns: Turns, portion: int) -> list[Place]:
        """A member of the group, by librdkafka."""
        done: list[Place] = []
        with consumer(turns.scene.kafka, turns.group, **PROTOCOLS[protocol]) as member:
            member.subscribe([turns.scene.topic])
            give_up = time.monotonic() + DEADLINE_SECONDS
            while len(done) < portion and time.monotonic() < give_up:
                done += _done(member, portion - len(done))
        return done

    return consume


def _done(member: Consumer, portion: int) -> list[Place]:
    done: list[Place] = []
    for message in member.consume(min(portion, 500), 0.5):
        assert message.error() is None, message.error()
        done.append((message.partition() or 0, message.offset() or 0))
    if done:
        upto = {partition: offset + 1 for partition, offset in done}
        member.commit(offsets=_wanted(member, upto), asynchronous=False)
    return done


def _wanted(member: Consumer, upto: dict[int, int]) -> list[TopicPartition]:
    (topic,) = {place.topic for place in member.assignment()}
    return [TopicPartition(topic, partition, offset) for partition, offset in upto.items()]


def _console(turns: Turns, portion: int) -> list[Place]:
    scene = turns.scene
    return console_consumer(scene.kafka.bootstrap_servers, scene.topic, turns.group, portion)


def _verifiable(turns: Turns, portion: int) -> list[Place]:
    scene = turns.scene
    return verifiable_consumer(scene.kafka.bootstrap_servers, scene.topic, turns.group, portion)


CONSUMERS: dict[str, Callable[[Turns, int], list[Place]]] = {
    "native": native_consumer,
    "classic": _subscriber("classic"),
    "consumer": _subscriber("consumer"),
    "console": _console,
    "verifiable": _verifiable,
}
