"""The demo's parts that need no Kafka and no Spark."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from duolog.demo.ledger import Ledger, LedgerReader
from duolog.demo.proof import Work, final_rows, replayed, work_done
from duolog.demo.screen import drawn, line_of
from duolog.demo.sight import MemberSeen, Sight
from duolog.errors import DemoFailed

A, B = {"id": 1, "qty": 1}, {"id": 1, "qty": 2}
MEMBERS = (
    MemberSeen("kafka-1", 1_234_567, (0, 1, 2, 3, 4, 5)),
    MemberSeen("kafka-2", 12, (), is_killed=True),
    MemberSeen("native-1", 0, ()),
)
COUNT = 12_345_678
SIGHT = Sight(3599.0, 9_999, COUNT, COUNT, COUNT, COUNT, COUNT, MEMBERS)


def event(before: object, after: object) -> bytes:
    return json.dumps({"before": before, "after": after, "op": "u"}).encode()


@pytest.mark.parametrize(
    ("done", "ends", "expected"),
    [
        ({"a": {0: [0, 1]}, "b": {1: [0]}}, {0: 2, 1: 1}, Work(3, 0, 0)),
        ({"a": {0: [0, 1]}, "b": {0: [1]}}, {0: 2}, Work(2, 0, 1)),
        ({"a": {0: [0]}}, {0: 2}, Work(2, 1, 0)),
        ({"a": {0: [0, 0, 0]}}, {0: 1}, Work(1, 0, 2)),
        ({"a": {0: [0, 7]}}, {0: 2}, Work(2, 1, 0)),  # what is not there cannot make up for it
        ({}, {0: 5}, Work(5, 5, 0)),
    ],
)
def test_work_that_was_left_out_or_done_twice_is_counted(
    done: dict[str, dict[int, list[int]]], ends: dict[int, int], expected: Work
) -> None:
    assert work_done(done, ends) == expected


def test_events_add_up_to_a_table() -> None:
    assert replayed([event(None, A), event(A, B)]) == {1: B}
    assert replayed([event(None, A), event(A, None), None]) == {}


@pytest.mark.parametrize(
    "events",
    [
        [event(None, A), event(None, A)],  # twice
        [event(A, B)],  # the one before is missing
        [event(None, A), event(B, A)],  # in another order
    ],
)
def test_events_that_do_not_fit_one_another_are_noticed(events: list[bytes]) -> None:
    with pytest.raises(DemoFailed, match="Order 1"):
        replayed(events)


def test_the_tables_last_rows_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("".join(json.dumps(row) + "\n" for row in (A, {"id": 2, "qty": 5})))
    assert final_rows(path) == {1: A, 2: {"id": 2, "qty": 5}}


def test_a_ledger_is_read_along_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "done" / "me"
    reader = LedgerReader(path)
    assert list(reader.more()) == []
    with Ledger(path) as ledger:
        ledger.note([(0, 7), (3, 8)])
        assert list(reader.more()) == [(0, 7), (3, 8)]
        with path.open("ab") as torn:
            torn.write(b"1 2")
        assert list(reader.more()) == []
        with path.open("ab") as torn:
            torn.write(b"3\n")
        assert list(reader.more()) == [(1, 23)]


def test_all_is_settled_only_when_both_sides_have_all() -> None:
    assert SIGHT.is_settled
    for name in ("mirrored", "native_position", "kafka_position"):
        fields = {field: getattr(SIGHT, field) for field in Sight.__slots__}
        assert not Sight(**{**fields, name: 7}).is_settled


def test_the_live_table_fits_80_columns() -> None:
    with StringIO() as shown:
        console = Console(width=80, file=shown)
        console.print(drawn(SIGHT, "the rest is mirrored and acknowledged"))
        lines = shown.getvalue().splitlines()
    assert len(lines) == 1 + 1 + 4 + len(MEMBERS)
    assert all("…" not in line for line in lines)
    assert "1,234,567" in lines[6]
    assert "killed" in lines[7]


def test_a_line_for_those_who_have_no_terminal_fits_80_columns() -> None:
    few = Sight(40.0, 20, 40_000, 40_000, 40_000, 40_000, 40_000, ())
    assert len(f"   {line_of(few)}") <= 80
