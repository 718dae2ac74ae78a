"""What travels between a log's host and those who ask it comes out as it went in."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog import errors
from duolog.bridge.internal.dispatch import Dispatch
from duolog.bridge.internal.parts import StagedUploads
from duolog.errors import (
    DuologError,
    HostFailed,
    InvalidFilter,
    InvalidRequest,
    InvalidSetting,
    InvalidSql,
    OffsetOutOfRange,
    PartitionHeld,
    RegistryRefused,
    TopicRecreated,
    UnsupportedFormat,
)
from duolog.log import open_log
from duolog.log.batch import encode_small
from duolog.log.fetched import EncodedBatch, FetchedEncoded
from duolog.log.model import (
    Appended,
    AtOffset,
    AtTimestamp,
    Earliest,
    Envelope,
    Filter,
    Format,
    GroupPosition,
    Latest,
    LogStats,
    Mode,
    OffsetRange,
    Op,
    PartitionOffsets,
    PayloadMode,
    Placed,
    Record,
    Retention,
    RetentionRun,
    Route,
    Side,
    Start,
    Swept,
    Topic,
    TopicSettings,
    Writer,
)
from duolog.log.routing.filter.parse import parse_filter
from duolog.reach.address import Address, check_privacy, parse_address
from duolog.reach.calls import CALLS, GET_TOPIC
from duolog.reach.failures import error_of, failure_of, status_of
from duolog.reach.frames import from_frames, to_frames
from duolog.reach.options import RemoteOptions
from duolog.reach.protocol import local_token, new_nonce, proof_of
from duolog.reach.secret import Secret
from duolog.reach.wire import from_wire, to_wire

ROUTE = Route(
    "shop.orders",
    frozenset({Op.INSERT, Op.DELETE}),
    parse_filter("amount > 10 AND note IS NOT NULL"),
    PayloadMode.DIFF,
    ("region", "é"),
)
SETTINGS = TopicSettings(
    alias="o",
    partitions=3,
    retention=Retention(1.5, 1 << 40),
    value_format=Format.AVRO,
    envelope=Envelope.DEBEZIUM,
    dedup_window_seconds=0.5,
)
VALUES: list[tuple[Any, Any]] = [
    (Topic, Topic(7, "orders", SETTINGS, (ROUTE,), 1, 2)),
    (TopicSettings, TopicSettings()),
    (Retention, Retention()),
    (Route, Route("t", frozenset({Op.UPDATE}))),
    (Filter, parse_filter("a = 1")),
    (Writer, Writer(Mode.BATCH, "job", "topic:orders")),
    (Appended, Appended(3, (OffsetRange("t", 0, 1, 2),), 5, repeated=True)),
    (Appended | None, None),
    (tuple[Placed, ...], (Placed("t", 1, 2), Placed("u", 0, 2**62))),
    (tuple[PartitionOffsets, ...], (PartitionOffsets("t", 0, 1, 2, 3, 4),)),
    (GroupPosition | None, GroupPosition("g", "t", 0, 5, 1, 9, Side.KAFKA)),
    (GroupPosition, GroupPosition("g", "t", 0, 5, 1, 9, Side.NATIVE, is_first=True)),
    (dict[int, int], {0: 7, 12: 1}),
    (RetentionRun, RetentionRun({"t": Swept(1, 2)}, cancelled=True)),
    (LogStats, LogStats(1, 2, 3, 4, 5, 6, 7)),
    (frozenset[Op] | None, frozenset({Op.READ})),
    *((Start, start) for start in (Earliest(), Latest(), AtOffset(4), AtTimestamp(-1))),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_value_comes_back_as_it_was(kind: Any, value: Any) -> None:
    assert from_wire(kind, json.loads(json.dumps(to_wire(value)))) == value


def test_an_older_duolog_gets_no_fields_that_it_does_not_know() -> None:
    known = {"group", "topic", "partition", "position", "version", "changed_at_ms", "changed_by"}
    position = to_wire(GroupPosition("g", "t", 0, 5, 1, 9, Side.NATIVE))
    assert position.keys() == known | {"kafka"}
    assert from_wire(GroupPosition, position).is_first is False
    assert to_wire(Placed("t", 1, 2, topic_id=3)) == {"topic": "t", "partition": 1, "offset": 2}


def test_an_older_duolog_asks_without_what_it_does_not_know(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("t")
        dispatch = Dispatch(log, StagedUploads(log, cast("Any", None), 1))
        assert dispatch.run(GET_TOPIC, {"reference": "t"})["id"] == topic.id
        assert dispatch.run(GET_TOPIC, {"reference": "t", "topic_id": topic.id})["id"] == topic.id
        with pytest.raises(TopicRecreated):
            dispatch.run(GET_TOPIC, {"reference": "t", "topic_id": topic.id + 1})
        with pytest.raises(InvalidRequest, match="too much or missing"):
            dispatch.run(GET_TOPIC, {"topic_id": 1})


def test_a_key_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        from_wire(dict[int, int], {"x": 1})


@settings(deadline=None)
@given(
    st.builds(
        Record,
        value=st.none() | st.binary(),
        key=st.none() | st.binary(),
        headers=st.lists(st.tuples(st.text(), st.none() | st.binary())).map(tuple),
        partition=st.none() | st.integers(),
        ts_ms=st.none() | st.integers(),
        op=st.sampled_from(Op),
        table=st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
        payload=st.sampled_from(PayloadMode),
    )
)
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    assert from_wire(Record, json.loads(json.dumps(to_wire(record)))) == record


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (Topic, [], InvalidRequest),
        (Topic, {}, InvalidRequest),
        (Writer, {"mode": "often", "name": "n", "target": "t"}, InvalidRequest),
        (Writer, {"mode": "batch", "name": "n", "target": "t", "new": 1}, UnsupportedFormat),
        (tuple[Placed, ...], {}, InvalidRequest),
        (Record, {"value": {"base64": "no!"}}, InvalidRequest),
        (Record, {"value": {"base64": 7}}, InvalidRequest),
        (Record, {"value": None, "headers": [["name"]]}, InvalidRequest),
        (Start, {"from": "Somewhere"}, InvalidRequest),
        (Start, {"from": "AtOffset"}, InvalidRequest),
        (Start, 3, InvalidRequest),
        (Op, 77, InvalidRequest),
        (Filter, {"text": "a"}, InvalidRequest),
        (Filter, {"text": [], "tree": {}}, InvalidRequest),
        (Start, {"from": [[]]}, InvalidRequest),
        (Route, {"table": "t", "ops": [1], "columns": [[]]}, InvalidRequest),
        (Route, {"table": "t", "ops": [1], "partition_by": [None]}, InvalidRequest),
        (str | None, {}, InvalidRequest),
        (str, None, InvalidRequest),
        (float, "1", InvalidRequest),
        (int, None, InvalidRequest),
    ],
)
def test_what_no_side_would_send_is_refused(
    kind: Any, value: Any, error: type[DuologError]
) -> None:
    with pytest.raises(error):
        from_wire(kind, value)


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="object"):
        to_wire({"reference": object()})


def test_every_call_says_what_it_takes_and_gives() -> None:
    for call in CALLS.values():
        assert call.answer is not None
        arguments = dict.fromkeys(call.parameters)
        assert call.may_repeat(arguments) in {True, False}
    assert not CALLS["publish"].may_repeat({"writer": "w", "sequence": None})
    assert CALLS["publish"].may_repeat({"writer": "w", "sequence": 0})
    assert CALLS["create_topic"].may_repeat({"if_not_exists": True})


def all_errors() -> list[DuologError]:
    made: list[DuologError] = [
        OffsetOutOfRange(topic="t", partition=1, offset=9, earliest=2, latest=5),
        InvalidFilter("no such column", text="a > b", position=4),
        RegistryRefused("no", status=422, error_code=42205),
        InvalidSql("no such word", text="SELEC 1", position=0),
        PartitionHeld("It is held.", holder="ann"),
    ]
    for name in errors.__all__:
        kind = getattr(errors, name)
        if kind.__init__ is Exception.__init__:
            made.append(kind("It says: what, to what, and what to do."))
    return made


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.code)
def test_an_error_is_the_same_on_both_sides(error: DuologError) -> None:
    assert 400 <= status_of(error) < 600
    again = error_of(json.loads(json.dumps(failure_of(error))))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_an_error_of_another_version_still_says_what_it_says() -> None:
    unknown = error_of({"error": "Too new.", "code": "Brandnew", "details": {}})
    assert isinstance(unknown, HostFailed)
    assert "Too new." in str(unknown)
    changed = error_of({"error": "Words.", "code": "LogBusy", "details": {"field": 1}})
    assert isinstance(changed, HostFailed)
    assert "Words." in str(changed)
    nothing: list[Any] = [{"result": 1}, [], "error", None]
    for body in nothing:
        assert error_of(body) is None


def encoded(base: int, *values: bytes) -> EncodedBatch:
    batch, _ = encode_small([Record(value) for value in values], 5)
    return EncodedBatch(base, len(values), batch)


def test_batches_travel_as_they_are_stored() -> None:
    for batches in ((), (encoded(4, b"a", b"b"), encoded(6, b"c"))):
        fetched = FetchedEncoded("naïve", 3, 1, 5, 0, 2**60, batches)
        assert from_frames(to_frames(fetched)) == fetched


def test_a_cut_answer_is_noticed() -> None:
    whole = to_frames(FetchedEncoded("t", 3, 1, 5, 0, 9, (encoded(4, b"a", b"b"),)))
    for length in range(len(whole)):
        if length != len(whole) - len(encoded(4, b"a", b"b").encoded) - 16:  # a frame's end
            with pytest.raises(HostFailed):
                from_frames(whole[:length])


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://localhost:80", Address("localhost", 80)),
        ("https://bridge.example", Address("bridge.example", 443, is_tls=True)),
        ("http://10.0.0.7/logs/main/", Address("10.0.0.7", 80, path="/logs/main")),
        ("127.0.0.1:4242", Address("127.0.0.1", 4242)),
        ("[::1]:4242", Address("::1", 4242)),
    ],
)
def test_addresses(url: str, address: Address) -> None:
    assert parse_address(url) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "url",
    ["", " ", "ftp://h:1", "http://", "http://h:x", "http://h:99999", "http://u:p@h", "http://h?a=b",
     "http://h#f", "http://a b", None, 7],
)  # fmt: skip
def test_what_is_no_address(url: Any) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        parse_address(url)
    assert "u:p" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://far.example", True),
        ("http://localhost", True),
        ("http://127.7.7.7", True),
        ("http://[::1]", True),
        ("http://far.example", False),
        ("http://10.0.0.7", False),
        ("http://localhost.example", False),
    ],
)
def test_a_token_goes_in_the_clear_only_within_this_machine(url: str, private: bool) -> None:
    address = parse_address(url)
    assert check_privacy(address, allow_plain_http=True) is address
    if private:
        assert check_privacy(address, allow_plain_http=False) is address
    else:
        with pytest.raises(InvalidSetting, match="https"):
            check_privacy(address, allow_plain_http=False)


def test_a_secret_is_shown_to_nobody_who_does_not_ask() -> None:
    secret = Secret("hush-hush")
    assert "hush" not in f"{secret!r} {secret} {[secret]}"
    assert pickle.loads(pickle.dumps(secret)) == secret
    assert secret.reveal() == "hush-hush"
    for wrong in ("", "two words", "näh", "x" * 5000, "line\n"):
        with pytest.raises(InvalidSetting) as refusal:
            Secret(wrong)
        assert not wrong or wrong not in str(refusal.value)


def test_a_proof_is_of_one_question_one_run_one_log_and_one_address() -> None:
    secret, nonce, host = "ab" * 32, new_nonce(), new_nonce()
    proofs = {
        proof_of(secret, nonce, host, "log", "a:1"),
        proof_of(secret, new_nonce(), host, "log", "a:1"),
        proof_of(secret, nonce, new_nonce(), "log", "a:1"),
        proof_of(secret, nonce, host, "other", "a:1"),
        proof_of(secret, nonce, host, "log", "a:2"),
        proof_of("cd" * 32, nonce, host, "log", "a:1"),
        local_token(secret, nonce, host, "log").rpartition(".")[2],
    }
    assert len(proofs) == 7
    for wrong in ("", "short", "z" * 64):
        for nonces in ((wrong, host), (nonce, wrong)):
            with pytest.raises(InvalidRequest):
                proof_of(secret, *nonces, "log", "a:1")


@pytest.mark.parametrize(
    "options",
    [{"deadline_seconds": 0}, {"answer_timeout_seconds": -1}, {"cache_bytes": -1},
     {"connect_timeout_seconds": float("inf")}],
)  # fmt: skip
def test_options_without_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(options))):
        RemoteOptions(**options)
