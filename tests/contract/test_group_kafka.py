"""What is remembered of Kafka's side of a group, on every form of a log."""

from __future__ import annotations

import pytest

from duolog.errors import (
    AckBeyondHead,
    InvalidRequest,
    PositionChanged,
    UnknownGroup,
    UnknownPartition,
)
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.mirror_model import MirrorTarget
from duolog.log.model import GroupPosition, Record, Side, TopicSettings
from tests.contract.conftest import Form

SEEN = KafkaSeen(
    foreign=7, ours=9, floor=5, one_way=True, conflicts=2, writing=KafkaWrite("n1", 9, 7, 41, 5)
)


@pytest.fixture
def filled(form: Form) -> LogAccess:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    log.publish("orders", [Record(b"%d" % n, partition=n % 2) for n in range(20)])
    return log


def test_it_lies_beside_the_position_and_survives(form: Form, filled: LogAccess) -> None:
    at = form.clock.at_ms
    filled.ack("billing", "orders", 4, 0)
    kept = filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=1)
    assert kept == GroupPosition("billing", "orders", 0, 5, 1, at, Side.NATIVE, SEEN)
    for log in form.now_and_restarted(filled):
        assert log.group_position("billing", "orders", 0) == kept
        assert log.group_positions("billing") == (kept,)


def test_a_move_that_follows_from_it_is_one_write_with_it(form: Form, filled: LogAccess) -> None:
    filled.ack("billing", "orders", 4, 0)
    form.clock.advance(seconds=1)
    moved = filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=1, position=2)
    assert moved == GroupPosition("billing", "orders", 0, 2, 2, form.clock.at_ms, Side.KAFKA, SEEN)
    first = filled.remember_kafka("other", "orders", 1, SEEN, expected_version=0, position=10)
    assert (first.position, first.version) == (10, 1)


def test_acks_and_resets_keep_it(form: Form, filled: LogAccess) -> None:
    filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=0, position=3)
    assert filled.ack("billing", "orders", 7, 0).kafka == SEEN
    assert filled.seek("billing", "orders", 0, 1).kafka == SEEN
    filled.delete_group("billing")
    assert filled.ack("billing", "orders", 7, 0).kafka is None


def test_not_when_somebody_moved_the_group_since(filled: LogAccess) -> None:
    before = filled.ack("billing", "orders", 4, 0)
    after = filled.ack("billing", "orders", 5, 0)
    for position in (None, 2):
        with pytest.raises(PositionChanged):
            filled.remember_kafka(
                "billing", "orders", 0, SEEN, expected_version=before.version, position=position
            )
    assert filled.group_position("billing", "orders", 0) == after


def test_what_cannot_be_remembered(filled: LogAccess) -> None:
    with pytest.raises(UnknownGroup, match="has no position"):
        filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=0)
    with pytest.raises(AckBeyondHead):
        filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=0, position=11)
    with pytest.raises(InvalidRequest):
        filled.remember_kafka("billing", "orders", 0, SEEN, expected_version=0, position=-1)
    assert filled.group_positions() == ()


def test_a_group_is_settled_where_nothing_is_mirrored(filled: LogAccess) -> None:
    filled.ack("billing", "orders", 4, 0)
    assert filled.settle_group("billing", "orders", timeout_seconds=1).is_settled
    filled.begin_mirror("orders", 0, MirrorTarget("cluster", "orders", "id", 1, 0, 0, 0))
    assert filled.settle_group("billing", "orders", 1, timeout_seconds=1).is_settled
    for partition in (0, None):
        settled = filled.settle_group("billing", "orders", partition, timeout_seconds=0)
        assert "no host mirrors the log" in settled.pending
    with pytest.raises(UnknownPartition):
        filled.settle_group("billing", "orders", 2)
    assert filled.delete_group("billing", "orders", side=Side.KAFKA) == 1
