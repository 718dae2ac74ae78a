"""A batch that cannot be decoded: what readers are told, and the way out, on each form of a log."""

from __future__ import annotations

import pytest

from duolog.errors import (
    DamagedBatch,
    DamagedLog,
    InvalidRequest,
    NothingDamaged,
    OffsetOutOfRange,
)
from duolog.log.access import LogAccess
from duolog.log.damage_model import LeftOut
from duolog.log.fetched import Fetched
from duolog.log.model import (
    AtOffset,
    AtTimestamp,
    Op,
    PartitionOffsets,
    Record,
    Retention,
    TopicSettings,
)
from tests.contract.conftest import Form
from tests.support.poison import Poison, poison
from tests.support.records import STREAM, part_of

EACH = pytest.mark.parametrize("kind", list(Poison))


@pytest.fixture
def filled(form: Form) -> LogAccess:
    """30 records in batches of 10, 1 s apart; nothing of it is in memory."""
    return _filled(form, TopicSettings(retention=Retention(max_bytes=1 << 40)))


def _filled(form: Form, settings: TopicSettings) -> LogAccess:
    log = form.open()
    topic = log.create_topic("orders", settings)
    for epoch in range(3):
        numbers = range(epoch * 10, epoch * 10 + 10)
        values = [b"%02d" % n for n in numbers]
        times = [1000 * n for n in numbers]
        log.append(STREAM, epoch, [part_of(topic, {0: values}, ts_ms=times)])
    return form.restart()


def _offsets(fetched: Fetched) -> list[int]:
    return [record.offset for record in fetched]


def _decoded(log: LogAccess, at: int) -> None:
    """Read encoded batches to the end, and decode them."""
    while at < 30:
        chunk = log.fetch_encoded("orders", 0, at)
        list(chunk.decode())
        at = chunk.next_offset


