"""Which native members have a proxy in Kafka, with a worker that only notes what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from duolog.bridge.members.coordinator import Call, Coordinator
from duolog.bridge.members.gathering import Gathering, Seats
from duolog.bridge.members.kafka_seats import KafkaSeating
from duolog.bridge.members.model import Rules
from duolog.errors import TooManyMembers
from duolog.log.model import Topic, TopicSettings
from tests.support.clock import ManualClock


class Worker:
    """Knows which proxies there are. A test tells what Kafka gives them."""

    def __init__(self) -> None:
        self.proxies: list[tuple[str, str]] = []  # topic, member
        self.most_at_once = 0
        self.is_joint = True
        self._listeners: dict[str, Callable[[Mapping[str, Any]], object]] = {}

    def subscribe(self, event: str, hear: Callable[[Mapping[str, Any]], object]) -> Any:
        self._listeners[event] = hear
        return lambda: None

    async def asked(self, what: str, asked: Mapping[str, Any], *_: Any) -> Any:
        await asyncio.sleep(0)
        who = asked["topic"], asked["member"]
        if what == "member_join":
            if not self.is_joint:
                return {"joint": False}
            self.proxies.append(who)
            self.most_at_once = max(self.most_at_once, len(self.proxies))
            return {"joint": True}
        if what == "member_leave" and who in self.proxies:
            self.proxies.remove(who)
        return {}

    def tell(self, event: str, topic: Topic, member: str, **said: Any) -> None:
        told = {"group": "g", "topic": topic.name, "member": member, **said}
        self._listeners[event](told)


class _Mirrored:
    """A log of which every topic is mirrored."""

    def mirror(self, *_: Any) -> bool:
        return True


class Host:
    def __init__(self, **limits: int) -> None:
        self.worker = Worker()
        rules = Rules(**limits)
        self.members = Coordinator(ManualClock(), "host", rules, self._find)
        self._seating = KafkaSeating(
            cast("Any", self.worker),
            cast("Any", _Mirrored()),
            self.members.changed,
            lambda _: None,
            rules.max_proxies,
        )

    def _find(self, gathering: Gathering) -> Seats | None:
        return self._seating.find(gathering)

    def join(self, topic: Topic, member: str) -> frozenset[int]:
        call = Call("somebody", member, session_seconds=60)
        with self.members.seat("g", topic, call) as seat:
            return seat.place().assigned

    def leave(self, topic: Topic, member: str) -> None:
        assert self.members.leave("g", topic, member)

    def shown(self, topic: Topic) -> Gathering:
        (found,) = (each for each in self.members.shown() if each.topic.id == topic.id)
        return found


def topic_of(partitions: int, number: int = 1) -> Topic:
    return Topic(number, f"t{number}", TopicSettings(partitions=partitions), (), 0, 0)


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(run())


async def settle() -> None:
    """Let all that was begun come to its end."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_members_beyond_the_partitions_have_no_proxy() -> None:
    async def story() -> None:
        host, topic = Host(), topic_of(1)
        for number in range(300):
            assert host.join(topic, f"m{number}") == frozenset()
        await settle()
        assert host.worker.proxies == [("t1", "m0")]
        assert host.worker.most_at_once == 1
        assert host.shown(topic).state.full_members == 300
        host.worker.tell("member_assigned", topic, "m0", partitions=[0])
        await settle()
        assert host.join(topic, "m0") == {0}
        assert host.join(topic, "m299") == frozenset()

    play(story)


def test_the_longest_waiting_member_gets_the_place_of_one_that_goes() -> None:
    async def story() -> None:
        host, topic = Host(), topic_of(2)
        for member in "abcd":
            host.join(topic, member)
        await settle()
        assert host.worker.proxies == [("t1", "a"), ("t1", "b")]
        host.leave(topic, "c")  # had none, so nothing changes in Kafka
        await settle()
        assert host.worker.proxies == [("t1", "a"), ("t1", "b")]
        host.leave(topic, "a")
        await settle()
        assert sorted(host.worker.proxies) == [("t1", "b"), ("t1", "d")]
        host.worker.tell("member_assigned", topic, "d", partitions=[0])
        await settle()
        assert host.join(topic, "d") == {0}
        for member in "bd":
            host.leave(topic, member)
        await settle()
        assert host.worker.proxies == []

    play(story)


def test_a_topic_that_grows_takes_more_proxies() -> None:
    async def story() -> None:
        host = Host()
        for member in "abc":
            host.join(topic_of(1), member)
        await settle()
        assert len(host.worker.proxies) == 1
        host.join(topic_of(2), "c")
        await settle()
        assert host.worker.proxies == [("t1", "a"), ("t1", "b")]

    play(story)


def test_a_worker_that_begins_anew_is_told_of_those_that_have_proxies() -> None:
    async def story() -> None:
        host, topic = Host(), topic_of(1)
        for member in "abc":
            host.join(topic, member)
        await settle()
        host.worker.proxies.clear()
        host.worker.tell("members_began", topic, "")
        await settle()
        assert host.worker.proxies == [("t1", "a")]

    play(story)


def test_one_that_kafka_refuses_makes_room_for_the_next() -> None:
    async def story() -> None:
        host, topic = Host(), topic_of(1)
        for member in "ab":
            host.join(topic, member)
        await settle()
        host.worker.tell("member_refused", topic, "a", error="no")
        await settle()
        assert host.worker.proxies == [("t1", "b")]

    play(story)


def test_a_group_that_kafka_does_not_assign_has_no_proxies() -> None:
    async def story() -> None:
        host, topic = Host(max_proxies=1), topic_of(2)
        host.worker.is_joint = False
        for member in "ab":
            host.join(topic, member)
        await settle()
        assert host.join(topic, "a") == {0}
        assert host.join(topic, "b") == {1}
        host.worker.is_joint = True
        host.join(topic_of(1, 2), "c")  # what it took is free again
        await settle()
        assert host.worker.proxies == [("t2", "c")]

    play(story)


def test_beyond_all_proxies_a_group_without_one_is_refused_and_others_wait() -> None:
    async def story() -> None:
        host, one, other = Host(max_proxies=2), topic_of(3, 1), topic_of(3, 2)
        for member in "abc":
            host.join(one, member)
        await settle()
        assert host.worker.proxies == [("t1", "a"), ("t1", "b")]
        with pytest.raises(TooManyMembers, match=r"2 proxies.*max_proxies"):
            host.join(other, "d")
        assert [each.topic.id for each in host.members.shown()] == [1]  # nothing was done
        for member in "ab":
            host.leave(one, member)
        await settle()
        host.join(other, "d")
        host.join(other, "e")
        await settle()
        assert sorted(host.worker.proxies) == [("t1", "c"), ("t2", "d")]
        host.leave(one, "c")
        await settle()
        assert sorted(host.worker.proxies) == [("t2", "d"), ("t2", "e")]

    play(story)


def test_a_groups_own_members_go_before_those_of_others() -> None:
    async def story() -> None:
        host, one, other = Host(max_proxies=2), topic_of(2, 1), topic_of(2, 2)
        for topic, member in ((one, "a"), (other, "b"), (one, "c"), (other, "d")):
            host.join(topic, member)
        await settle()
        assert sorted(host.worker.proxies) == [("t1", "a"), ("t2", "b")]
        host.leave(other, "b")
        await settle()
        assert sorted(host.worker.proxies) == [("t1", "a"), ("t2", "d")]

    play(story)
