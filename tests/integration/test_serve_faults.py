"""Bad input and trouble: the right status and code, nothing lost, and the host lives."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.rules import BodyLimits
from duolog.bridge.http.tokens import add_token
from duolog.errors import DiskFull, LogClosed, NotWritten, OutcomeUnknown
from duolog.log.model import Record, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served, until

CONSUME, ACK = "/v1/api/topics/consume", "/v1/api/topics/ack"
PUBLISH, OFFSETS = "/v1/api/topics/publish", "/v1/api/topics/latest-offsets"
LIMITS = BodyLimits(max_body_bytes=100_000, read_within_seconds=0.3)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log", limits=LIMITS) as running:
        running.log.create_topic("orders", TopicSettings(partitions=2))
        running.publish("orders", "a")
        yield running
        assert running.ask("/healthz").status == 200


def asked(**more: Any) -> dict[str, Any]:
    return {"topic": "orders", "timeout_seconds": 0, **more}


@pytest.mark.parametrize(
    ("path", "content", "status", "code"),
    [
        (CONSUME, b"", 422, "InvalidRequest"),
        (CONSUME, b"{", 400, "NotJson"),
        (CONSUME, b"\xff", 400, "NotJson"),
        (CONSUME, b"[" * 90_000, 400, "NotJson"),
        (CONSUME, b'{"a":' * 15_000, 400, "NotJson"),
        (CONSUME, b'{"topic":"\\ud800"}', 400, "NotJson"),
        (CONSUME, b"1" * 90_000, 400, "NotJson"),
        (CONSUME, b"[]", 422, "InvalidRequest"),
        (CONSUME, b"null", 422, "InvalidRequest"),
        (CONSUME, b'"x"', 422, "InvalidRequest"),
        (CONSUME, {}, 422, "InvalidRequest"),
        (CONSUME, {"topic": "orders", "topic_id": "orders"}, 422, "InvalidRequest"),
        (CONSUME, {"topic": ""}, 422, "InvalidRequest"),
        (CONSUME, {"topic": None}, 422, "InvalidRequest"),
        (CONSUME, {"topic": True}, 422, "InvalidRequest"),
        (CONSUME, {"topic": -1}, 422, "InvalidRequest"),
        (CONSUME, {"topic": ["orders"]}, 422, "InvalidRequest"),
        (CONSUME, {"topic": "x" * 300}, 422, "InvalidRequest"),
        (CONSUME, {"topic": "none"}, 404, "UnknownTopic"),
        (CONSUME, {"topic": "'; DROP TOPIC orders; --"}, 404, "UnknownTopic"),
        (CONSUME, {"topic": "../../etc/passwd"}, 404, "UnknownTopic"),
        (CONSUME, asked(unknown=1), 422, "InvalidRequest"),
        (CONSUME, asked(limit=0), 422, "InvalidRequest"),
        (CONSUME, asked(limit=-1), 422, "InvalidRequest"),
        (CONSUME, asked(limit=10**30), 422, "InvalidRequest"),
        (CONSUME, asked(limit="5"), 422, "InvalidRequest"),
        (CONSUME, asked(limit=True), 422, "InvalidRequest"),
        (CONSUME, asked(limit=1.5), 422, "InvalidRequest"),
        (CONSUME, asked(max_bytes=0), 422, "InvalidRequest"),
        (CONSUME, asked(max_bytes=10**12), 422, "InvalidRequest"),
        (CONSUME, asked(partition_id=-1), 422, "InvalidRequest"),
        (CONSUME, asked(partition_id=2), 404, "UnknownPartition"),
        (CONSUME, asked(partition_id=10**9), 422, "InvalidRequest"),
        (CONSUME, asked(group_id=""), 422, "InvalidRequest"),
        (CONSUME, asked(group_id=7), 422, "InvalidRequest"),
        (CONSUME, asked(group_id="a\nb"), 422, "InvalidName"),
        (CONSUME, asked(group_id="ü" * 200), 422, "InvalidName"),
        (CONSUME, asked(start={"Offset": -1}), 422, "InvalidRequest"),
        (CONSUME, asked(start="Now"), 422, "InvalidRequest"),
        (CONSUME, asked(timeout_seconds=-1), 422, "InvalidRequest"),
        (CONSUME, b'{"topic":"orders","timeout_seconds":NaN}', 422, "InvalidRequest"),
        (CONSUME, b'{"topic":"orders","timeout_seconds":1e999}', 422, "InvalidRequest"),
        (CONSUME, asked(timeout_seconds="soon"), 422, "InvalidRequest"),
        (ACK, {"topic": "orders", "group_id": "g"}, 422, "InvalidRequest"),
        (ACK, {"topic": "orders", "group_id": "g", "upto_offset": -1}, 422, "InvalidRequest"),
        (ACK, {"topic": "orders", "group_id": "g", "upto_offset": 0}, 422, "InvalidRequest"),
        (
            ACK,
            {"topic": "orders", "group_id": "g", "upto_offset": 99, "partition_id": 0},
            409,
            "AckBeyondHead",
        ),
        (
            ACK,
            {"topic": "orders", "group_id": "g", "upto_offset": 0, "partition_id": 7},
            404,
            "UnknownPartition",
        ),
        (OFFSETS, {"topic": "none"}, 404, "UnknownTopic"),
        (PUBLISH, {"topic": "orders"}, 422, "InvalidRequest"),
        (PUBLISH, {"messages": [{"value": "a"}]}, 422, "InvalidRequest"),
        (PUBLISH, {"topic": "orders", "messages": [{}]}, 422, "InvalidRecord"),
        (PUBLISH, {"topic": "orders", "messages": ["a"]}, 422, "InvalidRequest"),
        (PUBLISH, {"topic": "none", "messages": [{"value": "a"}]}, 404, "UnknownTopic"),
        (
            PUBLISH,
            {"topic": "orders", "messages": [{"value": "a", "partition_id": 5}]},
            404,
            "UnknownPartition",
        ),
        (
            PUBLISH,
            {"topic": "orders", "messages": [{"value": "a"}], "writer": "w"},
            422,
            "InvalidRequest",
        ),
        (
            PUBLISH,
            {"topic": "orders", "messages": [{"value": "a"}], "table": "t", "op": "insert"},
            422,
            "InvalidRequest",
        ),
        (PUBLISH, {"table": "none", "op": "insert", "rows": [{"a": 1}]}, 404, "UnknownRoute"),
        (PUBLISH, {"table": "t", "op": "upsert", "rows": [{"a": 1}]}, 422, "InvalidRecord"),
        (PUBLISH, {"table": "t", "rows": [{"a": 1}]}, 422, "InvalidRequest"),
        (PUBLISH, {"table": "t", "op": "insert", "rows": [1]}, 422, "InvalidRequest"),
        ("/v1/api/topics/none", {}, 404, "NotFound"),
        ("/v1/api/topics/consume/", {}, 404, "NotFound"),
    ],
)
def test_bad_requests_get_the_right_status_and_code(
    host: ServedLog, path: str, content: Any, status: int, code: str
) -> None:
    before = host.log.offsets("orders")
    reply = host.ask(path, content)
    assert (reply.status, reply.code) == (status, code), reply.body
    assert reply.json["error"]
    assert reply.headers["content-type"] == "application/json"
    assert host.log.offsets("orders") == before


def test_a_message_names_the_field_and_never_repeats_what_was_sent(host: ServedLog) -> None:
    reply = host.ask(PUBLISH, {"topic": "orders", "messages": [{"value": "a", "ts": "hunter2"}]})
    assert reply.json["error"].startswith("messages.0.ts: ")
    assert b"hunter2" not in reply.body


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_is_not_said_to_be_json_is_refused(host: ServedLog, kind: str) -> None:
    reply = host.ask(OFFSETS, {"topic": "orders"}, headers={"Content-Type": kind})
    assert (reply.status, reply.code) == (415, "UnsupportedMediaType")
    assert "--json" in reply.json["error"]


def test_other_methods_are_refused_with_those_that_are_taken(host: ServedLog) -> None:
    for method, path, allowed in (("GET", CONSUME, "POST"), ("DELETE", "/healthz", "GET")):
        reply = host.ask(path, method=method)
        assert (reply.status, reply.code) == (405, "MethodNotAllowed")
        assert reply.headers["allow"] == allowed


def test_bodies_that_are_too_large_are_refused_before_they_are_read(host: ServedLog) -> None:
    large = {"topic": "orders", "messages": [{"value": "x" * 200_000}]}
    assert host.ask(PUBLISH, large).code == "BodyTooLarge"
    with socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS) as client:
        client.sendall(
            b"POST /v1/api/topics/publish HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"%x\r\n%b\r\n" % (50_000, b"x" * 50_000)
        for _ in range(3):
            client.sendall(chunk)
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_a_record_that_is_too_large_is_refused_by_its_own_name(tmp_path: Path) -> None:
    with served(tmp_path / "log") as host:
        host.log.create_topic("orders")
        reply = host.publish("orders", "x" * (2 << 20))
        assert (reply.status, reply.code) == (413, "RecordTooLarge")


def send_slowly(host: ServedLog, size: int, token: str = "") -> socket.socket:
    """A publish of so many bytes, of which the last one does not come."""
    slow = socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)
    slow.sendall(
        b"POST /v1/api/topics/publish HTTP/1.1\r\nHost: localhost\r\n"
        b"Authorization: Bearer %b\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (token.encode(), size, b" " * (size - 1))
    )
    return slow


def test_large_requests_under_way_may_hold_only_so_many_bytes(tmp_path: Path) -> None:
    limits = BodyLimits(max_body_bytes=200_000, max_bytes_at_once=300_000)
    large = "x" * 150_000
    with served(tmp_path / "log", limits=limits) as host:
        host.log.create_topic("orders")
        with send_slowly(host, 200_000):
            until(lambda: host.publish("orders", large).status == 503)
            reply = host.publish("orders", large)
            assert host.publish("orders", "a small one").status == 200
        assert (reply.status, reply.code) == (503, "TooBusy")
        assert reply.headers["retry-after"] == "1"
        until(lambda: host.publish("orders", large).status == 200)


def test_one_token_may_hold_half_of_them(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    slow, other = (add_token(path, Caller(name, Role.SERVICE)) for name in ("slow", "other"))
    limits = BodyLimits(max_body_bytes=200_000, max_bytes_at_once=400_000)
    body = {"topic": "orders", "messages": [{"value": "x" * 150_000}]}
    with served(tmp_path / "log", tokens=path, limits=limits) as host:
        host.log.create_topic("orders")

        def publish(token: str) -> Reply:
            return host.ask("/v1/api/topics/publish", body, token=token)

        with send_slowly(host, 200_000, slow):
            until(lambda: publish(slow).status == 429)
            reply = publish(slow)
            assert publish(other).status == 200
        assert (reply.status, reply.code) == (429, "TokenLimitReached")
        assert reply.headers["retry-after"] == "1"
        until(lambda: publish(slow).status == 200)


def test_a_body_that_does_not_come_is_given_up(host: ServedLog) -> None:
    with socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS) as client:
        client.sendall(
            b"POST /v1/api/topics/publish HTTP/1.1\r\nHost: localhost\r\n"
            b'Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"topic"'
        )
        assert client.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost", 200),
        ("localhost:7070", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:7070", 200),
        ("[::1]", 200),
        ("evil.example", 403),
        ("evil.example:7070", 403),
        ("127.0.0.1.evil.example:7070", 403),
        ("10.0.0.1", 403),
        ("", 403),
    ],
)
def test_a_page_that_points_its_own_name_here_gets_nothing(
    host: ServedLog, name: str, status: int
) -> None:
    for path in ("/healthz", "/metrics", "/v1/api/topics/latest-offsets"):
        content = {"topic": "orders"} if path.startswith("/v1") else None
        assert host.ask(path, content, headers={"Host": name}).status == status


@pytest.mark.parametrize("names", [("localhost", "evil.example"), ("evil.example", "localhost")])
def test_a_foreign_name_beside_an_own_one_is_foreign(
    host: ServedLog, names: tuple[str, str]
) -> None:
    lines = ["GET /metrics HTTP/1.1", *(f"Host: {name}" for name in names), "\r\n"]
    with socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS) as client:
        client.sendall("\r\n".join(lines).encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 403 ")


def test_what_is_wrong_many_times_is_told_once_and_quickly(tmp_path: Path) -> None:
    with served(tmp_path / "log") as host:
        host.log.create_topic("orders")
        for content, code in (
            ({"topic": "orders", "messages": [1] * 10_000}, "InvalidRequest"),
            ({"topic": "orders", "messages": [{}] * 1_000_000}, "TooManyValues"),
            (
                {"topic": "orders", "messages": [{str(each): 1 for each in range(300_000)}]},
                "TooManyValues",
            ),
            ({str(each): 1 for each in range(90_000)}, "InvalidRequest"),
            ({"table": "t", "op": "insert", "rows": [1] * 10_000}, "InvalidRequest"),
        ):
            reply = host.ask(PUBLISH, content)
            assert (reply.status, reply.code) == (422, code)
            assert "more mistakes" not in reply.json["error"]


def test_ten_megabytes_are_too_large_and_seven_are_not(tmp_path: Path) -> None:
    with served(tmp_path / "log") as host:
        host.log.create_topic("orders")
        assert host.publish("orders", *["x" * 100_000] * 100).code == "BodyTooLarge"
        assert host.publish("orders", *["x" * 100_000] * 70).status == 200
        assert host.log.offsets("orders")[0].next_offset == 70


def test_what_is_no_http_is_answered_and_logged_on_one_line(host: ServedLog) -> None:
    with socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS) as client:
        client.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_takes_nothing_holds_nobody_up(host: ServedLog) -> None:
    host.log.create_topic("wide")
    for _ in range(20):
        host.log.publish("wide", [Record(b"x" * 500_000)])
    body = json.dumps({"topic": "wide", "start": "Earliest", "max_bytes": 64 << 20}).encode()
    clients = []
    try:
        for _ in range(4):
            client = socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(
                b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            clients.append(client)
        assert host.publish("orders", "meanwhile").status == 200
        assert host.consume(topic="wide", start="Earliest", limit=1).status == 200
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(
    ("error", "retry_after"),
    [
        (DiskFull("Too little space."), "5"),
        (NotWritten("The disk refused it."), "5"),
        (OutcomeUnknown("Send it again."), "1"),
        (LogClosed("It is closed."), "5"),
    ],
)
def test_writes_that_are_refused_say_when_to_try_again(
    host: ServedLog, monkeypatch: pytest.MonkeyPatch, error: Exception, retry_after: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(host.log, "publish_then", refuse)
    reply = host.publish("orders", "a")
    assert (reply.status, reply.code) == (503, type(error).__name__)
    assert reply.headers["retry-after"] == retry_after


def test_a_failure_that_nobody_foresaw_is_logged_and_not_told(
    host: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("inner words")

    monkeypatch.setattr(host.log, "publish_then", fail)
    reply = host.ask(
        PUBLISH,
        {"topic": "orders", "messages": [{"value": "a"}]},
        headers={"X-Request-Id": "mine-1"},
    )
    assert (reply.status, reply.code) == (500, "InternalError")
    assert b"inner words" not in reply.body
    assert reply.headers["x-request-id"] == "mine-1"
    said = [json.loads(line) for line in host.said.getvalue().splitlines()]
    failed = [each for each in said if each["event"] == "request.failed"]
    assert failed[-1]["id"] == "mine-1"
    assert "inner words" in failed[-1]["error"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc-1.2:3_x", True), ("", False), ("a b", False), ("x" * 129, False), ("é", False)],
)
def test_requests_have_ids(host: ServedLog, sent: str, kept: bool) -> None:
    reply = host.ask("/healthz", headers={"X-Request-Id": sent.encode("latin-1")})  # type: ignore[dict-item]
    assert (reply.headers["x-request-id"] == sent) is kept
    assert len(reply.headers["x-request-id"]) > 8


def test_readiness_tells_of_a_full_disk_and_of_threads_that_hang(
    host: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host.ask("/readyz").json == {"status": "ready", "writes": "ok"}
    usage = shutil.disk_usage(host.log.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    reply = host.ask("/readyz")
    assert (reply.status, reply.json["status"]) == (200, "ready")
    assert reply.json["writes"].startswith("refused: 1 MiB")
    monkeypatch.undo()
    may_go = threading.Event()
    everything = {"topic": "orders", "start": "Earliest", "max_bytes": 1000}
    hanging = [threading.Thread(target=host.consume, kwargs=everything) for _ in range(8)]
    monkeypatch.setattr(host.log, "fetch", lambda *_, **__: may_go.wait(DEADLINE_SECONDS))
    try:
        for thread in hanging:
            thread.start()
        until(lambda: host.ask("/readyz").status == 503)
        reply = host.ask("/readyz")
        assert (reply.status, reply.code) == (503, "NotReady")
        assert "threads that read" in reply.json["error"]
        assert host.ask("/healthz").status == 200
    finally:
        monkeypatch.undo()
        may_go.set()
        for thread in hanging:
            thread.join(DEADLINE_SECONDS)


def test_the_journal_is_lines_of_json_whatever_was_asked(host: ServedLog) -> None:
    host.ask("/a%0Ab%22", headers={"User-Agent": "x"})

    def paths() -> list[str]:
        return [json.loads(line).get("path") for line in host.said.getvalue().splitlines()]

    until(lambda: '/a\nb"' in paths())
