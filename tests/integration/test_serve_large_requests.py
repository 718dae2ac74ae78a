"""While large requests are parsed, and many wait for it, the host answers all others."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.rules import BodyLimits
from duolog.bridge.http.tokens import add_token
from duolog.bridge.http.workers import PARSE_THREADS
from duolog.log.model import Op, Record, Route, TopicSettings
from duolog.reach.protocol import PREFIX, PROTOCOL_HEADER, VERSION
from duolog.server.json_pieces import SMALL_BYTES
from duolog.server.request_memory import RequestMemory
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served, until
from tests.support.host_server import TOKEN, Host

PUBLISH = "/v1/api/topics/publish"
CONSUME = "/v1/api/topics/consume"
SQL = "/v1/api/sql"
HEADER = {"name": "a", "value": "b"}
MANY_HEADERS = {"value": "v", "headers": [HEADER] * 900}
AT_ONCE = 5


class Gate:
    """Nothing that is large is parsed while it is closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._may_go = threading.Event()
        self._guard = threading.Lock()
        self.arrived = 0
        decode = json.JSONDecoder.raw_decode

        def held(decoder: json.JSONDecoder, text: str, idx: int = 0) -> Any:
            if len(text) > SMALL_BYTES and not self._may_go.is_set():
                with self._guard:
                    self.arrived += 1
                assert self._may_go.wait(DEADLINE_SECONDS)
            return decode(decoder, text, idx)

        monkeypatch.setattr(json.JSONDecoder, "raw_decode", held)

    def open(self) -> None:
        self._may_go.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.open()


def publish(*messages: Any) -> bytes:
    return json.dumps({"messages": messages, "topic": "orders"}).encode()


WRONG_AT_ITS_END = publish(*[MANY_HEADERS] * 100, {"value": 1, "unknown": 1})
LARGE_TEXT = "x" * (2 * SMALL_BYTES)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (PUBLISH, WRONG_AT_ITS_END, 422),
        (PUBLISH, publish(*[MANY_HEADERS] * 100)[:-1], 400),
        (PUBLISH, publish({"value": LARGE_TEXT}), 200),
        (PUBLISH, {"rows": [{"a": LARGE_TEXT}], "table": "none", "op": "insert"}, 404),
        ("/v1/api/topics/consume", {"group_id": LARGE_TEXT, "topic": "orders"}, 422),
        ("/v1/api/topics/ack", {"group_id": LARGE_TEXT, "topic": "orders"}, 422),
        ("/v1/api/topics/latest-offsets", {"topic": LARGE_TEXT}, 422),
        ("/v1/api/sql", {"sql": f"NOTHING '{LARGE_TEXT}'"}, 422),
        (PUBLISH, b'{"a":"\\ud800' + LARGE_TEXT.encode() + b'"}', 400),
    ],
)
def test_a_host_is_healthy_while_it_parses(
    tmp_path: Path, gate: Gate, path: str, body: Any, status: int
) -> None:
    with served(tmp_path / "log") as host, ThreadPoolExecutor(AT_ONCE) as clients:
        try:
            host.log.create_topic("orders")
            asked = [clients.submit(host.ask, path, body) for _ in range(AT_ONCE)]
            until(lambda: gate.arrived == PARSE_THREADS)
            for _ in range(20):
                assert host.ask("/healthz").status == 200
            assert host.ask("/readyz").status == 200
            assert host.publish("orders", "small").status == 200
            assert not any(each.done() for each in asked)
            assert gate.arrived == PARSE_THREADS  # the others wait for their turn
        finally:
            gate.open()
        assert [each.result(DEADLINE_SECONDS).status for each in asked] == [status] * AT_ONCE


def test_more_large_requests_than_may_wait_are_refused_and_small_ones_are_not(
    tmp_path: Path, gate: Gate
) -> None:
    limits = BodyLimits(max_large_requests=3)
    body = publish({"value": LARGE_TEXT})
    with served(tmp_path / "log", limits=limits) as host, ThreadPoolExecutor(8) as clients:
        try:
            host.log.create_topic("orders")
            asked = [clients.submit(host.ask, PUBLISH, body) for _ in range(8)]
            until(lambda: sum(each.done() for each in asked) == 5)
            refused = [each.result() for each in asked if each.done()]
            assert host.publish("orders", "small").status == 200
        finally:
            gate.open()
        taken = [each.result(DEADLINE_SECONDS) for each in asked]
        assert sorted(each.status for each in taken) == [200] * 3 + [503] * 5
        for reply in refused:
            assert (reply.status, reply.code) == (503, "TooBusy")
            assert reply.headers["retry-after"] == "1"
            assert "3 large requests" in reply.json["error"]
        assert host.ask(PUBLISH, body).status == 200


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        topic = running.log.create_topic("orders", TopicSettings(partitions=2))
        running.log.add_route(topic.name, Route("t", frozenset({Op.INSERT})))
        yield running


