"""Consumer groups, on every form of a log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from duolog.errors import (
    AckBeyondHead,
    InvalidName,
    InvalidRequest,
    PositionChanged,
    TooManyStoredGroups,
    UnknownGroup,
    UnknownPartition,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.model import GroupPosition, Record, Side, TopicSettings
from tests.contract.conftest import Form


@pytest.fixture
def filled(form: Form) -> LogAccess:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    log.publish("orders", [Record(b"%d" % n, partition=n % 2) for n in range(20)])
    return log


def test_an_ack_is_inclusive_and_monotone(filled: LogAccess) -> None:
    assert filled.group_position("billing", "orders", 0) is None
    assert filled.ack("billing", "orders", 4, 0).position == 5
    assert filled.ack("billing", "orders", 4, 0).upto_offset == 4
    assert filled.ack("billing", "orders", 2, 0).position == 5
    assert filled.ack("billing", "orders", 9, 0).position == 10
    assert filled.group_position("billing", "orders", 1) is None


def test_who_moved_it_and_when_survives(form: Form, filled: LogAccess) -> None:
    at = form.clock.at_ms
    filled.ack("billing", "orders", 4, 0, side=Side.KAFKA)
    form.clock.advance(seconds=1)
    filled.ack("billing", "orders", 3, 0)
    expected = GroupPosition("billing", "orders", 0, 5, 1, at, Side.KAFKA)
    assert filled.group_position("billing", "orders", 0) == expected
    assert form.restart().group_position("billing", "orders", 0) == expected
    assert form.restart().ack("billing", "orders", 5, 0) == GroupPosition(
        "billing", "orders", 0, 6, 2, at + 1000, Side.NATIVE
    )


@pytest.mark.parametrize("upto", [10, 11, 10**18])
def test_an_ack_beyond_the_head_is_refused(filled: LogAccess, upto: int) -> None:
    with pytest.raises(AckBeyondHead):
        filled.ack("billing", "orders", upto, 0)
    with pytest.raises(AckBeyondHead):
        filled.seek("billing", "orders", 0, upto + 1)
    assert filled.group_positions() == ()


def test_acks_that_make_no_sense(filled: LogAccess) -> None:
    for upto in (-1, True, 1.5, None, "3"):
        with pytest.raises(InvalidRequest):
            filled.ack("billing", "orders", upto, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="2 partitions"):
        filled.ack("billing", "orders", 1)
    with pytest.raises(UnknownPartition):
        filled.ack("billing", "orders", 1, 2)
    with pytest.raises(UnknownTopic):
        filled.ack("billing", "nope", 1, 0)
    for group in ("", "a\nb", "x" * 256, None):
        with pytest.raises(InvalidName):
            filled.ack(group, "orders", 1, 0)  # type: ignore[arg-type]


def test_a_topic_with_one_partition_needs_none_named(log: LogAccess) -> None:
    log.create_topic("single")
    log.publish("single", Record(b"a"))
    assert log.ack("billing", "single", 0).partition == 0


def test_a_reset_goes_anywhere(filled: LogAccess) -> None:
    filled.ack("billing", "orders", 9, 0)
    for position in (0, 7, 10):
        moved = filled.seek("billing", "orders", 0, position)
        assert moved.position == position
    assert moved.version == 4
    with pytest.raises(InvalidRequest):
        filled.seek("billing", "orders", 0, -1)


def test_compare_and_set(filled: LogAccess) -> None:
    assert filled.seek("billing", "orders", 0, 3, expected_version=0).version == 1
    with pytest.raises(PositionChanged):
        filled.seek("billing", "orders", 0, 4, expected_version=0)
    assert filled.seek("billing", "orders", 0, 4, expected_version=1).version == 2


def test_of_many_that_compare_and_set_one_wins(filled: LogAccess) -> None:
    def move(to: int) -> bool:
        try:
            filled.seek("billing", "orders", 0, to, expected_version=0)
        except PositionChanged:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(move, range(10))) == 1


def test_acks_at_once_leave_the_highest(filled: LogAccess) -> None:
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda upto: filled.ack("billing", "orders", upto, 0), range(10)))
    position = filled.group_position("billing", "orders", 0)
    assert position is not None
    assert position.position == 10


def test_groups_are_apart_listed_and_deleted(form: Form, filled: LogAccess) -> None:
    filled.create_topic("other")
    filled.publish("other", Record(b"a"))
    filled.ack("billing", "orders", 4, 0)
    filled.ack("billing", "orders", 2, 1)
    filled.ack("billing", "other", 0)
    filled.ack("näme", "orders", 0, 0)

    def listed(**which: str) -> list[tuple[str, str, int, int]]:
        found = form.restart().group_positions(which.get("group"), which.get("topic"))
        return [(p.group, p.topic, p.partition, p.position) for p in found]

    assert listed(group="billing") == [
        ("billing", "orders", 0, 5), ("billing", "orders", 1, 3), ("billing", "other", 0, 1),
    ]  # fmt: skip
    assert listed(topic="other") == [("billing", "other", 0, 1)]
    log = form.restart()
    assert log.delete_group("billing", "other") == 1
    assert log.delete_group("billing") == 2
    with pytest.raises(UnknownGroup):
        log.delete_group("billing")
    assert listed() == [("näme", "orders", 0, 1)]


def test_where_a_group_begins_is_stored_once(form: Form, filled: LogAccess) -> None:
    filled.ack("billing", "orders", 4, 0)
    begun = filled.begin_group("billing", "orders", {0: 9, 1: 7})
    assert [(each.partition, each.position, each.is_first) for each in begun] == [
        (0, 5, False),
        (1, 7, True),
    ]
    assert (
        filled.begin_group(
            "billing",
            "orders",
            {
                0: 0,
                1: 3,
            },
        )
        == begun
    )
    for log in form.now_and_restarted(filled):
        position = log.group_position("billing", "orders", 1)
        assert position == begun[1]
        assert (position.last_acked_offset, position.version) == (None, 1)


def test_a_beginning_ends_with_the_first_acknowledgement_or_move(filled: LogAccess) -> None:
    filled.begin_group("billing", "orders", {0: 5, 1: 5})
    assert filled.ack("billing", "orders", 3, 0).position == 5
    acked = filled.ack("billing", "orders", 6, 0)
    assert (acked.position, acked.is_first, acked.last_acked_offset) == (7, False, 6)
    assert filled.seek("billing", "orders", 1, 5).is_first is False


def test_of_many_that_begin_at_once_one_wins_for_all(filled: LogAccess) -> None:
    def begin(at: int) -> tuple[int, int]:
        first, second = filled.begin_group("billing", "orders", {0: at, 1: at})
        return first.position, second.position

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(begin, range(10)))) == 1


def test_beginning_costs_one_sync_and_being_there_none(filled: LogAccess) -> None:
    before = filled.stats().syncs
    filled.begin_group("billing", "orders", {0: 1, 1: 2})
    assert filled.stats().syncs == before + 1
    filled.begin_group("billing", "orders", {0: 1, 1: 2})
    assert filled.stats().syncs == before + 1


def test_a_group_cannot_begin_where_nothing_can_be(filled: LogAccess) -> None:
    with pytest.raises(AckBeyondHead):
        filled.begin_group("billing", "orders", {0: 0, 1: 11})
    for position in (-1, True, 1.5, None, "3"):
        with pytest.raises(InvalidRequest):
            filled.begin_group("billing", "orders", {0: position})  # type: ignore[dict-item]
    with pytest.raises(UnknownPartition):
        filled.begin_group("billing", "orders", {2: 0})
    with pytest.raises(UnknownTopic):
        filled.begin_group("billing", "nope", {0: 0})
    with pytest.raises(InvalidName):
        filled.begin_group("", "orders", {0: 0})
    assert filled.group_positions() == ()


def test_groups_that_are_known_begin_with_the_first_records_of_new_partitions(
    form: Form, filled: LogAccess
) -> None:
    filled.begin_group("begun", "orders", {0: 10})
    filled.ack("acked", "orders", 4, 1)
    filled.create_topic("other")
    filled.begin_group("elsewhere", "other", {0: 0})
    filled.set_partitions("orders", 4)
    filled.publish("orders", Record(b"new", partition=3))
    for log in form.now_and_restarted(filled):
        positions = {
            (each.group, each.partition): (each.position, each.is_first)
            for each in log.group_positions(reference="orders")
        }
        assert positions == {
            ("begun", 0): (10, True),
            ("begun", 2): (0, True),
            ("begun", 3): (0, True),
            ("acked", 1): (5, False),
            ("acked", 2): (0, True),
            ("acked", 3): (0, True),
        }


def test_a_log_takes_so_many_groups_and_a_new_one_when_another_has_gone(form: Form) -> None:
    form.configure(max_stored_groups=2)
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    log.publish("orders", [Record(b"v", partition=n % 2) for n in range(4)])
    log.ack("one", "orders", 0, 0)
    log.begin_group("two", "orders", {0: 1})
    for begin in (
        lambda: log.ack("three", "orders", 0, 0),
        lambda: log.begin_group("three", "orders", {0: 0, 1: 0}),
        lambda: log.seek("three", "orders", 0, 0),
    ):
        with pytest.raises(TooManyStoredGroups, match=r"2 groups.*max_stored_groups.*group delete"):
            begin()
    log.ack("one", "orders", 1, 1)  # those that are known go on, also elsewhere
    log.begin_group("two", "orders", {0: 0, 1: 1})
    log.seek("from-kafka", "orders", 0, 1, side=Side.KAFKA)
    assert {each.group for each in log.group_positions()} == {"one", "two", "from-kafka"}
    log.delete_group("from-kafka")
    log.delete_group("one")
    log.ack("three", "orders", 0, 0)
