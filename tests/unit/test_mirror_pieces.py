"""How records are cut into batches, and which of them Kafka would refuse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.kafka.mirror.pieces import (
    TARGET_BATCH_BYTES,
    Fuse,
    Limits,
    Refused,
    cut,
    refused_rows,
    unskipped,
    with_skips,
)
from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.record_batch import encode_batch
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.mirror_model import MirrorProducer, Skip, SkipReason

PRODUCER = MirrorProducer("cluster", 1, 0)
LARGE, TIME = SkipReason.TOO_LARGE, SkipReason.TIME_REFUSED


def records(sizes: list[int], times: list[int] | None = None) -> Any:
    count = len(sizes)
    return pa.RecordBatch.from_pydict(
        {
            "ts": times or [0] * count,
            "key": [None] * count,
            "value": [b"x" * size for size in sizes],
            "headers": [None] * count,
            "op": [0] * count,
            "table": [None] * count,
            "payload": [0] * count,
        },
        schema=RECORD_SCHEMA,
    )


@given(st.lists(st.integers(0, 900), min_size=1, max_size=60), st.integers(1100, 5000))
@settings(max_examples=150, deadline=None)
def test_no_batch_is_larger_than_allowed_and_none_is_missing(sizes: list[int], most: int) -> None:
    whole = records(sizes)
    ranges = cut(whole, most)
    assert [start for start, _ in ranges] == [0, *[stop for _, stop in ranges[:-1]]]
    assert ranges[-1][1] == len(sizes)
    for start, stop in ranges:
        piece = whole.slice(start, stop - start)
        assert len(encode_batch(piece, PRODUCER, 0, Compression.NONE)) <= most
    assert cut(whole, most) == ranges


def test_batches_are_about_equally_large() -> None:
    counts = [stop - start for start, stop in cut(records([900] * 1200), 1 << 30)]
    assert counts == [601, 599]


def test_a_record_beyond_the_target_goes_alone() -> None:
    large = TARGET_BATCH_BYTES + 1
    assert cut(records([10, large, 10]), 4 * large) == ((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize(
    ("sizes", "times", "expected"),
    [
        ([10, 10], [100, 200], ()),
        ([10, 2000, 10], [100] * 3, (Refused(1, 2, LARGE, 2098, 100),)),
        ([2000, 3000], [100, 200], (Refused(0, 2, LARGE, 3098, 100),)),
        ([10, 10], [100, 301], (Refused(1, 2, TIME, 108, 301),)),
        ([10, 10], [49, 100], (Refused(0, 1, TIME, 108, 49),)),
        (
            [2000, 10, 10],
            [301, 301, 100],
            (Refused(0, 1, LARGE, 2098, 301), Refused(1, 2, TIME, 108, 301)),
        ),
    ],
)
def test_what_kafka_would_refuse(
    sizes: list[int], times: list[int], expected: tuple[Refused, ...]
) -> None:
    limits = Limits(1500, latest_ahead_ms=100, earliest_behind_ms=150)
    assert refused_rows(records(sizes, times), limits, now_ms=200) == expected


def test_any_time_is_taken_where_the_topic_takes_any() -> None:
    assert refused_rows(records([1, 1], [0, 2**60]), Limits(1500), now_ms=10**12) == ()


@pytest.mark.parametrize(
    ("skips", "burns"),
    [
        ((), False),
        ((Skip(0, 100, LARGE),), False),
        ((Skip(0, 101, LARGE),), True),
        ((Skip(0, 60, LARGE), Skip(500, 41, TIME)), True),
        ((Skip(0, 5000, SkipReason.GONE),), False),  # Kafka has refused none of them
    ],
)
def test_the_fuse(skips: tuple[Skip, ...], burns: bool) -> None:
    assert Fuse(records=100, of_last=1000).burns(skips, 1000) is burns


def test_the_fuse_forgets() -> None:
    fuse = Fuse(records=100, of_last=1000)
    skips = (Skip(0, 150, LARGE),)
    assert [fuse.burns(skips, at) for at in (150, 1049, 1050, 5000)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("skips", "ranges"),
    [
        ((), ((10, 20),)),
        ((Skip(0, 5, LARGE), Skip(20, 5, LARGE)), ((10, 20),)),
        ((Skip(5, 10, LARGE),), ((15, 20),)),
        ((Skip(12, 3, LARGE), Skip(16, 1, TIME)), ((10, 12), (15, 16), (17, 20))),
        ((Skip(18, 5, LARGE),), ((10, 18),)),
        ((Skip(10, 10, LARGE),), ()),
        ((Skip(0, 50, LARGE),), ()),
    ],
)
def test_what_is_skipped_is_left_out(
    skips: tuple[Skip, ...], ranges: tuple[tuple[int, int], ...]
) -> None:
    assert unskipped(10, 20, skips) == ranges


def test_neighbours_that_are_skipped_become_one() -> None:
    more = [Skip(7, 3, LARGE), Skip(10, 1, TIME)]
    skips = with_skips((Skip(5, 2, LARGE), Skip(20, 1, TIME)), more)
    assert skips == (Skip(5, 5, LARGE), Skip(10, 1, TIME), Skip(20, 1, TIME))
