"""Sequences come in any order; those of a writer that asks for it follow one another."""

from __future__ import annotations

import pytest

from duolog.errors import (
    InvalidRequest,
    SequenceContentMismatch,
    SequenceGap,
    SequenceOutOfOrder,
    SequenceTooOld,
    WriterFault,
)
from duolog.log.access import LogAccess
from duolog.log.model import Op, Record, Route
from duolog.log.published import REMEMBERED_SEQUENCES
from tests.contract.conftest import Form


def publish(log: LogAccess, sequence: int, *, in_order: bool = True, count: int = 1) -> list[int]:
    records = [Record(b"%d" % each) for each in range(sequence, sequence + count)]
    placed = log.publish("orders", records, writer="w", sequence=sequence, in_order=in_order)
    return [each.offset for each in placed]


def test_sequences_come_in_any_order_unless_they_are_told_not_to(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    for sequence in (0, 9, 5):
        publish(log, sequence, in_order=False)
    for opened in form.now_and_restarted(log):
        with pytest.raises(SequenceOutOfOrder, match="10"):
            publish(opened, 4)
        with pytest.raises(SequenceGap, match="10"):
            publish(opened, 11)
        assert [publish(opened, sequence) for sequence in (0, 9, 5)] == [[0], [1], [2]]
        assert opened.last_sequence("w") == 9
    log = form.restart()
    assert publish(log, 10) == [3]


@pytest.mark.parametrize(
    ("sequence", "count", "outcome"),
    [
        (4, 1, [4]),
        (4, 3, [4, 5, 6]),
        (3, 1, [3]),
        (0, 4, [0, 1, 2, 3]),
        (2, 4, [2, 3, 4, 5]),
        (5, 1, SequenceGap),
        (9, 3, SequenceGap),
    ],
)
def test_what_may_follow_the_first_four(
    log: LogAccess, sequence: int, count: int, outcome: list[int] | type[WriterFault]
) -> None:
    log.create_topic("orders")
    publish(log, 0, count=4)
    if isinstance(outcome, list):
        assert publish(log, sequence, count=count) == outcome
    else:
        with pytest.raises(outcome):
            publish(log, sequence, count=count)
        assert log.last_sequence("w") == 3


def test_a_call_that_is_not_in_order_writes_nothing(log: LogAccess) -> None:
    log.create_topic("orders")
    for sequence in (0, 2):
        publish(log, sequence, in_order=False)
    with pytest.raises(SequenceOutOfOrder):
        publish(log, 0, count=5)
    with pytest.raises(SequenceContentMismatch):
        log.publish("orders", Record(b"other"), writer="w", sequence=2, in_order=True)
    assert log.offsets("orders")[0].next_offset == 2


def test_a_writer_that_is_not_known_may_begin_anywhere(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    assert log.last_sequence("w") is None
    assert publish(log, 500) == [0]
    form.clock.advance(seconds=8 * 24 * 3600)
    form.do_duties(log)
    form.clock.advance(seconds=3600)
    form.do_duties(log)
    assert publish(log, 900) == [1]


def test_what_is_too_far_back_is_not_said_to_be_out_of_order(log: LogAccess) -> None:
    log.create_topic("orders")
    publish(log, 3, in_order=False)
    publish(log, 4 * REMEMBERED_SEQUENCES, in_order=False)
    with pytest.raises(SequenceTooOld):
        publish(log, 4)


def test_rows_are_published_in_order_too(log: LogAccess) -> None:
    log.create_topic("orders")
    log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))

    def rows(sequence: int) -> int:
        placed = log.publish_rows(
            "shop.orders",
            Op.INSERT,
            [{"id": sequence}],
            ["id"],
            ts_ms=5,
            writer="w",
            sequence=sequence,
            in_order=True,
        )
        return placed[0].offset

    assert [rows(0), rows(1), rows(0)] == [0, 1, 0]
    with pytest.raises(SequenceGap):
        rows(3)


def test_order_is_of_a_writers_sequences(log: LogAccess) -> None:
    log.create_topic("orders")
    with pytest.raises(InvalidRequest, match="in_order"):
        log.publish("orders", Record(b"v"), in_order=True)
    with pytest.raises(InvalidRequest, match="in_order"):
        log.publish("orders", Record(b"v"), writer="w", sequence=0, in_order="yes")  # type: ignore[arg-type]
