"""What the records of `__consumer_offsets` say; which groups are looked at; asking in turns."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.feed.hints import Hint
from duolog.bridge.kafka.feed.polling import GroupPolling
from duolog.bridge.kafka.feed.reading import java_hash
from duolog.bridge.kafka.feed.records import MembersChanged, OffsetCommitted, parse_change
from duolog.errors import InvalidSetting


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def commit_key(version: int = 1) -> bytes:
    return struct.pack(">h", version) + text("billing") + text("orders") + struct.pack(">i", 3)


LATER = struct.pack(">q", 1_700_000_000_000)
VALUES = {
    0: struct.pack(">hq", 0, 42) + text("note") + LATER,
    1: struct.pack(">hq", 1, 42) + text("note") + LATER + LATER,
    2: struct.pack(">hq", 2, 42) + text("note") + LATER,
    3: struct.pack(">hqi", 3, 42, -1) + text("note") + LATER,
    4: struct.pack(">hqi", 4, 42, 7) + b"\x06note\x00" + LATER + b"\x00",
}


@pytest.mark.parametrize("version", VALUES)
@pytest.mark.parametrize("key", [0, 1])
def test_a_commit_in_every_form(version: int, key: int) -> None:
    change = parse_change(commit_key(key), VALUES[version])
    assert change == OffsetCommitted("billing", "orders", 3, 42, "note")


def test_long_metadata() -> None:
    note = "x" * 300
    value = struct.pack(">hqi", 4, 42, 7) + b"\xad\x02" + note.encode() + LATER + b"\x00"
    assert parse_change(commit_key(), value) == OffsetCommitted("billing", "orders", 3, 42, note)


@pytest.mark.parametrize("value", [None, struct.pack(">hq", 5, 42) + b"unknown"])
def test_a_commit_that_was_taken_away_or_is_in_a_newer_form_is_a_hint_still(
    value: bytes | None,
) -> None:
    assert parse_change(commit_key(), value) == OffsetCommitted("billing", "orders", 3, None)


@pytest.mark.parametrize("version", [2, 3, 5, 6, 7, 8])
def test_members(version: int) -> None:
    key = struct.pack(">h", version) + text("billing") + (text("member") if version > 3 else b"")
    assert parse_change(key, b"whatever") == MembersChanged("billing")


@pytest.mark.parametrize("key", [
    None, b"", b"\x00", struct.pack(">h", 4) + text("billing"), struct.pack(">h", 17), b"\xff\xff",
    commit_key()[:-1], commit_key()[:9], struct.pack(">hh", 1, -1),
    struct.pack(">hh", 2, 2) + b"\xff\xff",
])  # fmt: skip
def test_what_is_passed_over(key: bytes | None) -> None:
    assert parse_change(key, VALUES[4]) is None


@given(st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_nothing_in_the_feed_stops_it(key: bytes, value: bytes | None) -> None:
    parse_change(key, value)
    parse_change(commit_key(), value)


@pytest.mark.parametrize(("value", "expected"), [
    ("", 0), ("a", 97), ("billing", 109829509), ("polygenelubricants", 0), ("gr\u00fcn", 3185949),
    ("\U0001f600", 1772899),
])  # fmt: skip
def test_groups_are_placed_as_java_does(value: str, expected: int) -> None:
    assert java_hash(value) == expected


@pytest.mark.parametrize(("group", "taken"), [
    ("billing", True), ("console-consumer-5", False), ("connect-sink", False),
    ("__internal", False), ("my-connect-sink", True),
])  # fmt: skip
def test_groups_by_default(group: str, taken: bool) -> None:
    assert GroupFilter.of().takes(group) is taken


def test_groups_that_are_named() -> None:
    chosen = GroupFilter.of("bill.*, orders", ".*-test")
    assert [g for g in ("billing", "bill-test", "orders", "orders2") if chosen.takes(g)] == [
        "billing",
        "orders",
    ]
    assert GroupFilter.of(groups_exclude="").takes("connect-sink")


@pytest.mark.parametrize(("setting", "value"), [("groups", "a,("), ("groups_exclude", "*")])
def test_what_is_no_expression_is_refused(setting: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match="regular expressions"):
        GroupFilter.of(**{setting: value})


def test_without_a_feed_all_groups_are_supposed_to_have_changed_each_time() -> None:
    polling = GroupPolling(lambda: ["billing", "orders"], every_seconds=0.01)
    both = [Hint(MembersChanged("billing")), Hint(MembersChanged("orders"))]
    assert polling.poll(0) == both
    again = [hints for hints in (polling.poll(5) for _ in range(4)) if hints]
    assert again
    assert again == [both] * len(again)
    assert polling.feed_offset("billing") is None
    polling.close()
    assert polling.poll(5) == ()


def test_it_does_not_ask_more_often_than_told() -> None:
    asked: list[int] = []

    def groups() -> list[str]:
        asked.append(1)
        return []

    polling = GroupPolling(groups, every_seconds=1000)
    for _ in range(5):
        polling.poll(0)
    assert len(asked) == 1
