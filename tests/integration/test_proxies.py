"""What proxies tell the host, with a real broker: Kafka may change its mind while they look."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaException

from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.members import proxies
from duolog.bridge.kafka.members.described import assigned_to, members_at_rest
from duolog.bridge.kafka.members.protocol import NEWER, Protocol
from duolog.bridge.kafka.members.proxies import Proxies
from duolog.bridge.kafka.members.proxy import Event, Proxy, Refused
from duolog.bridge.kafka.positions.decisions import Agreed
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.bridge.kafka.positions.settler import Outcome
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import IncompatibleGroup, KafkaUnreachable, PartitionRevoked
from duolog.log.mirror_model import Mirror, MirrorTarget
from tests.support.kafka import DEADLINE_SECONDS, Kafka

PARTITIONS = 2
Said = tuple[str, dict[str, Any]]


class Host:
    """Hears what proxies tell; how a group is, is found out when the test says so."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self.said: list[Said] = []
        self.looks: list[Future[tuple[Outcome, ...]]] = []
        self.mirrors = [Mirror(topic, each, 1, _target(topic)) for each in range(PARTITIONS)]
        self.is_being_found_out = False
        self.own = OwnCommits()
        self.proxies = Proxies(
            KafkaSettings.of(kafka.bootstrap_servers),
            GroupFilter.of(),
            lambda: self.mirrors,
            lambda _: self.is_being_found_out,
            self._look,
            lambda event, **said: self.said.append((event, said)),
            self.own,
        )
        self.task = asyncio.get_running_loop().create_task(self.proxies.run())

    def told(self, event: str) -> list[dict[str, Any]]:
        return [said for each, said in self.said if each == event]

    def _look(self, group: str) -> Future[tuple[Outcome, ...]]:
        self.looks.append(Future())
        return self.looks[-1]

    async def close(self) -> None:
        await self.proxies.close()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def _target(topic: str) -> MirrorTarget:
    return MirrorTarget("cluster", topic, "id", 1, 0, 0, 0)


def at_rest(group: str, topic: str) -> tuple[Outcome, ...]:
    return tuple(Outcome(group, topic, each, Agreed()) for each in range(PARTITIONS))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


@contextmanager
def kafka_consumer(kafka: Kafka, topic: str, group: str, assignor: str = "") -> Iterator[None]:
    """By the newer protocol, or with an assignor."""
    from confluent_kafka import Consumer

    how = (
        {"partition.assignment.strategy": assignor} if assignor else {"group.protocol": "consumer"}
    )
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, **how})
    consumer.subscribe([topic])
    stopping = threading.Event()

    def poll() -> None:
        while not stopping.is_set():
            consumer.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(DEADLINE_SECONDS)
        consumer.close()


def test_nobody_is_given_what_kafka_has_taken_back_meanwhile(kafka: Kafka) -> None:
    topic, group = kafka.new_topic(PARTITIONS), kafka.new_group()
    names = {"topic": topic, "member": "m"}

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            assert await host.proxies.join({**names, "group": group}) == {"joint": True}
            await until(lambda: bool(host.looks))  # it has both, and asks where the group is
            with kafka_consumer(kafka, topic, group):
                await until(lambda: bool(host.told("member_revoking")))
                (revoking,) = host.told("member_revoking")
                host.looks[0].set_result(at_rest(group, topic))
                await until(lambda: bool(host.told("member_assigned")))
                (assigned,) = host.told("member_assigned")
                assert len(revoking["partitions"]) == 1
                assert not set(assigned["partitions"]) & set(revoking["partitions"])
                await host.proxies.let_go({**names, "revocation": revoking["revocation"]})
                proxy = host.proxies._proxies["m", topic]
                await until(lambda: len(proxy._owned) == 1)
            # The other has gone: what comes back is looked at anew.
            looked = len(host.looks)
            await until(lambda: len(host.looks) > looked)
            host.looks[-1].set_result(at_rest(group, topic))
            await until(lambda: len(host.told("member_assigned")) == 2)
            assert host.told("member_assigned")[1]["partitions"] == revoking["partitions"]
        finally:
            await host.close()

    asyncio.run(play())


def test_what_is_let_go_is_what_was_asked_for_and_not_what_is_next(kafka: Kafka) -> None:
    topic, group = kafka.new_topic(PARTITIONS), kafka.new_group()
    names = {"topic": topic, "member": "m"}

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            await host.proxies.join({**names, "group": group})
            await until(lambda: bool(host.looks))
            proxy = host.proxies._proxies["m", topic]
            with kafka_consumer(kafka, topic, group):
                await until(lambda: bool(host.told("member_revoking")))
                (revoking,) = host.told("member_revoking")
                await host.proxies.let_go({**names, "revocation": revoking["revocation"] - 1})
                assert not proxy._has_let_go
                await host.proxies.let_go({**names, "revocation": revoking["revocation"]})
                await until(lambda: len(proxy._owned) == 1)
        finally:
            await host.close()

    asyncio.run(play())


