"""The one check of records: what passes can be encoded, stored and given back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import InvalidRecord, InvalidTimestamp, RecordTooLarge
from duolog.log.batch import decode, encode_small
from duolog.log.fetched import Fetched, FetchedBatch
from duolog.log.model import Op, PayloadMode, Record
from duolog.log.record_check import checked_record, records_of
from duolog.log.timestamps import LATEST_TIME_MS, latest_allowed_ms
from tests.support.poisons import HALF, POISONS

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_what_no_topic_takes_is_refused(poison: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord) as refused:
        checked_record(Record(**{"value": b"v", **poison}), 1 << 20)
    str(refused.value).encode()  # can be shown and sent


@pytest.mark.parametrize("record", [None, b"value", {"value": b"v"}, 5, object()])
def test_what_is_no_record_is_refused(record: Any) -> None:
    with pytest.raises(InvalidRecord, match=r"Record\(…\)"):
        checked_record(record)


@pytest.mark.parametrize("records", [None, 5, b"value", "value", {"value": b"v"}])
def test_what_are_no_records_is_refused(records: Any) -> None:
    with pytest.raises(InvalidRecord, match="sequence"):
        records_of(records)


def test_one_record_and_several() -> None:
    record = Record(b"v")
    assert records_of(record) == (record,)
    assert records_of(iter([record, record])) == (record, record)


def test_a_record_that_is_fine_is_handed_on_as_it_is() -> None:
    record = Record(b"v", b"k", (("é", None), ("", b"")), 3, 5, Op.READ, "naïve", PayloadMode.DIFF)
    assert checked_record(record, 1 << 20) is record


def test_headers_that_could_still_be_changed_are_taken_as_they_are_now() -> None:
    pair = ["a", b"1"]
    headers: Any = [pair, ("b", None)]
    checked = checked_record(Record(b"v", headers=headers))
    pair[0] = HALF
    headers.clear()
    assert checked.headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize(
    ("record", "size"),
    [
        (Record(b"12345"), 5),
        (Record(None, b"12345"), 5),
        (Record(b"12", b"345", table="é"), 7),
        (Record(b"", headers=(("é", b"12"), ("a", None))), 5),
    ],
)
def test_everything_counts_towards_the_size_in_bytes(record: Record, size: int) -> None:
    assert checked_record(record, size) is record
    with pytest.raises(RecordTooLarge, match=f"of {size} bytes"):
        checked_record(record, size - 1)


@pytest.mark.parametrize(
    ("ts_ms", "said"),
    [
        (NOW_MS + 3_600_001, "max_timestamp_ahead_seconds"),
        (NOW_MS * 1000, r"looks like microseconds.*\(1700000000000\)"),
        (NOW_MS * 1_000_000, r"looks like nanoseconds.*\(1700000000000\)"),
        (LATEST_TIME_MS, "Check the clock"),
    ],
)
def test_a_time_far_ahead_is_refused_with_what_it_may_be(ts_ms: int, said: str) -> None:
    latest_ms = latest_allowed_ms(NOW_MS, 3600)
    with pytest.raises(InvalidTimestamp, match=said):
        checked_record(Record(b"v", ts_ms=ts_ms), latest_ms=latest_ms)
    checked_record(Record(b"v", ts_ms=NOW_MS + 3_600_000), latest_ms=latest_ms)


@pytest.mark.parametrize(
    ("ahead_seconds", "latest_ms"),
    [(0, NOW_MS), (0.5, NOW_MS + 500), (1e30, LATEST_TIME_MS), (float("inf"), LATEST_TIME_MS)],
)
def test_how_far_ahead_a_time_may_be(ahead_seconds: float, latest_ms: int) -> None:
    assert latest_allowed_ms(NOW_MS, ahead_seconds) == latest_ms


_ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(max_size=20),
    st.text(st.characters(), max_size=20),  # halves of surrogate pairs too
    st.sampled_from([*Op, *PayloadMode]),
    st.tuples(st.text(max_size=3), st.binary(max_size=3)),
    st.lists(st.tuples(st.text(st.characters(), max_size=3), st.binary(max_size=3)), max_size=3),
)


@given(
    st.lists(
        st.builds(
            Record,
            value=st.one_of(st.none(), st.binary(max_size=50), _ANYTHING),
            key=st.one_of(st.none(), st.binary(max_size=50), _ANYTHING),
            headers=st.one_of(
                st.just(()),
                st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))),
                _ANYTHING,
            ),
            partition=st.one_of(st.none(), st.just(0), _ANYTHING),
            ts_ms=st.one_of(st.none(), st.integers(0, LATEST_TIME_MS), _ANYTHING),
            op=st.one_of(st.sampled_from(Op), _ANYTHING),
            table=st.one_of(st.none(), st.text(max_size=10), _ANYTHING),
            payload=st.one_of(st.sampled_from(PayloadMode), _ANYTHING),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_what_passes_is_given_back_and_all_else_is_refused_by_name(records: list[Record]) -> None:
    taken = []
    for record in records:
        try:
            taken.append(checked_record(record, 1 << 20))
        except InvalidRecord as refused:
            str(refused).encode()
    if not taken:
        return
    encoded, highest = encode_small(taken, NOW_MS)
    found = list(Fetched("t", 0, 0, 0, 0, (FetchedBatch(0, decode(encoded)),)))
    times = [NOW_MS if record.ts_ms is None else record.ts_ms for record in taken]
    assert [(r.value, r.key, r.headers, r.op, r.table, r.payload) for r in found] == [
        (r.value, r.key, r.headers, r.op, r.table, r.payload) for r in taken
    ]
    assert [r.ts_ms for r in found] == times
    assert highest == max(times)
