"""A call that is refused leaves nothing, whoever calls at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from duolog.errors import AckBeyondHead, SequenceContentMismatch, UnknownRoute, UnknownTopic
from duolog.log.access import LogAccess
from duolog.log.model import Op, Record, Route, TopicSettings
from tests.contract.conftest import Form


def values(log: LogAccess, topic: str) -> list[bytes | None]:
    return [record.value for record in log.fetch(topic, 0, log.offsets(topic)[0].start)]


def test_a_call_with_one_wrong_sequence_writes_none_of_its_records(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    log.publish("orders", Record(b"first"), writer="w", sequence=1)
    for _ in range(30):
        with pytest.raises(SequenceContentMismatch):
            log.publish("orders", [Record(b"a"), Record(b"other")], writer="w", sequence=0)
    for opened in form.now_and_restarted(log):
        assert values(opened, "orders") == [b"first"]
    log = form.restart()
    log.publish("orders", [Record(b"a"), Record(b"first")], writer="w", sequence=0)
    assert values(log, "orders") == [b"first", b"a"]


def test_refused_calls_take_nothing_from_those_beside_them(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"first"), writer="w", sequence=1)

    def publish(number: int) -> bytes | None:
        value = b"%d" % number
        if number % 2:
            log.publish("orders", Record(value))
            return value
        with pytest.raises(SequenceContentMismatch):
            log.publish("orders", [Record(value), Record(b"other")], writer="w", sequence=0)
        return None

    with ThreadPoolExecutor(16) as pool:
        written = {value for value in pool.map(publish, range(300)) if value is not None}
    assert log.offsets("orders")[0].next_offset == len(written) + 1
    assert set(values(log, "orders")) == written | {b"first"}


def test_a_refused_change_is_not_remembered_as_its_keys_latest(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(dedup_window_seconds=60))
    change = Record(b"A", b"k", op=Op.UPDATE, table="shop.orders")
    log.publish("orders", Record(b"first"), writer="w", sequence=1)
    with pytest.raises(SequenceContentMismatch):
        log.publish("orders", [change, Record(b"other")], writer="w", sequence=0)
    assert log.publish("orders", change)[0].offset == 1
    assert values(log, "orders") == [b"first", b"A"]
    assert log.stats().duplicates_dropped == 0


def test_rows_go_to_all_topics_or_none_while_one_of_them_is_dropped(log: LogAccess) -> None:
    log.create_topic("kept")
    log.add_route("kept", Route("shop.orders", frozenset({Op.INSERT})))
    written = 0
    with ThreadPoolExecutor(2) as pool:
        for number in range(40):
            log.create_topic("dropped")
            log.add_route("dropped", Route("shop.orders", frozenset({Op.INSERT})))
            dropping = pool.submit(log.drop_topic, "dropped")
            try:
                placed = log.publish_rows("shop.orders", Op.INSERT, [{"id": number}], ["id"])
            except (UnknownTopic, UnknownRoute):
                pass
            else:
                assert any(each.topic == "kept" for each in placed)
                written += 1
            dropping.result()
            assert log.offsets("kept")[0].next_offset == written


def test_a_refused_acknowledgement_leaves_the_ones_beside_it(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", [Record(b"%d" % n) for n in range(10)])

    def ack(number: int) -> None:
        if number % 3:
            log.ack(f"g{number}", "orders", 4)
        else:
            with pytest.raises(AckBeyondHead):
                log.ack(f"g{number}", "orders", 10)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ack, range(60)))
    assert {each.group for each in log.group_positions()} == {
        f"g{number}" for number in range(60) if number % 3
    }
