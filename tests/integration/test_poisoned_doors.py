"""Bad records, times and bytes at a host's doors: refused by name, and nobody else notices.

The bytes are those that once got in: raw halves of surrogate pairs, UTF-16, escapes, and what a
client of its own making says to the host's internal calls.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import duolog
from duolog.client import NewRecord, Publisher
from duolog.errors import DuologError, InvalidRecord, InvalidRequest
from duolog.log.model import Op, Route
from duolog.reach.calls import PUBLISH as PUBLISH_CALL
from duolog.reach.protocol import PREFIX, PROTOCOL_HEADER, VERSION
from tests.integration.serve_host import ServedLog, served
from tests.support.host_server import TOKEN, ManyHosts, host_app
from tests.support.poisons import HALF

PUBLISH, SQL = "/v1/api/topics/publish", "/v1/api/sql"
HALF_BYTES = b"\xed\xa0\x80"
FAR_AHEAD_MS = 4_102_444_800_000  # 2100: parameters are the same in every process


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        running.log.create_topic("orders")
        running.log.add_route("orders", Route("t", frozenset({Op.INSERT})))
        yield running


@pytest.fixture(autouse=True)
def acknowledged(host: ServedLog) -> Iterator[None]:
    """What others have published before and after is read back, and nothing besides."""
    before = host.publish("orders", "before").json["offsets"][0]["offset"]
    yield
    after = host.publish("orders", "after").json["offsets"][0]["offset"]
    assert after == before + 1
    read = host.consume(topic="orders", start={"offset": before})
    assert [message["offset"] for message in read.json["messages"]] == [before, after]
    assert [record.value for record in host.log.fetch("orders", 0, before)] == [b"before", b"after"]


def message(**fields: Any) -> bytes:
    return json.dumps({"topic": "orders", "messages": [{"value": "v", **fields}]}).encode()


def row(**fields: Any) -> dict[str, Any]:
    return {"table": "t", "op": "insert", "rows": [{"a": 1}], **fields}


@pytest.mark.parametrize("in_place", ["source_table", "header", "value", "key", "writer", "field"])
@pytest.mark.parametrize("written", ["raw", "utf-16", "utf-16 with a mark", "escaped"])
def test_half_of_a_surrogate_pair_is_refused_however_it_is_written(
    host: ServedLog, in_place: str, written: str
) -> None:
    sent: dict[str, Any] = {"value": "v"}
    asked: dict[str, Any] = {"topic": "orders", "messages": [sent]}
    if in_place == "header":
        sent["headers"] = [{"name": "HALF", "value": "v"}]
    elif in_place == "writer":
        asked |= {"writer": "HALF", "sequence": 0}
    elif in_place == "field":
        sent["value"] = {"HALF": 1}
    else:
        sent[in_place] = "HALF"
    text = json.dumps(asked)
    if written == "raw":
        body = text.encode().replace(b"HALF", HALF_BYTES)
    elif written == "escaped":
        body = text.replace("HALF", "\\ud800").encode()
    else:
        coding = "utf-16-le" if written == "utf-16" else "utf-16"
        body = text.replace("HALF", HALF).encode(coding, errors="surrogatepass")
    reply = host.ask(PUBLISH, body)
    assert (reply.status, reply.code) == (400, "NotJson")


@pytest.mark.parametrize("path", [PUBLISH, SQL, "/v1/api/topics/consume", "/v1/api/topics/ack"])
def test_a_body_in_another_encoding_is_refused_everywhere(host: ServedLog, path: str) -> None:
    for coding in ("utf-16", "utf-16-be", "utf-32", "utf-32-le"):
        reply = host.ask(path, '{"topic": "orders", "sql": "SHOW TOPICS"}'.encode(coding))
        assert (reply.status, reply.code) == (400, "NotJson")
        assert "UTF-8" in reply.json["error"]


def test_sql_with_half_of_a_pair_is_refused(host: ServedLog) -> None:
    for half in (HALF_BYTES, b"\\ud800"):
        reply = host.ask(SQL, b'{"sql": "CREATE TOPIC a' + half + b'"}')
        assert (reply.status, reply.code) == (400, "NotJson")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (message(ts=1.5), 422, "InvalidRequest"),
        (message(ts=True), 422, "InvalidRequest"),
        (message(ts="5"), 422, "InvalidRequest"),
        (message(ts=2**63), 422, "InvalidRequest"),
        (message(ts=-1), 422, "InvalidRequest"),
        (message(ts=float("nan")), 422, "InvalidRequest"),
        (message(ts=FAR_AHEAD_MS * 1000), 422, "InvalidTimestamp"),
        (message(ts=FAR_AHEAD_MS), 422, "InvalidTimestamp"),
        (message(ts=2**63 - 1), 422, "InvalidTimestamp"),
        (message(op="9"), 422, "InvalidRecord"),
        (message(op=9), 422, "InvalidRequest"),
        (message(payload_mode=1), 422, "InvalidRequest"),
        (message(source_table=5), 422, "InvalidRequest"),
        (message(source_table="t" * 2000), 422, "InvalidRecord"),
        (message(headers=[{"name": "n" * 2000}]), 422, "InvalidRequest"),
        (message(headers={"a": "b"}), 422, "InvalidRequest"),
        (message(headers=[{"name": 5}]), 422, "InvalidRequest"),
        (message(headers=[{"name": "a"}] * 1001), 422, "TooManyHeaders"),
        (message(partition_id=0.0), 422, "InvalidRequest"),
        (message(partition_id=True), 422, "InvalidRequest"),
        (message(partition_id=7), 404, "UnknownPartition"),
        (message(headers=[{"name": "a", "value": "x" * (1 << 19)}] * 3), 413, "RecordTooLarge"),
        (json.dumps(row(ts=FAR_AHEAD_MS)).encode(), 422, "InvalidTimestamp"),
        (json.dumps(row(ts=1.5)).encode(), 422, "InvalidRequest"),
        (json.dumps(row(key_columns=[5])).encode(), 422, "InvalidRequest"),
    ],
)
def test_a_bad_message_is_refused_by_name(
    host: ServedLog, body: bytes, status: int, code: str
) -> None:
    reply = host.ask(PUBLISH, body)
    assert (reply.status, reply.code) == (status, code)


def test_a_time_in_microseconds_is_said_to_be_one(host: ServedLog) -> None:
    now_ms = int(time.time() * 1000)
    reply = host.ask(PUBLISH, message(ts=now_ms * 1000))
    assert f"microseconds: give milliseconds since 1970 ({now_ms})" in reply.json["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        NewRecord("v", table=HALF),
        NewRecord("v", headers={HALF: "v"}),
        NewRecord({HALF: 1}),
        NewRecord("v", ts_ms=FAR_AHEAD_MS),
        NewRecord("v", ts_ms=1.5),  # type: ignore[arg-type]
        NewRecord("v", op=HALF),
        NewRecord("v", op=9),  # type: ignore[arg-type]
        NewRecord("v", table=5),  # type: ignore[arg-type]
    ],
)
def test_the_client_refuses_it_by_name_too(host: ServedLog, wrong: NewRecord) -> None:
    with Publisher(url=host.url) as publisher, pytest.raises(InvalidRequest) as refused:
        publisher.publish_many("orders", [wrong])
    str(refused.value).encode()


def test_the_client_refuses_names_and_rows_with_half_of_a_pair(host: ServedLog) -> None:
    with Publisher(url=host.url) as publisher:
        with pytest.raises(InvalidRequest):
            publisher.publish(HALF, "v")
        with pytest.raises(InvalidRequest):
            publisher.publish_rows(HALF, "insert", [{"a": 1}])
        with pytest.raises(InvalidRequest):
            publisher.publish_rows("t", "insert", [{"a": 1}], [HALF])
        with pytest.raises(InvalidRecord):
            publisher.publish_rows("t", "insert", [{"a": HALF}])


@pytest.fixture(scope="module")
def hosts() -> Iterator[ManyHosts]:
    hosts = ManyHosts()
    yield hosts
    hosts.stop()


_PLAIN: dict[str, Any] = {
    "value": {"base64": "dg=="},
    "key": None,
    "headers": [],
    "partition": None,
    "ts_ms": None,
    "op": 0,
    "table": None,
    "payload": 0,
}
_SAID: dict[str, Any] = {
    "a float as time": {"ts_ms": 1.5},
    "a bool as time": {"ts_ms": True},
    "a time far ahead": {"ts_ms": 2**60},
    "a time beyond 64 bits": {"ts_ms": 2**70},
    "text as value": {"value": "v"},
    "a list as value": {"value": [1]},
    "bytes that are not base64": {"value": {"base64": "?"}},
    "an unknown op": {"op": 9},
    "an op as a bool": {"op": True},
    "an op as a float": {"op": 1.0},
    "an op as a list": {"op": []},
    "no op": {"op": None},
    "a number as table": {"table": 5},
    "half a pair as table": {"table": HALF},
    "half a pair as header": {"headers": [[HALF, None]]},
    "a number as header": {"headers": [[5, None]]},
    "a header of one part": {"headers": [["a"]]},
    "headers as text": {"headers": "ab"},
    "headers as an object": {"headers": {"a": "b"}},
    "no headers": {"headers": None},
    "a partition as a bool": {"partition": False},
    "a partition as a float": {"partition": 0.0},
    "a payload that is unknown": {"payload": 77},
}


@pytest.mark.parametrize("said", _SAID.values(), ids=_SAID.keys())
def test_a_client_of_its_own_making_is_refused_by_the_host(
    tmp_path: Path, hosts: ManyHosts, said: dict[str, Any]
) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        url = hosts.add(host_app(log))
        log.create_topic("orders")
        given = dict.fromkeys(PUBLISH_CALL.parameters) | {"reference": "orders", "in_order": False}
        acknowledged = json.dumps({**given, "records": [_PLAIN]}).encode()
        assert _asked(url, "publish", acknowledged)[0] == 200
        sent = {**given, "records": [{**_PLAIN, **said}]}
        for body in (
            json.dumps(sent).encode(),
            json.dumps(sent, ensure_ascii=False).encode(errors="surrogatepass"),
            json.dumps(sent).encode("utf-16"),
        ):
            status, answer = _asked(url, "publish", body)
            assert 400 <= status < 500, answer
            assert issubclass(getattr(duolog.errors, answer["code"]), DuologError)
        hosts.remove(url)
        assert [record.value for record in log.fetch("orders", 0, 0)] == [b"v"]


def _asked(url: str, call: str, body: bytes) -> tuple[int, Any]:
    headers = {
        PROTOCOL_HEADER: str(VERSION),
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
    }
    try:
        with urlopen(Request(f"{url}{PREFIX}/call/{call}", body, headers), timeout=60) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)
