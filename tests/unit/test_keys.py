"""Keys sort as what they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duolog.log.keys import (
    after_prefix,
    group_key,
    parse_group_key,
    parse_partition_key,
    parse_sequence,
    parse_time_key,
    partition_key,
    record_base_offset,
    record_key,
    sequence_key,
    sequence_prefix,
    time_key,
)
from duolog.log.model import TopicPartition

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
wheres = st.builds(TopicPartition, u32, u32)


@given(wheres, u64, wheres, u64)
def test_records_sort_by_partition_and_offset(
    where: TopicPartition, offset: int, other: TopicPartition, other_offset: int
) -> None:
    first, second = record_key(where, offset), record_key(other, other_offset)
    assert (first < second) == ((where, offset) < (other, other_offset))
    assert record_base_offset(first) == offset
    assert first.startswith(partition_key(where))
    assert parse_partition_key(first[:8]) == where


@given(wheres, u64, u64, u64, u64)
def test_times_sort_by_time_and_offset(
    where: TopicPartition, ts_ms: int, offset: int, other_ts_ms: int, other_offset: int
) -> None:
    first, second = time_key(where, ts_ms, offset), time_key(where, other_ts_ms, other_offset)
    assert (first < second) == ((ts_ms, offset) < (other_ts_ms, other_offset))
    assert parse_time_key(first) == (ts_ms, offset)


@given(st.text(min_size=1, max_size=60), wheres)
def test_a_group_key_says_what_it_was_made_of(group: str, where: TopicPartition) -> None:
    assert parse_group_key(group_key(group, where)) == (group, where)


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60), u64, u64)
def test_sequences_of_writers_do_not_mix(
    writer: str, other: str, sequence: int, other_sequence: int
) -> None:
    key = sequence_key(writer, sequence)
    assert parse_sequence(key) == sequence
    assert sequence_prefix(writer) <= key < after_prefix(sequence_prefix(writer))
    if writer != other:
        inside = sequence_prefix(writer) <= sequence_key(other, other_sequence)
        assert not (
            inside and sequence_key(other, other_sequence) < after_prefix(sequence_prefix(writer))
        )


@given(st.binary(min_size=1, max_size=6), st.binary(max_size=6))
def test_after_prefix_is_beyond_all_that_begin_with_it(prefix: bytes, rest: bytes) -> None:
    assert prefix + rest < after_prefix(prefix) or set(prefix) == {255}
    assert prefix < after_prefix(prefix)
