"""A caller with a condition reads each record that meets it once, in order, and no other one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from duolog.bridge import visible_reads
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token, condition_of, read_tokens
from duolog.bridge.visible_reads import EmptyStretches, VisibleReads, VisibleTopics
from duolog.bridge.visible_rows import VisibleRows
from duolog.errors import DamagedBatch, InvalidFilter, InvalidSetting
from duolog.log.access import LogAccess
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Record, Topic
from tests.support.poison import Poison, poison

MINE = json.dumps({"customer": 7, "text": "x" * 50}).encode()
OTHERS = json.dumps({"customer": 8}).encode()


def no_reader() -> Any:
    raise AssertionError("there is no Avro here")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log") as log:
        yield log


def filled(log: EmbeddedLog, chance: random.Random, count: int) -> tuple[Topic, list[int]]:
    """A topic with batches of all sizes, and the offsets of the caller's records."""
    topic = log.create_topic("orders")
    likely = chance.choice((0.01, 0.3, 0.9))
    mine = [offset for offset in range(count) if chance.random() < likely]
    values = [OTHERS] * count
    for offset in mine:
        values[offset] = MINE
    at = 0
    while at < count:
        size = chance.choice((1, 7, 100))
        log.publish("orders", [Record(value) for value in values[at : at + size]])
        at += size
    return topic, mine


def reads_of(log: EmbeddedLog, topic: Topic) -> VisibleReads:
    visible = VisibleTopics(cast("LogAccess", log), no_reader)
    return visible.reads(topic, condition_of("customer = 7"))


def test_objects_in_a_conditions_field_make_no_columns_of_their_fields(log: EmbeddedLog) -> None:
    """With other fields in each record, a column of all fields would fill the memory."""
    topic = log.create_topic("orders")
    wide = [{"customer": {f"k{n}_{each}": 1 for each in range(20)}} for n in range(300)]
    nested = [{"customer": {"id": 7, f"k{n}": [{f"l{n}": 1}]}} for n in range(300)]
    values = [json.dumps(each).encode() for each in (*wide, *nested)]
    log.publish("orders", [Record(value) for value in [*values, MINE]])
    visible = VisibleTopics(cast("LogAccess", log), no_reader)
    for condition, expected in (
        ("customer = 7", 1),
        ("customer.id = 7", 300),
        ("customer IS NOT NULL", 601),
    ):
        with pytest.MonkeyPatch.context() as patch:
            widths: list[int] = []
            judge = VisibleRows._judge

            def measured(
                self: VisibleRows,
                rows: Any,
                fields: dict[str, Any],
                *more: Any,
                widths: list[int] = widths,
                judge: Any = judge,
            ) -> None:
                widths.extend(each.type.num_fields for each in fields.values())
                judge(self, rows, fields, *more)

            patch.setattr(VisibleRows, "_judge", measured)
            reads = visible.reads(topic, condition_of(condition))
            at, given = 0, 0
            while at < len(values) + 1:
                page = reads.fetch(0, at)
                given += sum(batch.records.num_rows for batch in page.batches)
                at = page.next_offset
            assert given == expected, condition
            assert max(widths) <= 1
            assert len(widths) < 200  # it was not tried with each record by itself


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_reads, "_PAGE_RECORDS", 20)
    monkeypatch.setattr(visible_reads, "_LOOKED_AT_BYTES", 3000)


@pytest.mark.parametrize("seed", range(12))
def test_reads_give_every_own_record_once_and_in_order(log: EmbeddedLog, seed: int) -> None:
    chance = random.Random(seed)
    topic, mine = filled(log, chance, 400)
    for start in (0, chance.randrange(400)):
        reads = reads_of(log, topic)
        at, given = start, list[int]()
        upto = chance.choice((None, chance.randint(start, 400)))
        end = 400 if upto is None else upto
        while at < end:
            page = reads.fetch(
                0, at, max_records=chance.choice((1, 5, 1000)),
                max_bytes=chance.choice((1, 300, 1 << 20)), upto=upto,
            )  # fmt: skip
            for batch in page.batches:
                offsets = list(range(batch.base_offset, batch.next_offset))
                assert at <= offsets[0]
                assert offsets[-1] < page.next_offset
                assert set(batch.records.column("value").to_pylist()) == {MINE}
                given += offsets
            assert at < page.next_offset <= end
            at = page.next_offset
        assert given == [offset for offset in mine if start <= offset < end]