def refused(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code


def test_too_many_headers_are_refused_by_name_and_nothing_is_written(host: ServedLog) -> None:
    before = host.log.offsets("orders")
    of_one = host.ask(PUBLISH, publish({"value": 1, "headers": [HEADER] * 1001}))
    assert refused(of_one) == (422, "TooManyHeaders")
    assert "max_record_headers" in of_one.json["error"]
    of_all = host.ask(PUBLISH, publish(*[{"value": 1, "headers": [HEADER] * 1000}] * 101))
    assert refused(of_all) == (422, "TooManyHeaders")
    assert "max_request_headers" in of_all.json["error"]
    assert host.log.offsets("orders") == before


def test_too_many_values_are_refused_by_name_and_nothing_is_written(host: ServedLog) -> None:
    before = host.log.offsets("orders")
    of_one = host.ask(PUBLISH, publish({"value": [0] * 200_000}))
    assert refused(of_one) == (422, "TooManyValues")
    assert "max_record_values" in of_one.json["error"]
    of_all = host.ask(PUBLISH, publish(*[{"value": [0] * 90_000}] * 12))
    assert refused(of_all) == (422, "TooManyValues")
    assert "max_request_values" in of_all.json["error"]
    assert host.log.offsets("orders") == before


def test_large_messages_and_rows_are_written_as_they_are(host: ServedLog) -> None:
    text = "é" * SMALL_BYTES
    sent = [{"value": text, "key": "k", "headers": [HEADER]}, {"value": {"a": [1]}, "key": "k"}]
    placed = host.ask(PUBLISH, publish(*sent)).json["offsets"]
    assert [each["offset"] for each in placed] == [placed[0]["offset"], placed[0]["offset"] + 1]
    start = placed[0]["offset"]
    read = list(host.log.fetch("orders", placed[0]["partition_id"], start, max_records=2))
    assert [(each.value, each.key) for each in read] == [
        (text.encode(), b"k"),
        (b'{"a":[1]}', b"k"),
    ]
    assert read[0].headers == (("a", b"b"),)
    rows = [{"id": number, "text": "x" * 500} for number in range(1000)]
    asked = {"table": "t", "op": "insert", "rows": rows, "key_columns": ["id"]}
    reply = host.ask(PUBLISH, asked)
    assert reply.status == 200, reply.body
    assert len(reply.json["offsets"]) == 1000


ROWS = {"table": "t", "op": "insert", "rows": [{"a": list(range(90))}] * 300}


def test_large_requests_wait_in_line_for_memory_and_all_are_written(tmp_path: Path) -> None:
    limits = BodyLimits(large_request_memory=6 << 20)  # for one of them at a time
    with served(tmp_path / "log", limits=limits) as host, ThreadPoolExecutor(8) as clients:
        topic = host.log.create_topic("orders")
        host.log.add_route(topic.name, Route("t", frozenset({Op.INSERT})))
        asked = [clients.submit(host.ask, PUBLISH, ROWS) for _ in range(8)]
        assert [each.result(DEADLINE_SECONDS).status for each in asked] == [200] * 8
        assert host.log.offsets("orders")[0].next_offset == 8 * 300


def test_a_request_that_would_take_too_much_memory_is_refused_by_name(tmp_path: Path) -> None:
    with served(tmp_path / "log", limits=BodyLimits(large_request_memory=2 << 20)) as host:
        host.log.create_topic("orders")
        reply = host.ask(PUBLISH, ROWS)
        assert refused(reply) == (413, "RequestTooLarge")
        assert "serve.large_request_memory" in reply.json["error"]
        assert host.publish("orders", "x" * SMALL_BYTES * 2).status == 200
    with Host(tmp_path / "log", memory=RequestMemory(2 << 20)) as internal:
        values = internal_publish(*[b"A"] * 20_000)
        status, said = asked_internally(internal, "/call/publish", values)
        assert (status, said["code"]) == (413, "RequestTooLarge")
        status, _ = asked_internally(internal, "/call/publish", internal_publish(b"A" * 100_000))
        assert status == 200
        assert internal.log.offsets("orders")[0].next_offset == 2


def test_answers_that_nobody_takes_keep_others_from_no_reading(tmp_path: Path) -> None:
    """But there are only so many bytes of them, for one token and for all."""
    path = tmp_path / "tokens"
    slow, other = (add_token(path, Caller(name, Role.SERVICE)) for name in ("slow", "other"))
    limits = BodyLimits(answer_memory=20 << 20)
    asked = {"topic": "orders", "start": "Earliest", "timeout_seconds": 0}
    head = "POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
    with served(tmp_path / "log", tokens=path, limits=limits) as host, ExitStack() as clients:
        host.log.create_topic("orders")
        host.log.publish("orders", [Record(b"x" * 1_000_000) for _ in range(12)])

        def ask_and_take_nothing(token: str) -> None:
            body = json.dumps(asked).encode()
            client = socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)
            clients.enter_context(client).sendall(
                f"{head}Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )

        def held() -> int:
            return host.host.answers.bytes_held

        ask_and_take_nothing(slow)
        until(lambda: held() > 10 << 20)
        assert host.ask(CONSUME, asked, token=other).status == 200
        assert host.ask(SQL, {"sql": "SELECT 1 AS n"}, token=other).status == 200
        reply = host.ask(CONSUME, asked, token=slow)
        assert (reply.status, reply.code) == (429, "TokenLimitReached")
        ask_and_take_nothing(other)
        until(lambda: held() > 20 << 20)
        third = add_token(path, Caller("third", Role.SERVICE))
        for wanted in ((CONSUME, asked), (SQL, {"sql": "CONSUME FROM orders LIMIT 1"})):
            reply = host.ask(*wanted, token=third)
            assert (reply.status, reply.code) == (503, "TooBusy")
            assert "answer_memory" in reply.json["error"]
        assert host.ask("/healthz").status == 200
        clients.close()
        until(lambda: held() == 0)
        assert host.ask(CONSUME, asked, token=slow).status == 200


def test_a_look_reads_no_more_than_it_has_memory_for(tmp_path: Path) -> None:
    """Also where the records that it comes to are much larger than most of their topic."""
    with served(tmp_path / "log") as host:
        host.log.create_topic("orders")
        for _ in range(10):
            host.log.publish("orders", [Record(b"%d" % each) for each in range(2000)])
        host.log.publish("orders", [Record(b"x" * 900_000) for _ in range(7)])
        at, sizes = 20_000, list[int]()
        while at < 20_007:
            asked = {"start": {"offset": at}, "partition_id": 0, "limit": 7}
            reply = host.consume(topic="orders", **asked)
            sizes.append(len(reply.json["messages"]))
            at = reply.json["next_offset"]
        assert sum(sizes) == 7
        assert max(sizes) <= 2


def test_statements_that_answer_much_may_follow_one_another(tmp_path: Path) -> None:
    with served(tmp_path / "log") as host:
        for name in ("first", "second"):
            host.log.create_topic(name)
            host.log.publish(name, [Record(b"x" * 900_000) for _ in range(7)])
        text = "CONSUME FROM first LIMIT 7; CONSUME FROM second LIMIT 7; SELECT 1 AS n"
        reply = host.ask(SQL, {"sql": text})
        assert reply.status == 200, reply.body[:300]
        assert [len(each["rows"]) for each in reply.json["results"]] == [7, 7, 1]


def test_a_registry_takes_a_long_schema_and_no_body_of_many_values(host: ServedLog) -> None:
    path = "/registry/subjects/long/versions"
    fields = [{"name": f"f{each}", "type": "int", "doc": "x" * 50} for each in range(2000)]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    assert len(schema) > SMALL_BYTES
    assert host.ask(path, {"schema": schema}).status == 200
    reply = host.ask(path, {"schema": schema, "references": [{}] * 20_000})
    assert reply.status == 400
    assert "10000 JSON values" in reply.json["message"]


def asked_internally(host: Host, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=DEADLINE_SECONDS)
    headers = {PROTOCOL_HEADER: str(VERSION), "Authorization": f"Bearer {TOKEN}"}
    try:
        connection.request("GET" if body is None else "POST", f"{PREFIX}{path}", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def internal_publish(*values: bytes) -> bytes:
    records = [{"value": {"base64": each.decode()}} for each in values]
    sequenced = {"writer": None, "sequence": None, "in_order": False}
    return json.dumps({"records": records, "reference": "orders", **sequenced}).encode()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/call/publish", internal_publish(b"A" * 2 * SMALL_BYTES), 200),
        ("/call/publish", internal_publish(b"A" * 2 * SMALL_BYTES)[:-1], 400),
        ("/wait", json.dumps({"seconds": LARGE_TEXT, "positions": []}).encode(), 400),
    ],
)
def test_other_duolog_processes_are_answered_while_a_large_call_is_parsed(
    tmp_path: Path, gate: Gate, path: str, body: bytes, status: int
) -> None:
    with Host(tmp_path / "log") as host, ThreadPoolExecutor(AT_ONCE) as clients:
        try:
            host.log.create_topic("orders")
            ask: Callable[..., tuple[int, Any]] = asked_internally
            asked = [clients.submit(ask, host, path, body) for _ in range(AT_ONCE)]
            until(lambda: gate.arrived == 2)
            for _ in range(20):
                assert asked_internally(host, "/hello")[0] == 200
            assert not any(each.done() for each in asked)
        finally:
            gate.open()
        assert [each.result(DEADLINE_SECONDS)[0] for each in asked] == [status] * AT_ONCE


def test_a_wait_names_no_more_positions_than_a_host_looks_at(tmp_path: Path) -> None:
    with Host(tmp_path / "log") as host:
        host.log.create_topic("orders")
        positions = [["orders", number, 0] for number in range((1 << 17) + 1)]
        body = json.dumps({"positions": positions, "seconds": 0}).encode()
        status, said = asked_internally(host, "/wait", body)
        assert (status, said["code"]) == (400, "InvalidRequest")
        assert "131072 positions" in said["error"]
