"""When records of others are copies of ours: a stretch, never a chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.bridge.kafka.mirror.copies import Copies, OurRecord, copies, without_header
from duolog.bridge.kafka.wire.unpacked import Content, StoredRecord


def content(number: int) -> Content:
    return Content(1_000 + number // 3, b"k%d" % (number % 4), b"v%d" % number, ())


OURS = [OurRecord(n, n, n - 1, content(n)) for n in range(100, 140)]


def theirs(*numbers: int, counted: int | None = None) -> list[StoredRecord]:
    """Records of others with the content of ours; beyond 1,000 with one of their own."""
    return [
        StoredRecord(7_000 + at, None if counted is None else counted + at, content(number))
        for at, number in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        pytest.param(theirs(110, 111, 112), Copies(7_000, 110, 3, False, False), id="three"),
        pytest.param(
            theirs(2_000, 2_001, 120, 121, 122, 123),
            Copies(7_002, 120, 3, False, False),
            id="behind others",
        ),
        pytest.param(theirs(110, 111), None, id="two"),
        pytest.param(
            theirs(110, 111, counted=110), Copies(7_000, 110, 2, True, False), id="two, counted"
        ),
        pytest.param(theirs(110, 111, counted=111), None, id="two, counted otherwise"),
        pytest.param(theirs(110, counted=110), None, id="one, counted"),
        pytest.param(theirs(110, 112, 114, 116), None, id="none that follow"),
        pytest.param(theirs(112, 111, 110), None, id="backwards"),
        pytest.param(theirs(110, 2_000, 111, 2_001, 112), None, id="between others"),
        pytest.param(theirs(*range(2_000, 2_200), counted=100), None, id="none of ours"),
    ],
)
def test_a_stretch_is_what_counts(seen: list[StoredRecord], found: Copies | None) -> None:
    assert copies(seen, OURS) == found


def test_another_time_makes_another_record() -> None:
    """An application that writes what it also published here has its own times."""
    later = [
        replace(each, content=replace(each.content, ts_ms=each.content.ts_ms + 1))
        for each in theirs(*range(110, 130), counted=110)
    ]
    assert copies(later, OURS) is None


def test_records_that_are_all_alike_tell_nothing() -> None:
    beat = Content(0, b"k", b"alive", ())
    ours = [OurRecord(n, n, n - 1, beat) for n in range(50)]
    assert copies([StoredRecord(n, n, beat) for n in range(50)], ours) is None
    tick = replace(beat, value=b"tick")
    ours[30] = replace(ours[30], content=tick)
    seen = [StoredRecord(n, None, beat) for n in range(9)] + [StoredRecord(9, None, tick)]
    assert copies(seen, ours) is not None


def test_what_ours_has_skipped_may_be_left_out_or_not() -> None:
    ours = [replace(each, before=each.log_offset - 1) for each in OURS]
    ours[5] = replace(ours[5], before=102)  # 103 and 104 were skipped
    assert copies(theirs(102, 105, 106), ours) == Copies(7_000, 102, 3, False, False)
    assert copies(theirs(103, 104, 105), ours) == Copies(7_000, 103, 3, False, False)


def test_the_header_of_a_mirror_is_no_difference() -> None:
    own = Content(1, b"k", b"v", (("trace", b"x"),))
    shown = replace(own, headers=(*own.headers, ("at", b"12")))
    assert without_header(shown, {"at", None}) == own
    assert without_header(own, {"at", None}) == own
