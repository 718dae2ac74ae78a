"""What a consumer hands out, acknowledges and hands out again: rules, and random histories."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from duolog.client.deliveries import Deliveries
from duolog.client.model import Ack, Page, Piece, Place, Source
from duolog.errors import InvalidRequest, InvalidSetting, OffsetOutOfRange, TopicRecreated

ORDERS = Source("orders")
ZERO, ONE = Place("orders", 0), Place("orders", 1)


@dataclass(frozen=True)
class Records:
    first_offset: int
    next_offset: int
    values: tuple[()] | None = ()


def page(**partitions: tuple[int, int]) -> Page:
    """p0=(first, next) and so on."""
    found = {int(name[1:]): offsets for name, offsets in partitions.items()}
    return Page(
        "orders",
        {partition: end for partition, (_, end) in found.items()},
        [(number, Records(start, end)) for number, (start, end) in found.items() if start < end],
    )


def fed(*, has_group: bool = True, **partitions: tuple[int, int]) -> Deliveries:
    core = Deliveries([ORDERS], "Latest", has_group=has_group)
    assert core.accept(core.question(ORDERS), page(**partitions))
    return core


def offsets(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [
        (piece.place.partition, at) for piece in pieces for at in range(piece.start, piece.stop)
    ]


def test_a_group_is_asked_from_where_it_is_and_later_from_where_all_is_done() -> None:
    core = Deliveries([ORDERS], "Latest", has_group=True)
    first = core.question(ORDERS)
    assert (first.as_group, first.start) == (True, "Latest")
    core.accept(first, page(p0=(3, 5), p1=(7, 7)))
    assert core.hungry() == []
    assert offsets(core.take(10, 0.0)) == [(0, 3), (0, 4)]
    open_one = core.question(ORDERS)
    assert (open_one.as_group, open_one.start) == (False, {"Offsets": {"0": 5, "1": 7}})
    core.finish_all()
    assert not core.question(ORDERS).as_group
    core.acknowledged(Ack(ZERO, 5), 4)
    settled = core.question(ORDERS)
    assert (settled.as_group, settled.start) == (True, {"Offsets": {"0": 5, "1": 7}})


def test_without_a_group_only_offsets_are_asked_for() -> None:
    core = fed(has_group=False, p0=(0, 2))
    core.take(2, 0.0)
    core.finish_all()
    assert core.acks() == []
    assert core.question(ORDERS).as_group is False


def test_only_what_is_done_without_a_gap_is_acknowledged() -> None:
    core = fed(p0=(0, 5), p1=(0, 2))
    assert len(offsets(core.take(5, 0.0))) == 5
    assert core.acks() == []
    core.finish_one(ZERO, 1)
    assert core.acks() == []
    core.finish_one(ZERO, 0)
    assert core.acks() == [Ack(ZERO, 2)]
    core.finish(ZERO, 3, 5)
    assert [ack.upto_offset for ack in core.acks()] == [1]
    core.finish_one(ZERO, 2)
    assert core.acks() == [Ack(ZERO, 5)]


def test_what_was_not_handed_out_cannot_be_acknowledged() -> None:
    core = fed(p0=(0, 5))
    core.take(2, 0.0)
    with pytest.raises(InvalidRequest, match="Offset 2 of topic 'orders' partition 0 was not"):
        core.finish_one(ZERO, 2)
    with pytest.raises(InvalidRequest, match="was not handed out"):
        core.finish(ONE, 0, 1)
    core.finish_all()
    assert core.acks() == [Ack(ZERO, 2)]


def test_a_refused_record_holds_its_partition_and_no_other() -> None:
    core = fed(p0=(0, 3), p1=(0, 3))
    (first,) = core.take(1, 0.0)
    core.come_again(Piece(ZERO, first.batch, 0, 1, attempt=2), due=10.0)
    assert core.next_due() == 10.0
    assert offsets(core.take(10, 5.0)) == [(1, 0), (1, 1), (1, 2)]
    assert core.take(10, 9.9) == []
    again = core.take(10, 10.0)
    assert (offsets(again), again[0].attempt) == ([(0, 0)], 2)
    assert offsets(core.take(10, 10.0)) == [(0, 1), (0, 2)]


def test_refused_records_come_in_order_also_when_a_later_one_is_due_earlier() -> None:
    core = fed(p0=(0, 3))
    (piece,) = core.take(3, 0.0)
    for offset, due in ((1, 9.0), (2, 3.0)):
        core.come_again(Piece(ZERO, piece.batch, offset, offset + 1), due)
    assert core.take(10, 5.0) == []
    assert offsets(core.take(10, 9.0)) == [(0, 1), (0, 2)]


def test_asking_for_more_finishes_what_came_before_but_for_what_was_refused() -> None:
    core = fed(p0=(0, 4))
    (piece,) = core.take(3, 0.0)
    core.come_again(Piece(ZERO, piece.batch, 1, 2), due=1.0)
    core.finish_in_hand()
    assert core.acks() == [Ack(ZERO, 1)]
    assert offsets(core.take(9, 1.0)) == [(0, 1)]
    core.finish_in_hand()
    assert core.acks() == [Ack(ZERO, 3)]


def test_what_a_loop_was_left_with_comes_first_again() -> None:
    core = fed(p0=(0, 3))
    core.take(1, 0.0)
    core.give_back_in_hand()
    assert offsets(core.take(1, 0.0)) == [(0, 0)]
    core.finish_in_hand()
    core.give_back_in_hand()
    assert offsets(core.take(1, 0.0)) == [(0, 1)]


def test_what_others_of_the_group_acknowledged_is_passed_over() -> None:
    core = fed(p0=(0, 10))
    core.take(2, 0.0)
    core.finish_all()
    core.acknowledged(Ack(ZERO, 2), 6)
    assert offsets(core.take(99, 0.0)) == [(0, 7), (0, 8), (0, 9)]
    core.finish_all()
    assert core.acks() == [Ack(ZERO, 10)]


@pytest.mark.parametrize(("first", "end"), [(8, 12), (2, 4), (0, 0)])
def test_a_group_that_was_moved_is_followed_while_all_is_done(first: int, end: int) -> None:
    core = fed(p0=(0, 5))
    core.take(5, 0.0)
    core.finish_all()
    core.acknowledged(Ack(ZERO, 5), 4)
    core.accept(core.question(ORDERS), page(p0=(first, end)))
    assert offsets(core.take(99, 0.0)) == [(0, at) for at in range(first, end)]
    assert core.position(ZERO) == end


def test_what_comes_twice_by_offsets_is_handed_out_once() -> None:
    core = fed(p0=(0, 5))
    core.take(5, 0.0)
    core.accept(core.question(ORDERS), page(p0=(3, 8)))
    assert offsets(core.take(99, 0.0)) == [(0, 5), (0, 6), (0, 7)]


def test_retention_leaves_nothing_to_wait_for() -> None:
    core = fed(p0=(0, 2))
    core.take(2, 0.0)
    question = core.question(ORDERS)
    gone = OffsetOutOfRange(topic="orders", partition=0, offset=2, earliest=7, latest=9)
    assert core.go_on_after(question, gone)
    assert not core.go_on_after(question, gone)
    assert core.question(ORDERS).start == {"Offsets": {"0": 7}}
    core.accept(core.question(ORDERS), page(p0=(7, 9)))
    core.take(9, 0.0)
    core.finish_all()
    assert core.acks() == [Ack(ZERO, 9)]


def test_a_seek_back_is_acknowledged_once_it_is_beyond_what_the_host_knows() -> None:
    core = fed(p0=(0, 5))
    core.take(5, 0.0)
    core.finish_all()
    core.acknowledged(Ack(ZERO, 5), 4)
    core.seek(ZERO, 2)
    question = core.question(ORDERS)
    assert (question.as_group, question.start) == (False, {"Offsets": {"0": 2}})
    core.accept(question, page(p0=(2, 7)))
    core.take(3, 0.0)
    core.finish_all()
    assert core.acks() == []
    core.take(3, 0.0)
    core.finish_all()
    assert core.acks() == [Ack(ZERO, 7)]


def test_a_seek_drops_what_was_ready_and_answers_from_before() -> None:
    core = fed(p0=(0, 5), p1=(0, 1))
    (piece, *_) = core.take(1, 0.0)
    core.come_again(Piece(ZERO, piece.batch, 0, 1), due=0.0)
    old = core.question(ORDERS)
    core.seek(ZERO, 3)
    assert not core.accept(old, page(p0=(0, 5)))
    assert offsets(core.take(99, 1.0)) == [(1, 0)]
    with pytest.raises(InvalidRequest, match="before a seek"):
        core.finish_one(ZERO, 4)


def test_a_topic_by_two_names_is_refused_and_a_strange_one_is_named() -> None:
    both = [Source("orders"), Source("o")]
    core = Deliveries(both, "Latest", has_group=True)
    core.accept(core.question(both[0]), page(p0=(0, 0)))
    with pytest.raises(InvalidSetting, match="'o' and 'orders' are one topic, 'orders'"):
        core.accept(core.question(both[1]), page(p0=(0, 0)))
    some = Deliveries([Source("orders", 1)], "Latest", has_group=True)
    with pytest.raises(InvalidRequest, match=r"topic 'orders' partition 0. It reads 'orders' par"):
        some.place_of("orders", 0)
    assert some.place_of("orders", 1) == ONE


def test_an_alias_and_the_name_mean_the_same_place() -> None:
    core = Deliveries([Source("o")], "Latest", has_group=True)
    core.accept(core.question(Source("o")), page(p0=(0, 0)))
    assert core.place_of("orders", 0) == core.place_of("o", 0) == Place("o", 0)


def of_topic(topic_id: int, **partitions: tuple[int, int]) -> Page:
    return replace(page(**partitions), topic_id=topic_id)


def test_a_topic_that_was_made_again_is_left_once_and_read_from_its_first_record() -> None:
    sources = [Source("orders", 0), Source("orders", 1)]
    core = Deliveries(sources, "Latest", has_group=True)
    core.accept(core.question(sources[0]), of_topic(3, p0=(5, 7)))
    core.accept(core.question(sources[1]), of_topic(3, p1=(5, 7)))
    (old, *_) = core.take(9, 0.0)
    core.finish_in_hand()
    assert {ack.topic_id for ack in core.acks()} == {3}
    late = core.question(sources[1])
    assert late.topic_id == 3
    core.restart("orders", 3)
    assert core.acks() == []
    assert core.is_empty
    again = core.question(sources[0])
    assert (again.topic_id, again.start, again.as_group) == (None, "Earliest", True)
    with pytest.raises(TopicRecreated):
        core.check_topic(old)
    assert not core.accept(late, of_topic(3, p1=(7, 8)))
    assert core.accept(again, of_topic(4, p0=(0, 2)))
    core.restart("orders", 3)  # the other source is told later
    other = core.question(sources[1])
    assert (other.topic_id, other.start) == (4, "Earliest")
    (new,) = core.take(9, 0.0)
    core.check_topic(new)
    with pytest.raises(TopicRecreated):
        core.check_topic(old)
    core.finish_in_hand()
    assert core.acks() == [Ack(ZERO, 2, topic_id=4)]


def test_an_answer_of_another_topic_of_the_name_is_not_taken() -> None:
    core = Deliveries([ORDERS], "Latest", has_group=True)
    question = core.question(ORDERS)
    assert core.accept(question, of_topic(3, p0=(0, 2)))
    assert not core.accept(question, of_topic(4, p0=(2, 4)))
    assert offsets(core.take(9, 0.0)) == [(0, 0), (0, 1)]


def test_a_host_that_says_no_id_is_asked_without_one() -> None:
    core = fed(p0=(0, 2))
    assert core.question(ORDERS).topic_id is None
    (piece,) = core.take(9, 0.0)
    core.check_topic(piece)
