"""When a request is sent again, what an answer means, and what a publish request holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duolog.client.answers import Answer, judged
from duolog.client.held import HeldWaits
from duolog.client.lanes import Lane, Lanes
from duolog.client.messages import (
    MOST_CHARACTERS,
    MOST_MESSAGES,
    Message,
    NewRecord,
    message_of,
    request,
    requests_of,
)
from duolog.client.model import Source
from duolog.client.patience import Failure, Patience
from duolog.client.retry_rules import RetryRules
from duolog.errors import (
    DiskFull,
    DuologError,
    HostMismatch,
    HostRefused,
    InvalidRecord,
    LogClosed,
    OffsetOutOfRange,
    PartitionHeld,
    UnknownTopic,
)
from duolog.reach.address import parse_address

HOST = parse_address("http://127.0.0.1:7070")
ARROW = "application/vnd.apache.arrow.stream"


def test_pauses_grow_to_the_deadline_which_counts_from_the_first_failure() -> None:
    patience = Patience(10.0, lambda: 1.0)
    now, pauses = 1000.0, []
    while (pause := patience.pause_after(Failure("gone", False), now)) is not None:
        pauses.append(pause)
        now += pause
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert not patience.may_be_done


def test_chance_halves_a_pause_at_most_and_a_host_may_ask_for_more() -> None:
    assert Patience(10.0, lambda: 0.0).pause_after(Failure("gone", True), 0.0) == 0.025
    busy = Failure("busy", False, None, retry_after_seconds=4.0)
    assert Patience(10.0, lambda: 1.0).pause_after(busy, 0.0) == 5.0
    assert Patience(4.0, lambda: 0.0).pause_after(busy, 0.0) is None


def test_one_lost_answer_is_enough_for_doubt() -> None:
    patience = Patience(10.0, lambda: 1.0)
    for seen in (False, True, False):
        patience.pause_after(Failure("gone", seen), 0.0)
    assert patience.may_be_done


def answer(status: int, said: Any = None, *, kind: str = "application/json") -> Answer:
    content = b"" if said is None else json.dumps(said).encode()
    return Answer(status, {"content-type": f"{kind}; charset=utf-8", "retry-after": "3"}, content)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (answer(404, {"error": "No.", "code": "UnknownTopic"}), UnknownTopic),
        (answer(401, {"error": "No.", "code": "Unauthorized"}), HostRefused),
        (answer(403, {"error": "No.", "code": "Forbidden"}), HostRefused),
        (answer(200, {"offsets": []}), HostMismatch),
        (answer(200, kind="text/html"), HostMismatch),
        (answer(302), HostMismatch),
        (answer(404, {"detail": "no"}), HostMismatch),
        (answer(409, ["error"]), HostMismatch),
    ],
)
def test_an_answer_of_no_is_an_error(found: Answer, error: type[DuologError]) -> None:
    assert type(judged(HOST, found, wants=ARROW)) is error


def test_errors_come_with_their_fields() -> None:
    held = judged(
        HOST, answer(409, {"error": "x", "code": "PartitionHeld", "holder": "w"}), wants=ARROW
    )
    assert isinstance(held, PartitionHeld)
    assert (held.holder, str(held)) == ("w", "x")
    fields = {"topic": "t", "partition_id": 1, "offset": 9, "earliest": 2, "latest": 5}
    gone = judged(
        HOST, answer(416, {"error": "x", "code": "OffsetOutOfRange", **fields}), wants=ARROW
    )
    assert isinstance(gone, OffsetOutOfRange)
    assert (gone.topic, gone.partition, gone.earliest) == ("t", 1, 2)


@pytest.mark.parametrize(
    ("status", "code", "error", "may_be_done"),
    [
        (503, "DiskFull", DiskFull, False),
        (503, "LogClosed", LogClosed, True),
        (502, None, None, True),
        (429, None, None, True),
    ],
)
def test_a_no_for_now_is_a_reason_to_ask_again(
    status: int, code: str | None, error: type[DuologError] | None, may_be_done: bool
) -> None:
    said = {"error": "Not now.", "code": code} if code else None
    found = judged(HOST, answer(status, said), wants=ARROW)
    assert isinstance(found, Failure)
    assert (found.may_be_done, found.retry_after_seconds) == (may_be_done, 3.0)
    assert (None if found.error is None else type(found.error)) is error


def test_a_success_is_of_the_media_type_that_was_wanted() -> None:
    assert judged(HOST, answer(200, kind=ARROW), wants=ARROW) is None


def test_what_is_published_is_json_of_bytes() -> None:
    record = NewRecord("tea", 7, [("a", None), ("b", b"\x00")], 3, "delete", "t", "key", 5)
    assert json.loads(message_of(record).text) == {
        "payload": "dGVh",
        "key_base64": "Nw==",
        "headers": [
            {"name": "a", "value_base64": None},
            {"name": "b", "value_base64": "AA=="},
        ],
        "partition_id": 3,
        "op": "delete",
        "source_table": "t",
        "payload_mode": "key",
        "ts": 5,
    }
    messages = [message_of(NewRecord(None)), message_of(NewRecord(memoryview(b"x")))]
    assert json.loads(request('t"', messages, "w", 4)) == {
        "topic": 't"',
        "writer": "w",
        "sequence": 4,
        "messages": [{"payload": None}, {"payload": "eA=="}],
    }
    assert "writer" not in json.loads(request("t", messages, None, 0))
    with pytest.raises(InvalidRecord, match="A record cannot be written"):
        message_of(NewRecord("v", table=object()))  # type: ignore[arg-type]


def test_requests_hold_no_more_than_a_host_takes_and_remembers() -> None:
    small = list(requests_of([Message("x")] * (2 * MOST_MESSAGES + 1)))
    assert [len(group) for group in small] == [MOST_MESSAGES, MOST_MESSAGES, 1]
    large = list(requests_of([Message("x" * (MOST_CHARACTERS // 2))] * 3))
    assert [len(group) for group in large] == [1, 1, 1]
    assert list(requests_of([])) == []


def test_a_writer_has_one_user_at_a_time_and_few_are_made() -> None:
    lanes = Lanes()
    one, two = lanes.take(), lanes.take()
    assert one.writer != two.writer
    lanes.give_back(one)
    assert lanes.take() is one
    named = Lane("w", 9)
    assert Lanes(named).take() is named


def test_a_held_partition_is_waited_for_anew_each_time() -> None:
    waits, source = HeldWaits(10.0), Source("orders")
    assert [waits.is_over(source, now) for now in (0.0, 9.0, 10.0, 11.0, 20.9)] == [
        False, False, True, False, False
    ]  # fmt: skip
    waits.is_free(source)
    assert not waits.is_over(source, 99.0)
    assert HeldWaits(0.0).is_over(source, 0.0)
    assert (waits.pause_seconds(0.0), waits.pause_seconds(1.0)) == (0.1, 1.0)


def test_pauses_between_attempts_double_up_to_a_minute() -> None:
    rules = RetryRules(3, 1.0)
    assert [rules.pause_seconds(attempt, 1.0) for attempt in (1, 2, 3, 9)] == [1, 2, 4, 60]
    assert rules.pause_seconds(1, 0.0) == 0.5
    assert [rules.is_last(attempt) for attempt in (1, 2, 3, 4)] == [False, False, True, True]
