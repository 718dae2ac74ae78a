"""Where a consumer begins, and how much each partition gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.http.shares import shares
from duolog.bridge.http.starts import AtOffsets, Begin, begin_of, start_in
from duolog.errors import InvalidRequest, UnknownPartition
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Topic, TopicSettings

TOPIC = Topic(1, "orders", TopicSettings(partitions=3), (), 0, 0)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Latest", Latest()),
        ("earliest", Earliest()),
        ({"Offset": 7}, AtOffset(7)),
        ({"offset": 0}, AtOffset(0)),
        ({"Timestamp": 1_700_000_000_000}, AtTimestamp(1_700_000_000_000)),
        ({"type": "Latest"}, Latest()),
        ({"type": "earliest"}, Earliest()),
        ({"type": "Offset", "offset": 7}, AtOffset(7)),
        ({"type": "Timestamp", "timestamp": 5}, AtTimestamp(5)),
        ({"Offsets": {"0": 7, "12": 1}}, AtOffsets({0: 7, 12: 1})),
        ({"Offsets": {}}, AtOffsets({})),
    ],
)
def test_all_spellings_of_a_start(written: Any, meant: Begin) -> None:
    assert begin_of(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        None, 7, True, [], {}, "now", "Offset", "7",
        {"Offset": -1}, {"Offset": True}, {"Offset": 1.5}, {"Offset": "1"}, {"Offset": 2**63},
        {"Offset": 1, "Timestamp": 2}, {"Timestamp": None}, {"Other": 1},
        {"type": "Offset"}, {"type": "Offset", "timestamp": 1}, {"type": "Latest", "offset": 1},
        {"type": 1}, {"type": "Offset", "offset": 1, "more": 2},
        {"Offsets": [1]}, {"Offsets": {"a": 1}}, {"Offsets": {"-1": 1}}, {"Offsets": {"0": -1}},
        {"Offsets": {"999999": 1}}, {"Offsets": {"٣": 1}},
    ],
)  # fmt: skip
def test_what_is_no_start_says_what_is(written: Any) -> None:
    with pytest.raises(ValueError, match='start is "Latest", "Earliest"'):
        begin_of(written)


def test_one_offset_does_for_one_partition_only() -> None:
    assert start_in(AtOffset(5), TOPIC, 1, is_only=True) == AtOffset(5)
    with pytest.raises(InvalidRequest, match=r"3 partitions.*partition_id"):
        start_in(AtOffset(5), TOPIC, 1, is_only=False)


def test_partitions_without_an_offset_begin_at_their_first_record() -> None:
    begin = AtOffsets({1: 5})
    assert start_in(begin, TOPIC, 1, is_only=False) == AtOffset(5)
    assert start_in(begin, TOPIC, 2, is_only=False) == Earliest()
    with pytest.raises(UnknownPartition, match="start names 3"):
        start_in(AtOffsets({3: 1}), TOPIC, 0, is_only=False)


@pytest.mark.parametrize(
    ("available", "limit", "given_out"),
    [
        ({0: 10}, 4, {0: 4}),
        ({0: 10}, 100, {0: 10}),
        ({0: 0, 1: 0}, 5, {}),
        ({0: 100, 1: 100}, 10, {0: 5, 1: 5}),
        ({0: 100, 1: 100, 2: 100}, 10, {0: 4, 1: 3, 2: 3}),
        ({2: 100, 0: 100, 1: 100}, 10, {2: 4, 0: 3, 1: 3}),
        ({0: 1, 1: 100}, 10, {0: 1, 1: 9}),
        ({0: 2, 1: 3, 2: 100}, 12, {0: 2, 1: 3, 2: 7}),
        ({0: 5, 1: 5, 2: 5}, 2, {0: 1, 1: 1}),
    ],
)
def test_partitions_share_a_limit(
    available: dict[int, int], limit: int, given_out: dict[int, int]
) -> None:
    assert shares(available, limit) == given_out


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 20), st.integers(0, 50), max_size=12), st.integers(1, 200))
def test_a_share_is_fair_and_wastes_nothing(available: dict[int, int], limit: int) -> None:
    given_out = shares(available, limit)
    assert sum(given_out.values()) == min(limit, sum(available.values()))
    for partition, records in given_out.items():
        assert 0 < records <= available[partition]
    unsatisfied = [p for p, n in available.items() if given_out.get(p, 0) < n]
    for partition in unsatisfied:  # nobody got more than one above whoever still wants some
        assert max(given_out.values()) <= given_out.get(partition, 0) + 1
