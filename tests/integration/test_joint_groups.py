"""Native and Kafka consumers in one group, with a real broker, host and worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from duolog.bridge.kafka.members.left_behind import send_away
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.client import ConsumedRecord, Consumer
from duolog.errors import GroupHasMembers
from duolog.reach import reach
from tests.drills.joint.consumers import until
from tests.drills.joint.group import JAVA, PARTITIONS, PROTOCOLS, Joint, JointHost, joint_host
from tests.support.kafka import DEADLINE_SECONDS, Kafka


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[JointHost]:
    with joint_host(tmp_path_factory.mktemp("joint") / "log", kafka) as started:
        yield started


@pytest.fixture
def joint(kafka: Kafka, host: JointHost) -> Iterator[Joint]:
    with ExitStack() as ends:
        made = Joint(kafka, host, ends)
        made.begin()
        yield made


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_both_kinds_share_a_group_and_hand_over_without_a_record_twice(
    joint: Joint, protocol: str
) -> None:
    other = joint.in_kafka("one", PROTOCOLS[protocol])
    joint.until_all_are_done("kafka")
    native = joint.native("a")
    joint.until_all_are_done("kafka", "native")
    other.close()
    joint.until_all_are_done("native")
    joint.until_only("native-a")
    joint.in_kafka("two", PROTOCOLS[protocol])
    joint.until_all_are_done("kafka-two", "native")
    native.close()
    joint.until_only("kafka-two")
    until(lambda: len(joint.ledger.counts()) == joint.published, "all records are processed")
    assert set(joint.ledger.counts().values()) == {1}
    until(lambda: joint.positions() == joint.committed(), "both sides are at one place")


def test_an_ack_moves_both_sides_at_once(joint: Joint) -> None:
    with Consumer(
        joint.topic, url=joint.host.url, group=joint.group, start="earliest", auto_ack=False
    ) as consumer:
        joint.publish(8)
        found: list[ConsumedRecord] = []

        def has_all() -> bool:
            found.extend(consumer.poll(1))
            return len(found) == 12

        until(has_all, "it reads")
        consumer.ack(*found)
        assert joint.committed() == joint.positions() == dict.fromkeys(range(PARTITIONS), 3)


def test_kafka_knows_where_a_group_began_before_any_of_its_members_acknowledges(
    joint: Joint,
) -> None:
    asked: dict[str, Any] = {"url": joint.host.url, "group": joint.group, "auto_ack": False}
    with Consumer(joint.topic, start="latest", **asked) as first:
        until(
            lambda: first.poll(0.1) == [] and len(first.assigned(joint.topic)) == PARTITIONS,
            "it has all",
        )
        until(lambda: first.poll(0.1) == [] and joint.committed() == joint.positions(), "is told")
        assert joint.committed() == dict.fromkeys(range(PARTITIONS), 1)
        joint.publish(PARTITIONS)
    with Consumer(joint.topic, start="latest", **asked) as second:
        found: list[ConsumedRecord] = []

        def has_all() -> bool:
            found.extend(second.poll(1))
            return len(found) == PARTITIONS

        until(has_all, "it reads what came between the two")
        assert {each.offset for each in found} == {1}


def test_an_ack_that_comes_late_moves_neither_side_back(joint: Joint) -> None:
    member = joint.plain("late")
    joint.publish(8 * PARTITIONS)

    def has_read_all() -> bool:
        member.go_on(session_timeout_seconds=60)
        return len(joint.ledger.by("plain")) == joint.published

    joint.until(has_read_all, "it reads all")
    for upto in (5, 3, 5, 0):
        assert {member.ack(partition, upto) for partition in range(PARTITIONS)} == {""}
        at = dict.fromkeys(range(PARTITIONS), 6)
        assert joint.committed() == joint.positions() == at
    # Not by the one that comes after it either, whose proxy has committed nothing yet.
    other = joint.plain("other")

    def has_some() -> bool:
        member.go_on()
        other.go_on(session_timeout_seconds=60)
        return bool(other.assigned)

    joint.until(has_some, "another member gets some")
    assert {other.ack(partition, 1) for partition in other.assigned} == {""}
    assert joint.committed() == joint.positions() == at


def test_a_worker_that_is_killed_costs_no_record(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["kip-848"])
    joint.native("a")
    joint.until_all_are_done("kafka", "native")
    assert joint.host.kill_worker()
    joint.publish(40)
    joint.until_all_are_done("kafka", "native")


@pytest.mark.parametrize("protocol", ["range", "kip-848"])
def test_members_that_a_killed_worker_left_behind_are_sent_away(
    kafka: Kafka, protocol: str
) -> None:
    from confluent_kafka import Consumer as KafkaConsumer

    topic, group, admin = kafka.new_topic(), kafka.new_group(), kafka.admin()

    def members() -> dict[str, str]:
        asked = admin.describe_consumer_groups([group])
        found = asked[group].result(DEADLINE_SECONDS).members
        return {each.client_id: each.member_id for each in found or ()}

    left, others = (
        KafkaConsumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": name,
                **PROTOCOLS[protocol],
            }
        )
        for name in (f"duolog-{group}-1", "somebody")
    )
    try:
        for consumer in (left, others):
            consumer.subscribe([topic])
        until(lambda: [c.poll(0.05) for c in (left, others)] != [] and len(members()) == 2, "both")
        before = members()
        settings = KafkaSettings.of(kafka.bootstrap_servers)
        assert asyncio.run(send_away(settings, f"duolog-{group}")) == 1
        after = members()
        assert before[f"duolog-{group}-1"] not in after.values()
        assert after["somebody"] == before["somebody"]
        assert asyncio.run(send_away(settings, "duolog-nobody")) == 0
    finally:
        left.close()
        others.close()


def test_a_host_that_is_killed_costs_no_record(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["range"])
    joint.native("a")
    joint.until_all_are_done("kafka", "native")
    joint.host.kill()
    joint.host.start()
    joint.publish(40)
    joint.until_all_are_done("kafka", "native")


def test_members_of_both_kinds_are_shown(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["range"])
    joint.native("a")
    joint.until_all_are_done("kafka", "native")
    with reach(joint.host.folder) as log:
        found = {each.kind.value: each for each in log.group_members(joint.group)}
        assert set(found) == {"native", "kafka"}
        assert found["kafka"].client_id == "one"
        shared = [*found["native"].partitions, *found["kafka"].partitions]
        assert sorted(shared) == list(range(PARTITIONS))
        places = f'consumergroup="{joint.group}",topic="{joint.topic}"'
        for kind in ("native", "kafka"):
            line = f'duolog_consumergroup_members{{{places},kind="{kind}"}} 1'
            joint.until(partial(joint.host.tells, line), f"metrics have {line}")
        with pytest.raises(GroupHasMembers, match="has members in Kafka"):
            log.seek(joint.group, joint.topic, 0, 0)
        with pytest.raises(GroupHasMembers, match="has members in Kafka"):
            log.delete_group(joint.group)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("java-range", marks=pytest.mark.full),
        "java-sticky",
        pytest.param("java-kip-848", marks=pytest.mark.full),
    ],
)
def test_a_java_consumer_shares_too(joint: Joint, how: str) -> None:
    other = joint.in_java("one", *JAVA[how])
    joint.until_all_are_done("java")
    joint.native("a")
    joint.until_all_are_done("java", "native")
    other.close()
    joint.until_only("native-a")
    until(lambda: len(joint.ledger.counts()) == joint.published, "all records are processed")
    assert set(joint.ledger.counts().values()) == {1}


def test_a_static_member_shares_too(joint: Joint) -> None:
    joint.in_kafka("one", {**PROTOCOLS["range"], "group.instance.id": f"{joint.group}-one"})
    joint.native("a")
    joint.until_all_are_done("kafka", "native")


def test_a_consumer_that_subscribes_by_a_pattern_shares_too(joint: Joint) -> None:
    topic, joint.topic = joint.topic, f"^{joint.topic}$"
    joint.in_kafka("one", PROTOCOLS["range"])
    joint.topic = topic
    joint.native("a")
    joint.until_all_are_done("kafka", "native")


def test_partitions_that_the_topic_gets_are_shared(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["cooperative-sticky"])
    joint.native("a")
    joint.until_all_are_done("kafka", "native")
    with reach(joint.host.folder) as log:
        log.set_partitions(joint.topic, PARTITIONS + 2)
    joint.partitions = PARTITIONS + 2
    joint.until_all_are_done("kafka", "native")
    until(lambda: len(joint.ledger.owners()) == PARTITIONS + 2, "the new ones are read")


def test_a_native_member_is_served_what_is_in_kafka_and_no_more(joint: Joint) -> None:
    """A proxy's offset beyond the mirror cannot be: nobody has read what lies there."""
    with (
        reach(joint.host.folder) as log,
        Consumer(joint.topic, url=joint.host.url, group=joint.group, start="earliest") as consumer,
    ):
        for _ in range(40):
            joint.publish(PARTITIONS)
            for record in consumer.poll(0.05):
                mirror = log.mirror(joint.topic, record.partition)
                assert mirror is not None
                end = joint.kafka_end(record.partition)
                assert record.offset < end


def test_a_member_that_vanishes_leaves_its_partitions_to_kafka(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["range"])
    vanishing = joint.native("a", session_timeout_seconds=1)
    joint.until_all_are_done("kafka", "native")
    vanishing.vanish()
    joint.until_only("kafka-one")
    until(lambda: len(joint.ledger.counts()) == joint.published, "all records are processed")


@pytest.mark.full
def test_fifty_native_members_share_with_one_in_kafka(joint: Joint) -> None:
    joint.in_kafka("one", PROTOCOLS["kip-848"])
    for number in range(50):
        joint.native(f"n{number}")
    joint.publish(100)
    until(lambda: len(joint.ledger.counts()) == joint.published, "all records are processed")
    with reach(joint.host.folder) as log:
        until(lambda: len(log.group_members(joint.group)) >= 50, "all are members")