@pytest.mark.parametrize("seed", range(6))
def test_encoded_reads_have_holes_in_the_place_of_others_records(
    log: EmbeddedLog, seed: int
) -> None:
    chance = random.Random(seed)
    topic, mine = filled(log, chance, 300)
    reads = reads_of(log, topic)
    at, given = 0, list[int]()
    while at < 300:
        found = reads.fetch_encoded(0, at, max_records=50, max_bytes=1 << 20)
        for before, after in zip(found.batches, found.batches[1:], strict=False):
            assert before.next_offset == after.base_offset
        for batch in found.decode():
            given += range(batch.base_offset, batch.next_offset)
            assert set(batch.records.column("value").to_pylist()) == {MINE}
        assert found.next_offset > at
        at = found.next_offset
    assert given == mine


def test_what_was_found_empty_is_not_read_again(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = log.create_topic("orders")
    log.publish("orders", [Record(OTHERS)] * 1000)
    reads = reads_of(log, topic)
    looked = []
    fetch = EmbeddedLog.fetch

    def counted(self: EmbeddedLog, *where: Any, **limits: Any) -> Any:
        looked.append(where[2])
        return fetch(self, *where, **limits)

    monkeypatch.setattr(EmbeddedLog, "fetch", counted)
    for _ in range(200):  # a group that nobody acknowledges asks from its start each time
        page = reads.fetch(0, 0)
        if page.next_offset == 1000:
            break
    assert page.next_offset == 1000
    assert sorted(set(looked)) == looked
    log.publish("orders", Record(MINE))
    assert [batch.base_offset for batch in reads.fetch(0, 0).batches] == [1000]


def test_stretches_grow_where_they_meet_and_are_for_one_condition() -> None:
    empty = EmptyStretches()
    empty.note("a", 1, 0, 10, 20)
    assert [empty.behind("a", 1, 0, at) for at in (9, 10, 19, 20)] == [9, 20, 20, 20]
    empty.note("a", 1, 0, 20, 30)
    assert empty.behind("a", 1, 0, 10) == 30
    empty.note("a", 1, 0, 12, 15)
    assert empty.behind("a", 1, 0, 10) == 30
    empty.note("a", 1, 0, 50, 60)  # another stretch takes its place
    assert [empty.behind("a", 1, 0, at) for at in (10, 50)] == [10, 60]
    assert empty.behind("b", 1, 0, 50) == empty.behind("a", 2, 0, 50) == 50


def test_damage_is_told_and_holds_no_record(log: EmbeddedLog) -> None:
    topic = log.create_topic("orders")
    for value in (OTHERS, MINE, MINE):
        log.publish("orders", [Record(value)] * 200)
    poison(log, "orders", 0, 200, Poison.MISSING)
    reads = reads_of(log, topic)
    while (page := reads.fetch(0, 0, upto=200)).next_offset < 200:
        assert page.count == 0
    with pytest.raises(DamagedBatch):
        reads.fetch(0, 0)
    page = reads.fetch(0, 0, skip_damaged=True)
    assert [batch.base_offset for batch in page.batches][:1] == [400]
    assert [(each.first_offset, each.next_offset) for each in page.left_out] == [(200, 400)]


@pytest.mark.parametrize(
    "text", ["customer =", "", "before.customer = 7", "SELECT 1", "customer = 7; DROP TOPIC t"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises((InvalidFilter, InvalidSetting)):
        condition_of(text)


def test_a_condition_is_kept_in_the_token_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    caller = Caller("seven", Role.SERVICE, where=condition_of("customer = 7"))
    add_token(path, caller)
    (stored,) = read_tokens(path)
    assert stored.caller == caller
    assert stored.caller.is_limited
    line = json.loads(path.read_text())
    for wrong in (7, "customer =", "before.a = 1"):
        path.write_text(json.dumps({**line, "where": wrong}))
        with pytest.raises(InvalidSetting, match=r"Line 1 .*\('seven'\): where is"):
            read_tokens(path)
