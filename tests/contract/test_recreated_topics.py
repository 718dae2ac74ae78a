"""A topic that was dropped and made again is another one, on every form of a log."""

from __future__ import annotations

import pytest

from duolog.errors import SequenceContentMismatch, TopicRecreated, UnknownTopic
from duolog.log.access import LogAccess
from duolog.log.model import Record, TopicSettings

RECORDS = [Record(b"%d" % number) for number in range(3)]


@pytest.fixture
def old_id(log: LogAccess) -> int:
    """The id of a topic `orders`; now there is another one of this name."""
    old = log.create_topic("orders", TopicSettings(alias="o"))
    log.publish("orders", RECORDS, writer="w", sequence=0)
    log.ack("billing", "orders", 2)
    log.drop_topic("orders")
    log.create_topic("orders", TopicSettings(alias="o"))
    return old.id


def test_its_name_leads_elsewhere_for_who_names_its_id(log: LogAccess, old_id: int) -> None:
    now = log.topic("orders")
    for name in ("orders", "o"):
        assert log.topic(name, topic_id=now.id) == now
        with pytest.raises(TopicRecreated, match=f"has id {now.id} now, not {old_id}") as told:
            log.topic(name, topic_id=old_id)
        assert (told.value.topic, told.value.topic_id) == ("orders", now.id)


def test_its_id_leads_nowhere(log: LogAccess, old_id: int) -> None:
    for call in (
        lambda: log.topic(old_id),
        lambda: log.fetch(old_id, 0, 0),
        lambda: log.ack("billing", old_id, 0),
        lambda: log.begin_group("billing", old_id, {0: 0}),
        lambda: log.publish(old_id, RECORDS),
    ):
        with pytest.raises(UnknownTopic):
            call()
    assert log.group_positions() == ()


def test_a_publisher_that_sends_again_is_not_told_that_its_records_are_there(
    log: LogAccess, old_id: int
) -> None:
    with pytest.raises(SequenceContentMismatch, match="another topic"):
        log.publish("orders", RECORDS, writer="w", sequence=0)
    assert log.offsets("orders")[0].next_offset == 0
    placed = log.publish("orders", RECORDS, writer="w", sequence=3)
    assert [each.offset for each in placed] == [0, 1, 2]
    assert log.topic("orders").id != old_id
