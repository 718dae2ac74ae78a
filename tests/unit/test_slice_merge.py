"""Small slices are joined in their order, within a bound of memory."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import DamagedPart
from duolog.log.batch import decode, encode, read_header
from duolog.log.epoch_parts import staged_records
from duolog.log.model import TopicPartition
from duolog.log.slice_merge import EncodedSlice, SliceMerger
from tests.support.records import record_batch


def slice_of(values: list[bytes], ts_ms: int = 0) -> EncodedSlice:
    encoded = encode(record_batch(values, ts_ms=ts_ms))
    return EncodedSlice(len(values), read_header(encoded).max_ts_ms, encoded)


def values_of(slice_: EncodedSlice) -> list[bytes]:
    return list(decode(slice_.encoded).column("value").to_pylist())


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.lists(st.binary(max_size=300), min_size=1), st.integers(0, 9)
        )
    ),
    st.integers(0, 2000),
    st.integers(1, 20_000),
    st.integers(0, 50_000),
)
def test_a_partition_keeps_all_its_records_in_order(
    slices: list[tuple[int, list[bytes], int]],
    small_bytes: int,
    target_bytes: int,
    waiting_bytes: int,
) -> None:
    merger = SliceMerger(
        small_bytes=small_bytes, target_bytes=target_bytes, waiting_bytes=waiting_bytes
    )
    expected: dict[TopicPartition, list[bytes]] = {}
    given_back: dict[TopicPartition, list[bytes]] = {}
    latest: dict[TopicPartition, int] = {}

    def take(tp: TopicPartition, slice_: EncodedSlice) -> None:
        assert read_header(slice_.encoded).count == slice_.count
        assert read_header(slice_.encoded).max_ts_ms == slice_.max_ts_ms
        given_back.setdefault(tp, []).extend(values_of(slice_))
        latest[tp] = max(latest.get(tp, 0), slice_.max_ts_ms)

    for partition, values, ts_ms in slices:
        tp = TopicPartition(1, partition)
        expected.setdefault(tp, []).extend(values)
        for ready in merger.add(tp, slice_of(values, ts_ms)):
            take(*ready)
        waits = len(expected[tp]) - len(given_back.get(tp, []))
        assert merger.waiting_records(tp) == waits
    for ready in merger.finish():
        take(*ready)
    assert given_back == expected
    for tp, ts_ms in latest.items():
        assert ts_ms == max(ts for partition, _, ts in slices if partition == tp.partition)
    assert not list(merger.finish())


def test_a_large_slice_is_left_byte_by_byte_and_what_waits_comes_before_it() -> None:
    merger = SliceMerger(small_bytes=2000)
    tp = TopicPartition(1, 0)
    small, large = slice_of([b"small"]), slice_of([random.Random(1).randbytes(4000)])
    assert not list(merger.add(tp, small))
    assert not list(merger.add(tp, small))
    (_, joined), (_, same) = list(merger.add(tp, large))
    assert values_of(joined) == [b"small", b"small"]
    assert same is large


def test_a_slice_that_is_alone_is_left_byte_by_byte() -> None:
    merger = SliceMerger()
    small = slice_of([b"small"])
    assert not list(merger.add(TopicPartition(1, 0), small))
    assert list(merger.finish()) == [(TopicPartition(1, 0), small)]


def test_what_waits_is_bounded_over_many_partitions() -> None:
    merger = SliceMerger(waiting_bytes=50_000)
    waiting = most = 0
    for number in range(2000):
        waiting += 1
        waiting -= sum(
            slice_.count
            for _, slice_ in merger.add(TopicPartition(1, number % 500), slice_of([b"v" * 50]))
        )
        most = max(most, waiting)
    assert most * 50 < 50_000
    waiting -= sum(slice_.count for _, slice_ in merger.finish())
    assert waiting == 0


def test_a_staged_batch_that_holds_other_than_it_says_is_refused() -> None:
    encoded = slice_of([b"value"]).encoded
    with pytest.raises(DamagedPart, match="cannot be read"):
        staged_records(encoded[:-1] + b"\x00\x01")
