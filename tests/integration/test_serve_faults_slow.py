"""Clients that leave requests unfinished, and too many of them: others are served meanwhile."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from duolog.bridge.metrics.names import (
    CONNECTIONS,
    CONNECTIONS_LATE,
    CONNECTIONS_REFUSED,
    POLLS_WAITING,
)
from duolog.bridge.serve import connections
from duolog.bridge.serve.connections import ConnectionRules
from duolog.log.model import Record
from tests.integration.serve_host import DEADLINE_SECONDS, ServedLog, served, until

RULES = ConnectionRules(max_connections=300, headers_within_seconds=0.2, body_silence_seconds=0.5)
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW_CLIENTS = 200

Client = Callable[[], socket.socket]


@pytest.fixture(scope="module", params=[H11Protocol, HttpToolsProtocol], ids=["h11", "httptools"])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedLog]:
    folder = tmp_path_factory.mktemp("served") / "log"
    with (
        pytest.MonkeyPatch.context() as patched,
        served(folder, connections=RULES, protocol=request.param) as running,
    ):
        patched.setattr(connections, "_LOOK_EVERY_SECONDS", 0.02)
        running.log.create_topic("orders")
        yield running


@pytest.fixture
def client(host: ServedLog) -> Iterator[Client]:
    with ExitStack() as ending:

        def connect() -> socket.socket:
            made = socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)
            return ending.enter_context(made)

        yield connect


def rest(client: socket.socket) -> bytes:
    """All that comes until the host hangs up."""
    got = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(1 << 16):
            got += piece
    return got


def answered(client: socket.socket) -> bytes:
    """One answer with a small body."""
    got = b""
    while not got.endswith(b"}"):
        piece = client.recv(1 << 16)
        assert piece, got
        got += piece
    return got


class Counted:
    """How far the host's counters move from here on."""

    def __init__(self, host: ServedLog) -> None:
        self._tally = host.host.tally
        self._headers, self._body = self._late("headers"), self._late("body")
        self._refused = self._tally.number(CONNECTIONS_REFUSED)

    @property
    def late(self) -> list[float]:
        """Those whose headers did not come, and those whose body did not."""
        return [self._late("headers") - self._headers, self._late("body") - self._body]

    @property
    def refused(self) -> float:
        return self._tally.number(CONNECTIONS_REFUSED) - self._refused

    def _late(self, what: str) -> float:
        return self._tally.number(CONNECTIONS_LATE, what)


@pytest.mark.parametrize("sent", [GET[:-2], GET[:5], GET[:1]])
def test_headers_that_do_not_come_are_given_up(
    host: ServedLog, client: Client, sent: bytes
) -> None:
    counted, slow = Counted(host), client()
    slow.sendall(sent)
    head, _, body = rest(slow).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"\r\nconnection: close" in head
    assert json.loads(body)["code"] == "RequestTimeout"
    assert counted.late == [1, 0]


def test_a_byte_now_and_then_does_not_keep_a_place(host: ServedLog, client: Client) -> None:
    slow = client()
    slow.settimeout(0.02)  # between two bytes
    slow.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
    deadline = time.monotonic() + DEADLINE_SECONDS
    got = b""
    while not got:
        assert time.monotonic() < deadline
        slow.sendall(b"x")
        with suppress(TimeoutError):
            got = slow.recv(1 << 16)
    assert got.startswith(b"HTTP/1.1 408 ")


def test_a_client_that_says_nothing_is_hung_up_on_without_a_word(
    host: ServedLog, client: Client
) -> None:
    counted = Counted(host)
    assert rest(client()) == b""
    assert counted.late == [1, 0]


def test_the_second_request_of_a_connection_has_the_same_limit(
    host: ServedLog, client: Client
) -> None:
    slow = client()
    for _ in range(2):
        slow.sendall(GET)
        assert answered(slow).startswith(b"HTTP/1.1 200 ")
    slow.sendall(GET[:20])
    assert rest(slow).startswith(b"HTTP/1.1 408 ")


def test_a_connection_may_rest_between_two_requests(host: ServedLog, client: Client) -> None:
    resting, others = client(), client()
    resting.sendall(GET)
    assert answered(resting).startswith(b"HTTP/1.1 200 ")
    rest(others)  # one that says nothing: so long have both been left alone
    resting.sendall(GET)
    assert answered(resting).startswith(b"HTTP/1.1 200 ")


