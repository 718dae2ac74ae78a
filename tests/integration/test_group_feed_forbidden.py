"""A cluster that has no groups yet, and then lets nobody watch them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from duolog.bridge.kafka.feed.polling import GroupPolling
from duolog.bridge.kafka.feed.reading import FEED_TOPIC, GroupFeed
from duolog.bridge.kafka.feed.records import MembersChanged
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.errors import KafkaFeedForbidden
from duolog.log.embedded import open_log
from tests.support.group_pair import Pair
from tests.support.groups import told, until
from tests.support.kafka import DEADLINE_SECONDS, Kafka, OwnKafka

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody",
}


def test_where_the_feed_may_not_be_read_groups_are_asked_for(
    own_kafka: OwnKafka, tmp_path: Path
) -> None:
    broker = own_kafka(properties=GUARDED, java_options=["-XX:TieredStopAtLevel=1"])
    broker.start()
    kafka = Kafka(broker.bootstrap_servers, "own")
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    with (
        closing(GroupFeed(settings)) as feed,  # of a cluster that never had a group
        open_log(tmp_path / "log") as log,
        closing(Pair(log, kafka)) as pair,
        pair.settling() as running,
    ):
        pair.topic.fill(100)
        pair.ack(9)
        pair.comes_to(10, 10)
        assert running.status().watching
        told(feed, lambda hint: hint.change.group == pair.group)
        rule(kafka, ResourceType.TOPIC, FEED_TOPIC)
        with pytest.raises(KafkaFeedForbidden, match="Allow it"):
            until(lambda: feed.poll(0.1) is None, "be refused")
        with pytest.raises(KafkaFeedForbidden), closing(GroupFeed(settings)):
            pass
        until(lambda: not running.status().watching, "be refused")
        polling = GroupPolling(pair.coordinator.groups, every_seconds=0.05)
        told(polling, lambda hint: hint.change == MembersChanged(pair.group))
        pair.commit(30)
        pair.comes_to(30, 30)
        pair.ack(49)
        pair.comes_to(50, 50)
        pair.reset_in_kafka(5)
        pair.comes_to(5, 5)
        refused_ones_keep_nobody_back(pair, running)


def refused_ones_keep_nobody_back(pair: Pair, running: GroupSettling) -> None:
    """Groups that this user may not look at, or not write."""
    unseen, unwritten = pair.kafka.new_group(), pair.kafka.new_group()
    rule(pair.kafka, ResourceType.GROUP, unseen, AclOperation.DESCRIBE)
    # A resource with rules is closed but for what they allow.
    rule(
        pair.kafka,
        ResourceType.GROUP,
        unwritten,
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    for group in (unseen, unwritten):
        pair.log.ack(group, "orders", 7)
    until(lambda: running.status().refused.keys() >= {unseen, unwritten}, "be refused")
    assert all("user needs" in said for said in running.status().refused.values())
    position = pair.log.group_position(unwritten, "orders", 0)
    assert position is not None
    assert position.kafka is not None
    assert position.kafka.writing is None
    pair.ack(79)
    pair.comes_to(80, 80)


def rule(
    kafka: Kafka,
    kind: ResourceType,
    name: str,
    operation: AclOperation = AclOperation.READ,
    permission: AclPermissionType = AclPermissionType.DENY,
) -> None:
    """Make a rule for everybody."""
    wanted = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        operation,
        permission,
    )
    admin = kafka.admin()
    for made in admin.create_acls([wanted]).values():
        made.result(DEADLINE_SECONDS)
