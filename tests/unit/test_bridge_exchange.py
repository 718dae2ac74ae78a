"""Lines between a host and its worker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.serve.exchange import (
    MAX_LINE_BYTES,
    VERSION,
    Answer,
    Ask,
    NotUnderstood,
    Told,
    answer_line,
    ask_in,
    ask_line,
    heard_in,
    told_line,
)
from duolog.errors import (
    AnswerTooLarge,
    DuologError,
    GroupHasMembers,
    HostFailed,
    InvalidRequest,
    KafkaRefused,
    OffsetOutOfRange,
)

OURS = {"v", "ask", "what", "seconds", "answer", "event"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
FIELDS = st.dictionaries(st.text(max_size=10).filter(lambda name: name not in OURS), JSON)


@given(st.integers(), st.text(max_size=20), st.floats(0.001, 1e6), FIELDS)
def test_a_question_comes_as_it_was_asked(
    number: int, what: str, seconds: float, arguments: dict[str, Any]
) -> None:
    ask = Ask(number, what, seconds, arguments)
    line = ask_line(ask)
    assert line.index(b"\n") == len(line) - 1
    assert ask_in(line) == ask


@given(st.integers(), JSON)
def test_an_answer_comes_as_it_was_given(number: int, result: Any) -> None:
    assert heard_in(json.loads(answer_line(Answer(number, result)))) == Answer(number, result)


@given(st.text(max_size=10), FIELDS)
def test_an_event_comes_as_it_was_told(event: str, fields: dict[str, Any]) -> None:
    assert heard_in(json.loads(told_line(Told(event, fields)))) == Told(event, fields)


@pytest.mark.parametrize(
    "error",
    [
        GroupHasMembers("It has members. Stop them."),
        KafkaRefused("It said no.", error=29),
        OffsetOutOfRange(topic="t", partition=1, offset=9, earliest=2, latest=5),
    ],
)
def test_an_error_is_raised_again_as_what_it_was(error: DuologError) -> None:
    heard = heard_in(json.loads(answer_line(Answer(3, error=error))))
    assert isinstance(heard, Answer)
    assert (type(heard.error), str(heard.error)) == (type(error), str(error))
    assert vars(heard.error) == vars(error)


def test_an_error_of_a_newer_worker_is_told_in_its_words() -> None:
    heard = heard_in({"answer": 1, "error": "Mercury is in retrograde.", "code": "StarsRefused"})
    assert isinstance(heard, Answer)
    assert isinstance(heard.error, HostFailed)
    assert "Mercury" in str(heard.error)
    assert "StarsRefused" in str(heard.error)


@pytest.mark.parametrize(
    "status",
    [{}, {"state": "mirroring"}, {"answer": "7"}, {"answer": True}, {"event": 1}, {"answer": None}],
)
def test_everything_else_is_a_status(status: dict[str, Any]) -> None:
    assert heard_in(status) is None


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"\xff", b"7", b"[" * 9000, b'{"v":1}', b'{"ask":"1"}', b'{"ask":true}'],
)
def test_what_is_no_question_is_passed_over(line: bytes) -> None:
    assert ask_in(line) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"v": VERSION + 1}, "Start the host again"),
        ({"v": None}, "Start the host again"),
        ({"what": 3}, "`what`"),
        ({"seconds": 0}, "`seconds`"),
        ({"seconds": -1}, "`seconds`"),
        ({"seconds": "1"}, "`seconds`"),
        ({"seconds": True}, "`seconds`"),
        ({"seconds": None}, "`seconds`"),
        ({"seconds": float("inf")}, "`seconds`"),
        ({"seconds": float("nan")}, "`seconds`"),
    ],
)
def test_a_question_that_is_wrong_is_answered_so(changed: dict[str, Any], said: str) -> None:
    right = json.loads(ask_line(Ask(5, "settle", 1.0)))
    found = ask_in(json.dumps({**right, **changed}).encode())
    assert isinstance(found, NotUnderstood)
    assert found.number == 5
    assert isinstance(found.error, InvalidRequest)
    assert said in str(found.error)


@pytest.mark.parametrize("name", ["v", "ask", "what", "seconds"])
def test_a_questions_own_words_are_no_arguments(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        ask_line(Ask(1, "settle", 1.0, {name: 1}))


def test_lines_have_a_limit() -> None:
    long = "x" * MAX_LINE_BYTES
    with pytest.raises(InvalidRequest, match="over the limit"):
        ask_line(Ask(1, "settle", 1.0, {"group": long}))
    with pytest.raises(InvalidRequest, match="at most"):
        told_line(Told("left", {"member": long}))
    heard = heard_in(json.loads(answer_line(Answer(1, long))))
    assert isinstance(heard, Answer)
    assert isinstance(heard.error, AnswerTooLarge)
    heard = heard_in(json.loads(answer_line(Answer(2, error=InvalidRequest(long)))))
    assert isinstance(heard, Answer)
    assert isinstance(heard.error, AnswerTooLarge)