@EACH
def test_readers_get_one_error_with_the_offsets(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    for offset in (10, 14):
        with pytest.raises(DamagedBatch) as raised:
            filled.fetch("orders", 0, offset)
        error = raised.value
        assert (error.topic, error.partition) == ("orders", 0)
        assert (error.first_offset, error.next_offset) == (10, 20)
        assert "duolog topic skip orders --partition 0 --to 20" in str(error)
    assert isinstance(error, DamagedLog)


@EACH
def test_what_is_before_the_damage_is_read_first(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    before = filled.fetch("orders", 0, 3)
    assert (_offsets(before), before.next_offset) == (list(range(3, 10)), 10)
    assert _offsets(filled.fetch("orders", 0, 20)) == list(range(20, 30))


@EACH
def test_readers_go_on_behind_it_when_they_say_so(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    fetched = filled.fetch("orders", 0, 5, skip_damaged=True)
    assert _offsets(fetched) == [*range(5, 10), *range(20, 30)]
    (left_out,) = fetched.left_out
    assert (left_out.first_offset, left_out.next_offset, left_out.is_damaged) == (10, 20, True)
    assert left_out.reason
    inside = filled.fetch("orders", 0, 14, skip_damaged=True)
    assert [(each.first_offset, each.next_offset) for each in inside.left_out] == [(14, 20)]


@EACH
def test_encoded_batches_are_decoded_past_the_damage(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    with pytest.raises(DamagedBatch) as raised:
        _decoded(filled, 0)
    assert (raised.value.first_offset, raised.value.next_offset) == (10, 20)
    found: list[int] = []
    passed_over: list[LeftOut] = []
    at = 0
    while at < 30:
        chunk = filled.fetch_encoded("orders", 0, at, skip_damaged=True)
        for batch in chunk.decode(skip_damaged=True, passed_over=passed_over.append):
            found += range(batch.base_offset, batch.next_offset)
        at = chunk.next_offset
    assert found == [*range(10), *range(20, 30)]
    assert [(e.first_offset, e.next_offset, e.is_damaged) for e in passed_over] == [(10, 20, True)]


@EACH
def test_the_owner_remembers_what_a_reader_has_met(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    assert filled.damage() == ()
    with pytest.raises(DamagedBatch):
        filled.fetch("orders", 0, 10)
    (met,) = filled.damage("orders")
    assert met.state == "damaged batch at offsets 10-19"
    assert (met.topic, met.partition, met.found_at_ms) == ("orders", 0, form.clock.now_ms())
    assert form.owner().damage() == (met,)


@EACH
def test_a_look_says_whether_a_batch_is_damaged(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    assert filled.look_for_damage("orders", 0, 9) is None
    found = filled.look_for_damage("orders", 0, 12)
    assert found is not None
    assert (found.first_offset, found.next_offset) == (10, 20)
    with pytest.raises(OffsetOutOfRange):
        filled.look_for_damage("orders", 0, 31)


@EACH
def test_a_skip_makes_a_hole_that_all_readers_pass_over(
    form: Form, filled: LogAccess, kind: Poison
) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    with pytest.raises(DamagedBatch):
        filled.fetch("orders", 0, 10)
    (hole,) = filled.skip_to("orders", 0, 20, by="ann")
    assert (hole.topic, hole.partition, hole.first_offset, hole.next_offset) == (
        "orders", 0, 10, 20,
    )  # fmt: skip
    assert (hole.by, hole.at_ms) == ("ann", form.clock.now_ms())
    for log in form.now_and_restarted(filled):
        assert log.damage() == ()
        assert log.holes() == log.holes("orders") == (hole,)
        fetched = log.fetch("orders", 0, 0)
        assert _offsets(fetched) == [*range(10), *range(20, 30)]
        assert [(e.first_offset, e.next_offset, e.is_damaged) for e in fetched.left_out] == [
            (10, 20, False)
        ]
        assert _offsets(log.fetch("orders", 0, 13, max_records=1)) == [20]
        chunk = log.fetch_encoded("orders", 0, 13)
        assert [(b.base_offset, b.next_offset) for b in chunk.decode()] == [(20, 30)]
        (head,) = log.offsets("orders")
        assert (head.start, head.next_offset) == (0, 30)
        assert log.resolve("orders", 0, AtOffset(14)) == 14
        filled = log
    filled.publish("orders", Record(b"more"))
    assert _offsets(filled.fetch("orders", 0, 15)) == list(range(20, 31))


def test_a_hole_at_the_end_is_read_to_its_end(form: Form, filled: LogAccess) -> None:
    poison(form.owner(), "orders", 0, 20, Poison.WRONG_SUM)
    filled.skip_to("orders", 0, 30)
    fetched = filled.fetch("orders", 0, 20)
    assert (fetched.count, fetched.next_offset, fetched.has_more) == (0, 30, False)


def test_only_damaged_batches_are_skipped(form: Form, filled: LogAccess) -> None:
    with pytest.raises(NothingDamaged, match="before offset 20 can be read"):
        filled.skip_to("orders", 0, 20)
    poison(form.owner(), "orders", 0, 0, Poison.WRONG_SUM)
    with pytest.raises(NothingDamaged):
        filled.skip_to("orders", 0, 20)  # nobody has met the one at 0 yet
    with pytest.raises(DamagedBatch):
        filled.fetch("orders", 0, 0)
    (hole,) = filled.skip_to("orders", 0, 20)
    assert (hole.first_offset, hole.next_offset) == (0, 10)
    assert _offsets(filled.fetch("orders", 0, 0)) == list(range(10, 30))


def test_neighbours_are_skipped_together(form: Form, filled: LogAccess) -> None:
    for offset in (10, 20):
        poison(form.owner(), "orders", 0, offset, Poison.WRONG_INSIDES)
    holes = filled.skip_to("orders", 0, 30)
    assert [(hole.first_offset, hole.next_offset) for hole in holes] == [(10, 20), (20, 30)]
    assert filled.skip_to("orders", 0, 30) == holes  # the same again


@pytest.mark.parametrize("to", [0, 15, 31, -1, True, "20"])
def test_a_skip_to_anywhere_else_is_refused(form: Form, filled: LogAccess, to: int) -> None:
    poison(form.owner(), "orders", 0, 10, Poison.WRONG_SUM)
    with pytest.raises(InvalidRequest):
        filled.skip_to("orders", 0, to)
    assert filled.holes() == ()


@pytest.mark.parametrize("skipped", [False, True])
def test_times_resolve_to_where_nothing_is_missed(
    form: Form, filled: LogAccess, skipped: bool
) -> None:
    poison(form.owner(), "orders", 0, 10, Poison.WRONG_SUM)
    if skipped:
        filled.skip_to("orders", 0, 20)
    assert filled.resolve("orders", 0, AtTimestamp(9000)) == 9
    assert filled.resolve("orders", 0, AtTimestamp(15_000)) == (20 if skipped else 10)
    assert filled.resolve("orders", 0, AtTimestamp(25_000)) == 25
    assert filled.resolve("orders", 0, AtTimestamp(30_000)) == 30


@EACH
def test_retention_and_clear_take_holes_along(form: Form, filled: LogAccess, kind: Poison) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    filled.skip_to("orders", 0, 20)
    (full,) = filled.offsets("orders")
    filled.set_retention("orders", Retention(max_bytes=full.bytes - 1))
    assert filled.enforce_retention("orders").total.messages_deleted == 10
    assert filled.offsets("orders")[0].start == 10
    assert len(filled.holes()) == 1
    filled.set_retention("orders", Retention(max_bytes=1))
    filled.enforce_retention("orders")
    assert filled.offsets("orders") == (PartitionOffsets("orders", 0, 30, 30, 0, 29_000),)
    assert filled.holes() == ()


def test_damage_that_is_cleared_is_forgotten(form: Form, filled: LogAccess) -> None:
    poison(form.owner(), "orders", 0, 10, Poison.WRONG_SUM)
    with pytest.raises(DamagedBatch):
        filled.fetch("orders", 0, 10)
    filled.clear_topic("orders")
    assert filled.damage() == ()
    filled.publish("orders", Record(b"new"))
    assert _offsets(filled.fetch("orders", 0, 30)) == [30]


def test_a_group_acknowledges_in_and_behind_a_hole(form: Form, filled: LogAccess) -> None:
    poison(form.owner(), "orders", 0, 10, Poison.WRONG_SUM)
    filled.ack("g", "orders", 13)
    filled.skip_to("orders", 0, 20)
    position = filled.group_position("g", "orders", 0)
    assert position is not None
    assert position.position == 14
    assert _offsets(filled.fetch("orders", 0, position.position)) == list(range(20, 30))
    assert filled.ack("g", "orders", 16).position == 17
    assert filled.ack("g", "orders", 22).position == 23


@pytest.mark.parametrize("skipped", [False, True])
def test_changes_are_published_beside_damage(form: Form, skipped: bool) -> None:
    log = form.open()
    log.create_topic("changes", TopicSettings(dedup_window_seconds=3600))
    form.clock.advance(seconds=3600)
    now = form.clock.now_ms()
    for number in range(3):
        log.publish("changes", Record(b"v", b"k%d" % number, ts_ms=now, op=Op.INSERT, table="t"))
    log = form.restart()
    poison(form.owner(), "changes", 0, 1, Poison.WRONG_INSIDES)
    if skipped:
        log.skip_to("changes", 0, 2)
    change = Record(b"v", b"k2", ts_ms=now, op=Op.INSERT, table="t")
    assert log.publish("changes", change)[0].offset == 2  # still known as a repeat
    gone = Record(b"v", b"k1", ts_ms=now, op=Op.INSERT, table="t")
    assert log.publish("changes", gone)[0].offset == 3  # what it repeats cannot be known


def test_a_log_with_a_hole_is_whole_and_one_with_damage_is_not(
    form: Form, filled: LogAccess
) -> None:
    owner = form.owner()
    assert owner.check_whole().records == 30
    poison(owner, "orders", 0, 20, Poison.WRONG_INSIDES)  # as an older Duolog has let it in
    (unreadable,) = owner.check_whole().unreadable
    assert "topic 'orders' partition 0 at offset 20" in unreadable
    assert [each.first_offset for each in filled.damage()] == [20]
    filled.skip_to("orders", 0, 30)
    poison(owner, "orders", 0, 10, Poison.WRONG_SUM)
    with pytest.raises(DamagedBatch):
        owner.check_whole()
    assert [each.first_offset for each in filled.damage()] == [10]
    filled.skip_to("orders", 0, 20)
    whole = owner.check_whole()
    assert (whole.records, whole.unreadable) == (30, ())


@EACH
def test_times_pass_over_damage(form: Form, filled: LogAccess, kind: Poison) -> None:
    poison(form.owner(), "orders", 0, 10, kind)
    places = [("orders", 0, offset) for offset in (9, 10, 14, 19, 20)]
    assert filled.record_times(places) == (9000, 20_000, 20_000, 20_000, 20_000)
    log = form.restart()
    assert log.record_times(places) == (9000, 20_000, 20_000, 20_000, 20_000)
    log.skip_to("orders", 0, 20)
    assert log.record_times(places) == (9000, 20_000, 20_000, 20_000, 20_000)
