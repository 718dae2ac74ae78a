"""What is no proper request, a clock that jumps, and a thousand polls that cost next to nothing."""

from __future__ import annotations

import gzip
import json
import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.bridge.waiting import Waiter
from duolog.log.model import Record, Retention, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, ServedLog, served, until
from tests.support.clock import ManualClock

CONSUME, PUBLISH = "/v1/api/topics/consume", "/v1/api/topics/publish"
BODY = b'{"topic":"orders","timeout_seconds":0}'
POLLS = 1000
DAY_SECONDS = 86_400


@pytest.fixture(scope="module", params=[H11Protocol, HttpToolsProtocol], ids=["h11", "httptools"])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedLog]:
    folder = tmp_path_factory.mktemp("served") / "log"
    with served(folder, protocol=request.param) as running:
        running.log.create_topic("orders")
        yield running
        assert running.ask("/healthz").status == 200
        events = [json.loads(line)["event"] for line in running.said.getvalue().splitlines()]
        assert "request.failed" not in events


def connected(host: ServedLog) -> socket.socket:
    return socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)


def said_to(host: ServedLog, sent: bytes) -> bytes:
    """Send it, say that there is no more, and hear all that comes."""
    got = b""
    with connected(host) as client, suppress(ConnectionError):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while piece := client.recv(1 << 16):
            got += piece
    return got


def post(*headers: bytes, body: bytes = BODY) -> bytes:
    lines = [
        b"POST /v1/api/topics/consume HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    "sent",
    [
        post(b"Content-Length: 38", b"Content-Length: 40"),
        post(b"Content-Length: -38"),
        post(b"Content-Length: 1e3"),
        post(b"Content-Length: 9" + b"9" * 30),
        post(b"Transfer-Encoding: gzip, chunked, x", body=CHUNKED),
        post(b"No colon here"),
        post(b"Nul: a\x00b", b"Content-Length: 38"),
        b"GET\x00 / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_proper_http_is_refused_as_such(host: ServedLog, sent: bytes) -> None:
    with connected(host) as client:
        client.sendall(sent)
        head, _, body = client.recv(1 << 16).partition(b"\r\n\r\n")
    status = int(head.split()[1])
    assert status == 400, head
    assert json.loads(body)["code"]


def test_requests_in_one_piece_are_answered_in_their_order(host: ServedLog) -> None:
    asked = b"".join(
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: n%d\r\n%b\r\n"
        % (number, b"Connection: close\r\n" if number == 199 else b"")
        for number in range(200)
    )
    got = b""
    with connected(host) as client:
        client.sendall(asked)
        while piece := client.recv(1 << 16):
            got += piece
    ids = [line for line in got.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert ids == [b"x-request-id: n%d" % number for number in range(200)]


def test_a_body_that_is_packed_is_not_unpacked(host: ServedLog) -> None:
    bomb = gzip.compress(b" " * (20 << 20))  # 20 KB that would be 20 MB
    reply = host.ask(CONSUME, bomb, headers={"Content-Encoding": "gzip"})
    assert (reply.status, reply.code) == (400, "NotJson")


@pytest.mark.parametrize("path", [PUBLISH, CONSUME, "/v1/api/sql", "/registry/subjects/s/versions"])
def test_ten_megabytes_are_refused_everywhere(host: ServedLog, path: str) -> None:
    reply = host.ask(path, b'{"a":"' + b"x" * (10 << 20) + b'"}')
    assert reply.status == 413
    assert host.ask("/healthz").status == 200


def test_noise_is_survived(host: ServedLog) -> None:
    """Requests that are changed here and there: never a failure inside, always an end."""
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed={seed}")
    chance = random.Random(seed)
    for _ in range(150):
        noisy = bytearray(post(b"Content-Length: %d" % len(BODY)))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(noisy))
            noisy[at : at + chance.randint(0, 4)] = chance.randbytes(chance.randint(0, 4))
        got = said_to(host, bytes(noisy))
        assert not got.startswith(b"HTTP/1.1 5"), (bytes(noisy), got)


def test_a_publisher_that_half_closes_loses_and_doubles_nothing(host: ServedLog) -> None:
    topic = host.log.create_topic(f"half-{random.getrandbits(64):x}").name
    body = json.dumps(
        {"topic": topic, "messages": [{"value": "a"}], "writer": topic, "sequence": 0}
    ).encode()
    asked = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (
        PUBLISH.encode()
    )
    for _ in range(5):  # answered or not, each time the same
        got = said_to(host, asked + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert got == b"" or b'"offset":0}' in got
    again = host.ask(PUBLISH, json.loads(body))
    assert again.json["offsets"][0]["offset"] == 0
    assert host.log.offsets(topic)[0].next_offset == 1


@pytest.mark.parametrize("jump_seconds", [-30 * DAY_SECONDS, -1, 3600])
def test_a_clock_that_jumps_ends_no_poll_and_loses_nothing(
    tmp_path: Path, jump_seconds: int
) -> None:
    clock = ManualClock()
    with served(tmp_path / "log", clock=clock) as host, ThreadPoolExecutor(1) as threads:
        kept = TopicSettings(retention=Retention(seconds=7 * DAY_SECONDS))
        host.log.create_topic("orders", kept)
        host.publish("orders", "before")
        host.log.ack("g", "orders", 0)
        wanted = {"topic": "orders", "group_id": "g", "timeout_seconds": 100}
        poll = threads.submit(lambda: host.ask(CONSUME, wanted))
        until(lambda: host.host.tally.number(POLLS_WAITING) == 1)
        clock.advance(seconds=jump_seconds)
        assert host.ask("/readyz").status == 200
        assert not poll.done()
        assert host.publish("orders", "after").status == 200
        assert len(poll.result(DEADLINE_SECONDS).json["messages"]) == 1
        host.log.enforce_retention()
        read = host.ask(CONSUME, {"topic": "orders", "start": "Earliest", "timeout_seconds": 0})
        assert len(read.json["messages"]) == 2
        metrics = host.ask("/metrics").body.decode().splitlines()
        lags = [line for line in metrics if line.startswith("duolog_consumergroup_")]
        assert lags
        assert not [line for line in lags if line.rpartition(" ")[2].startswith("-")]


def test_polls_that_wait_are_woken_only_by_what_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, waits = Waiter.wait, [0]

    async def counted(self: Waiter, *arguments: Any) -> None:
        waits[0] += 1
        await wait(self, *arguments)

    monkeypatch.setattr(Waiter, "wait", counted)
    with served(tmp_path / "log") as host, ExitStack() as ending:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.create_topic("other")
        sent = json.dumps({"topic": "orders", "partition_id": 0, "timeout_seconds": 100}).encode()
        before = psutil.Process().memory_info().rss
        clients = [ending.enter_context(connected(host)) for _ in range(POLLS)]
        for client in clients:
            client.sendall(post(b"Content-Length: %d" % len(sent), body=sent))
        until(lambda: waits[0] == POLLS)
        bytes_of_a_poll = (psutil.Process().memory_info().rss - before) / POLLS
        print(f"{bytes_of_a_poll:.0f} bytes a poll")
        assert bytes_of_a_poll < 100_000
        for number in range(50):
            host.log.publish("other", [Record(b"%d" % number)])
            host.log.publish("orders", [Record(b"%d" % number, partition=1)])
        assert host.ask("/healthz").status == 200  # the loop has been round since
        host.log.publish("orders", [Record(b"theirs", partition=0)])
        for client in clients:
            assert client.recv(12) == b"HTTP/1.1 200"
        assert waits[0] == POLLS  # nobody who was woken had to wait again
