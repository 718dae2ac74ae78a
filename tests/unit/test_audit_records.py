"""Records of both sides beside one another; positions by counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.kafka.audit.groups import (
    before_in_kafka,
    before_in_log,
    kafka_offset_of,
    positions_report,
)
from duolog.bridge.kafka.audit.records import KafkaRecords, differences
from duolog.bridge.kafka.audit.report import Differences, Finding
from duolog.bridge.kafka.audit.stretches import Stretch
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.mirror_model import Mirror, MirrorTarget, Run

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]

ROWS: list[Row] = [
    (1_000, b"a", b"one", None),
    (1_001, None, b"two", [("trace", b"\x00\xff"), ("trace", None)]),
    (1_002, b"", None, []),
    (1_003, b"d", b"", [("", b"")]),
]
STRETCH = Stretch(50, 70, len(ROWS))


def in_log(rows: list[Row]) -> Any:
    return pa.RecordBatch.from_pylist(
        [
            {
                "ts": ts,
                "key": key,
                "value": value,
                "headers": headers
                if headers is None
                else [{"name": name, "value": value} for name, value in headers],
                "op": 0,
                "table": None,
                "payload": 0,
            }
            for ts, key, value, headers in rows
        ],
        RECORD_SCHEMA,
    )


def in_kafka(rows: dict[int, Row]) -> KafkaRecords:
    columns = list(zip(*rows.values(), strict=True)) or [(), (), (), ()]
    return KafkaRecords.of(list(rows), *columns)


def placed(rows: list[Row]) -> dict[int, Row]:
    return dict(enumerate(rows, STRETCH.kafka_offset))


def test_equal_records_have_no_difference_and_an_empty_list_of_headers_is_none() -> None:
    theirs = [*ROWS[:2], (1_002, b"", None, None), ROWS[3]]
    assert list(differences(STRETCH, in_log(ROWS), in_kafka(placed(theirs)))) == []


def test_records_without_any_header_are_compared_too() -> None:
    rows: list[Row] = [(5, b"k", b"v", None)]
    stretch = Stretch(0, 0, 1)
    assert list(differences(stretch, in_log(rows), in_kafka({0: rows[0]}))) == []


@pytest.mark.parametrize(
    ("at", "other", "finding"),
    [
        (0, (999, b"a", b"one", None), Finding.TIME_DIFFERS),
        (0, (1_000, b"b", b"one", None), Finding.KEY_DIFFERS),
        (1, (1_001, b"", ROWS[1][2], ROWS[1][3]), Finding.KEY_DIFFERS),
        (2, (1_002, b"", b"", None), Finding.VALUE_DIFFERS),
        (3, (1_003, b"d", None, [("", b"")]), Finding.VALUE_DIFFERS),
        (3, (1_003, b"d", b"", [("", None)]), Finding.HEADERS_DIFFER),
        (1, (1_001, None, b"two", [("trace", None), ("trace", b"\x00\xff")]),
         Finding.HEADERS_DIFFER),
        (0, (1_000, b"a", b"one", [("more", b"")]), Finding.HEADERS_DIFFER),
    ],
)  # fmt: skip
def test_each_difference_is_named_with_its_place(at: int, other: Row, finding: Finding) -> None:
    theirs = {**placed(ROWS), STRETCH.kafka_offset + at: other}
    (found,) = differences(STRETCH, in_log(ROWS), in_kafka(theirs))
    assert (found.finding, found.log_offset, found.kafka_offset) == (finding, 50 + at, 70 + at)
    assert f"Offset {50 + at}" in found.said


def test_what_is_missing_does_not_shift_what_follows() -> None:
    theirs = {offset: row for offset, row in placed(ROWS).items() if offset not in {70, 72}}
    found = list(differences(STRETCH, in_log(ROWS), in_kafka(theirs)))
    assert [(each.finding, each.log_offset) for each in found] == [
        (Finding.MISSING_IN_KAFKA, 50),
        (Finding.MISSING_IN_KAFKA, 52),
    ]


def test_nothing_in_kafka_is_everything_missing() -> None:
    found = list(differences(STRETCH, in_log(ROWS), in_kafka({})))
    assert [each.log_offset for each in found] == [50, 51, 52, 53]


def test_a_long_value_is_cut_in_the_message() -> None:
    rows: list[Row] = [(5, None, b"x" * 100_000, None)]
    other: list[Row] = [(5, None, b"y" * 100_000, None)]
    (found,) = differences(Stretch(0, 0, 1), in_log(rows), in_kafka({0: other[0]}))
    assert len(found.said) < 200
    assert "100000 B" in found.said


def test_all_differences_are_counted_and_the_first_are_kept() -> None:
    kept = Differences(most_shown=1)
    for difference in differences(STRETCH, in_log(ROWS), in_kafka({})):
        kept.add(difference)
    assert [each.log_offset for each in kept.shown] == [50]
    assert kept.counts == {Finding.MISSING_IN_KAFKA: 4}


# -- positions


def mirrored(*runs: Run) -> Mirror:
    return Mirror("shop", 0, 1, MirrorTarget("cluster", "shop", "id", 7, 0, 0, 0), runs)


# Log offsets 0-9, then 10 and 11 skipped, then 12-14; in Kafka 10-12 are somebody else's.
SHOP = mirrored(Run(0, 0, 10), Run(12, 13, 3, skipped_before=2))


@pytest.mark.parametrize(
    ("native", "kafka", "is_equal", "expected"),
    [
        (0, 0, True, 0),
        (9, 9, True, 9),
        (10, 13, True, 13),
        (12, 13, True, 13),  # nothing of ours lies between 10 and 12
        (11, 10, True, 13),  # nor between Kafka's 10 and 13
        (13, 13, False, 14),
        (15, 16, True, 16),
        (15, 20, True, 16),  # what follows is somebody else's
        (9, 10, False, 9),
        (14, None, False, 15),
        (None, 3, False, None),
    ],
)
def test_positions_are_equal_when_as_many_of_ours_lie_before_them(
    native: int | None, kafka: int | None, is_equal: bool, expected: int | None
) -> None:
    place = ("billing", "shop", 0)
    (report,) = positions_report(
        [SHOP],
        {} if native is None else {place: native},
        {} if kafka is None else {place: kafka},
    )
    assert (report.is_equal, report.expected) == (is_equal, expected)


def test_positions_in_partitions_without_a_mirror_are_not_looked_at() -> None:
    assert positions_report([SHOP], {("billing", "other", 0): 3}, {}) == ()


def test_a_group_that_has_only_begun_may_be_unknown_in_kafka_but_not_elsewhere() -> None:
    place = ("billing", "shop", 0)
    assert positions_report([SHOP], {place: 3}, {}, {place}) == ()
    (unknown,) = positions_report([SHOP], {place: 3}, {})
    (elsewhere,) = positions_report([SHOP], {place: 3}, {place: 0}, {place})
    assert (unknown.is_equal, elsewhere.is_equal) == (False, False)


@given(
    shape=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)), max_size=6),
    position=st.integers(0, 60),
)
def test_where_a_position_lies_in_kafka_has_as_many_before_it(
    shape: list[tuple[int, int, int]], position: int
) -> None:
    runs, log_offset, kafka_offset = [], 0, 0
    for count, skipped, foreign in shape:
        log_offset, kafka_offset = log_offset + skipped, kafka_offset + foreign
        runs.append(Run(log_offset, kafka_offset, count))
        log_offset, kafka_offset = log_offset + count, kafka_offset + count
    there = kafka_offset_of(mirrored(*runs), position)
    assert before_in_kafka(runs, there) == before_in_log(runs, position)


# -- the header with the log offset


def with_offsets(rows: list[Row], name: str = "at", first: int = STRETCH.log_offset) -> list[Row]:
    """As a mirror writes them that adds the offset."""
    return [
        (ts, key, value, [*(headers or []), (name, b"%d" % offset)])
        for offset, (ts, key, value, headers) in enumerate(rows, first)
    ]


def test_the_header_with_the_offset_is_no_difference() -> None:
    stretch = replace(STRETCH, offset_header="at")
    theirs = in_kafka(placed(with_offsets(ROWS)))
    assert list(differences(stretch, in_log(ROWS), theirs)) == []
    found = [each.finding for each in differences(STRETCH, in_log(ROWS), theirs)]
    assert found == [Finding.HEADERS_DIFFER] * len(ROWS)


@pytest.mark.parametrize(
    ("wrong", "findings"),
    [
        (ROWS, {Finding.OFFSET_HEADER_DIFFERS}),
        (with_offsets(ROWS, first=51), {Finding.OFFSET_HEADER_DIFFERS}),
        (with_offsets(ROWS, "no"), {Finding.OFFSET_HEADER_DIFFERS, Finding.HEADERS_DIFFER}),
        (with_offsets(with_offsets(ROWS)), {Finding.HEADERS_DIFFER}),
    ],
    ids=["missing", "of another record", "of another name", "twice"],
)
def test_a_wrong_header_with_the_offset_is_found(wrong: list[Row], findings: set[Finding]) -> None:
    stretch = replace(STRETCH, offset_header="at")
    found = list(differences(stretch, in_log(ROWS), in_kafka(placed(wrong))))
    assert {each.finding for each in found} == findings
    assert {each.log_offset for each in found} == {50, 51, 52, 53}


def test_a_record_that_is_missing_does_not_confuse_the_headers_of_others() -> None:
    stretch = replace(STRETCH, offset_header="at")
    theirs = placed(with_offsets(ROWS))
    del theirs[71]
    (missing,) = differences(stretch, in_log(ROWS), in_kafka(theirs))
    assert missing.finding is Finding.MISSING_IN_KAFKA