def test_a_classic_group_that_shares_out_is_joined_by_its_own_assignor(kafka: Kafka) -> None:
    """Its assignor is not told meanwhile; a member of the newer protocol would change the group."""
    from confluent_kafka import Consumer

    topic, group = kafka.new_topic(PARTITIONS), kafka.new_group()
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "partition.assignment.strategy": "range",
    }
    first, second = Consumer(settings), Consumer(settings)
    admin = kafka.admin()

    def is_in(state: ConsumerGroupState, *polled: Consumer) -> bool:
        for each in polled:
            each.poll(0)
        try:
            asked = admin.describe_consumer_groups([group])
            return bool(asked[group].result(DEADLINE_SECONDS).state is state)
        except KafkaException:  # its coordinator is being found
            return False

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            first.subscribe([topic])
            await until(lambda: is_in(ConsumerGroupState.STABLE, first))
            second.subscribe([topic])  # the first does not poll, and so is waited for
            await until(lambda: is_in(ConsumerGroupState.PREPARING_REBALANCING, second))
            asked = {"topic": topic, "member": "m", "group": group}
            joining = asyncio.create_task(host.proxies.join(asked))
            await asyncio.sleep(0.5)
            assert not joining.done()
            await until(lambda: is_in(ConsumerGroupState.STABLE, first, second))
            assert await joining == {"joint": True}
            assert host.proxies._proxies["m", topic].protocol == Protocol("range")
        finally:
            await host.close()

    try:
        asyncio.run(play())
    finally:
        first.close()
        second.close()


def test_a_group_that_cannot_be_joined_is_told(kafka: Kafka) -> None:
    """With librdkafka's cooperative-sticky members keep data that no other protocol takes over."""
    topic, group = kafka.new_topic(PARTITIONS), kafka.new_group()
    told: SimpleQueue[Event] = SimpleQueue()
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    proxy = Proxy(settings, group, topic, NEWER, told.put)
    admin = kafka.admin()

    def is_shared_by(count: int) -> bool:
        shares = [list(assigned_to(m, {topic})) for m in members_at_rest(admin, group) or ()]
        return len(shares) == count and all(shares)

    with ExitStack() as members:
        for count in (1, 2):  # the first one joins again, with its data
            members.enter_context(kafka_consumer(kafka, topic, group, "cooperative-sticky"))
            asyncio.run(until(partial(is_shared_by, count)))
        proxy.start()
        try:
            refused = told.get(timeout=DEADLINE_SECONDS)
        finally:
            proxy.close()
        assert isinstance(refused, Refused)
        assert isinstance(refused.error, IncompatibleGroup)
        with pytest.raises(PartitionRevoked):
            proxy.commit(0, 1).result(DEADLINE_SECONDS)


def test_others_are_counted_when_their_change_is_over(kafka: Kafka) -> None:
    """One that waits for its partitions has none yet, and its having them is no news to a proxy."""
    topic, group = kafka.new_topic(PARTITIONS), kafka.new_group()
    names, counted = {"topic": topic, "member": "m"}, {"group": group, "topic": topic}

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            await host.proxies.join({**names, "group": group})
            await until(lambda: bool(host.looks))
            with kafka_consumer(kafka, topic, group):
                await until(lambda: bool(host.told("member_revoking")))
                (revoking,) = host.told("member_revoking")
                await asyncio.sleep(1.5 * proxies._COUNT_AFTER_SECONDS)
                await host.proxies.let_go({**names, "revocation": revoking["revocation"]})
                await until(lambda: {**counted, "others": 1} in host.told("members_counted"))
        finally:
            await host.close()

    asyncio.run(play())


def test_a_commit_that_was_overtaken_does_not_move_the_group_back(kafka: Kafka) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions

    topic, group, admin = kafka.new_topic(PARTITIONS), kafka.new_group(), kafka.admin()

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            await host.proxies.join({"topic": topic, "member": "m", "group": group})
            await until(lambda: bool(host.looks))
            proxy = host.proxies._proxies["m", topic]
            for offset in (5, 3):
                await asyncio.wrap_future(proxy.commit(0, offset))
        finally:
            await host.close()

    asyncio.run(play())
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(DEADLINE_SECONDS).topic_partitions
    assert [each.offset for each in found or () if each.offset >= 0] == [5]


def test_who_joins_while_the_mirror_is_being_found_out_asks_again(kafka: Kafka) -> None:
    """It would be left alone with partitions that members in Kafka have too."""
    topic = kafka.new_topic(PARTITIONS)
    asked = {"topic": topic, "member": "m", "group": kafka.new_group()}

    async def play() -> None:
        host = Host(kafka, topic)
        try:
            host.mirrors, known = [], host.mirrors
            host.is_being_found_out = True
            with pytest.raises(KafkaUnreachable, match="found out"):
                await host.proxies.join(asked)
            host.is_being_found_out = False
            assert await host.proxies.join(asked) == {"joint": False}
            host.mirrors = known
            assert await host.proxies.join(asked) == {"joint": True}
        finally:
            await host.close()

    asyncio.run(play())