def test_a_long_poll_is_not_late(host: ServedLog, client: Client) -> None:
    body = b'{"topic":"orders","timeout_seconds":100}'
    poll = client()
    poll.sendall(
        b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    until(lambda: host.host.tally.number(POLLS_WAITING) == 1)
    rest(client())
    host.publish("orders", "a")
    assert answered(poll).startswith(b"HTTP/1.1 200 ")


POST = (
    b"POST /registry/subjects/s/versions HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
)


CHUNKED = b"Transfer-Encoding: chunked"


def test_a_body_that_stops_coming_is_given_up_wherever_it_goes(
    host: ServedLog, client: Client
) -> None:
    counted, slow = Counted(host), client()
    slow.sendall(POST + b'{"schema":')
    assert rest(slow).startswith(b"HTTP/1.1 408 ")
    assert counted.late == [0, 1]
    assert host.ask("/registry/subjects").status == 200
    assert "request.failed" not in host.said.getvalue()


def test_a_body_that_comes_slowly_is_read(host: ServedLog, client: Client) -> None:
    counted, slow, silent = Counted(host), client(), client()
    body = b'{"schema": "\\"string\\""}'.ljust(100)
    slow.sendall(POST)
    silent.settimeout(0.02)
    for byte in body[:-1]:
        slow.sendall(bytes([byte]))
        with suppress(TimeoutError):
            silent.recv(1)  # the pace, for well beyond every limit
    slow.sendall(body[-1:])
    assert answered(slow).startswith(b"HTTP/1.1 200 ")
    assert counted.late == [1, 0]


@pytest.mark.parametrize(
    "begun",
    [GET[:-2] + b"X-Long: ", b"GET /", POST.replace(b"Content-Length: 100", CHUNKED) + b"1;"],
    ids=["header", "path", "chunk"],
)
def test_headers_without_an_end_are_refused(host: ServedLog, client: Client, begun: bytes) -> None:
    endless = client()
    with suppress(ConnectionError):
        endless.sendall(begun)
        for _ in range(1000):
            endless.sendall(b"x" * 10_000)
    answer = rest(endless)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert host.ask("/healthz").status == 200


def test_many_slow_clients_leave_the_host_to_others(host: ServedLog, client: Client) -> None:
    counted = Counted(host)
    first = host.log.offsets("orders")[0].next_offset
    slow = [client() for _ in range(SLOW_CLIENTS)]
    for number, each in enumerate(slow):
        each.sendall(GET[:-2] if number % 2 else POST)
    for number in range(first, first + 20):
        reply = host.publish("orders", f"{number}")
        assert (reply.status, reply.json["offsets"][0]["offset"]) == (200, number)
    for each in slow:
        assert rest(each).startswith(b"HTTP/1.1 408 ")
    assert counted.late == [SLOW_CLIENTS // 2, SLOW_CLIENTS // 2]
    until(lambda: host.host.tally.number(CONNECTIONS) == 0)


def test_too_many_are_told_so_and_watchers_are_let_through(host: ServedLog, client: Client) -> None:
    until(lambda: host.host.tally.number(CONNECTIONS) == 0)
    counted, resting = Counted(host), []
    for _ in range(RULES.max_connections):
        each = client()
        each.sendall(GET)
        assert answered(each).startswith(b"HTTP/1.1 200 ")
        resting.append(each)
    refused = host.ask("/v1/api/topics/latest-offsets", {"topic": "orders"})
    assert (refused.status, refused.code) == (503, "TooBusy")
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["connection"] == "close"
    for path in ("/healthz", "/readyz", "/metrics"):
        assert host.ask(path).status == 200
    assert counted.refused == 4
    more = [client() for _ in range(100)]  # beyond those that are answered, at once
    until(lambda: counted.refused == 104)
    assert host.host.tally.number(CONNECTIONS) < RULES.max_connections + 100
    for each in (*more, *resting):
        each.close()
    until(lambda: host.publish("orders", "again").status == 200)
    full = [json.loads(each) for each in host.said.getvalue().splitlines() if "full" in each]
    assert [each["event"] for each in full] == ["connections.full"]  # said once, not 104 times


def test_a_client_that_takes_nothing_of_its_answer_is_hung_up_on(
    host: ServedLog, client: Client
) -> None:
    host.log.create_topic("long")
    host.log.publish("long", [Record(b"x" * 1_000_000) for _ in range(16)])
    asked = {"topic": "long", "start": "Earliest", "max_bytes": 16 << 20, "timeout_seconds": 0}
    body = json.dumps(asked).encode()
    head = (
        "POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    late = host.host.tally.number(CONNECTIONS_LATE, "taking")
    waiting = client()
    waiting.sendall(head.encode() + body)
    until(lambda: host.host.tally.number(CONNECTIONS_LATE, "taking") > late)
    assert len(rest(waiting)) < 16_000_000
    until(lambda: host.host.answers.bytes_held == 0)
    host.log.drop_topic("long")


def test_a_client_that_asks_ahead_and_leaves_is_no_failure_of_the_host(tmp_path: Path) -> None:
    """uvicorn tells the last request that its client has gone, and not the one being answered."""
    with served(tmp_path / "log") as host:
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        client = socket.socket()
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            client.setsockopt(socket.SOL_SOCKET, buffer, 4096)
        client.settimeout(1.0)
        client.connect(("127.0.0.1", host.port))
        with suppress(TimeoutError):
            while True:  # until an answer waits for its client, and the rest behind it
                client.sendall(asked)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        until(lambda: not host.server.server_state.tasks)
        assert host.ask("/healthz").status == 200
        told = [json.loads(line) for line in host.said.getvalue().splitlines()]
        assert [line for line in told if line["level"] in {"error", "warning"}] == []
