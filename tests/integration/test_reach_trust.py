"""Who is let in, who is told the secret, and what is refused by name."""

from __future__ import annotations

import http.client
import json
import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

import duolog
from duolog.avro.registry.port import SchemaText
from duolog.bridge.internal import internal_router
from duolog.errors import (
    DuologError,
    HostMismatch,
    HostRefused,
    HostUnreachable,
    InvalidSetting,
    LogBusy,
    UnsupportedFormat,
)
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Record
from duolog.log.options import LogOptions
from duolog.log.owner import HostHint, read_secret
from duolog.reach import RemoteLog, RemoteOptions, reach
from duolog.reach.open import registry_for
from duolog.reach.protocol import VERSION
from tests.support.host_server import TOKEN, Host, Server, host_app
from tests.support.records import STREAM
from tests.support.registry_server import make_certificate

QUICK = LogOptions(lock_wait_seconds=0.1)
BRIEF = RemoteOptions(deadline_seconds=0.5, connect_timeout_seconds=2.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[None]:
    """In a thread, until the end of the block."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


class Asked(list[Any]):
    """The headers of each request, and the paths beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []


@contextmanager
def impostor(
    answer: bytes, headers: dict[str, str], *, port: int = 0
) -> Iterator[tuple[str, Asked]]:
    """Something else that listens; its address, and the headers of what it was asked."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers)
            asked.paths.append(self.path)
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    with running(server):
        yield f"127.0.0.1:{server.server_address[1]}", asked


def test_the_lock_decides_each_time(folder: Path) -> None:
    with reach(folder, create=True) as log:
        assert isinstance(log, EmbeddedLog)
        log.create_topic("orders")
        log_id = log.log_id
    with Host(folder) as host, reach(folder) as log, reach(url=host.url, token=TOKEN) as far:
        assert isinstance(log, RemoteLog)
        assert log.log_id == far.log_id == log_id
        far.publish("orders", Record(b"a"))
        assert log.fetch("orders", 0, 0).count == 1
    with reach(folder) as log:
        assert isinstance(log, EmbeddedLog)
        assert log.fetch("orders", 0, 0).count == 1


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x"])
def test_who_brings_no_right_token_is_refused(folder: Path, token: str | None) -> None:
    with Host(folder) as host:
        with pytest.raises(HostRefused, match="token") as refusal:
            reach(url=host.url, token=token)
        assert token is None or token not in str(refusal.value)
        with pytest.raises(HostRefused):  # it never travels, so nobody brings it
            reach(url=host.url, token=host.log.secret())
        with reach(url=host.url, token=TOKEN) as log:
            assert log.topics() == ()


def test_a_token_may_be_good_for_some_calls_only(folder: Path) -> None:
    asked: list[tuple[str, str]] = []

    def admits(token: str, call: str) -> str | None:
        asked.append((token, call))
        return None if call == "create_topic" else "reader"

    with duolog.open_log(folder) as owner:
        owner.create_topic("orders")
        app = FastAPI(openapi_url=None)
        app.include_router(internal_router(owner, admits=admits))
        server = Server(app)
        try:
            with reach(url=server.url, token="reader") as log:
                log.fetch("orders", 0, 0)
                log.wait_for_append({("orders", 0): 0}, 0)
                log.staging(STREAM, 0).remove_writer()
                with pytest.raises(HostRefused, match="'create_topic'"):
                    log.create_topic("new")
            with reach(url=server.url) as log:
                assert len(log.topics()) == 1
            owner.announce(server.url)  # but it made no secret, so nobody here can ask it
            with pytest.raises(HostRefused, match="secret"):
                reach(folder, options=QUICK, remote=BRIEF)
        finally:
            server.stop()
    assert [call for _, call in asked] == [
        "hello", "fetch", "wait", "wait", "parts", "create_topic", "hello", "topics",
    ]  # fmt: skip
    assert {token for token, _ in asked} == {"reader", ""}


def test_a_wait_says_nothing_to_a_token_that_was_taken_back(folder: Path) -> None:
    asked: list[str] = []
    with duolog.open_log(folder) as owner:
        owner.create_topic("orders")
        app = FastAPI(openapi_url=None)

        def admits(_: str, call: str) -> str | None:
            asked.append(call)
            return "reader" if asked.count("wait") < 2 else None

        app.include_router(internal_router(owner, admits=admits))
        server = Server(app)
        try:
            with reach(url=server.url, token="reader") as log, pytest.raises(HostRefused):
                log.wait_for_append({("orders", 0): 0}, 0)
        finally:
            server.stop()


def test_neither_token_nor_secret_is_shown(folder: Path) -> None:
    with Host(folder) as host:
        secret = host.log.secret()
        with reach(url=host.url, token=TOKEN) as far, reach(folder) as near:
            for log in (far, near):
                assert isinstance(log, RemoteLog)
                shown = repr(vars(log)) + repr(vars(log._connection))
                assert TOKEN not in shown
                assert secret not in shown


def test_the_secret_is_for_the_owner_of_the_log_alone(folder: Path) -> None:
    path = folder / "secret"
    with duolog.open_log(folder) as log:
        secret = log.secret()
        assert (len(secret), path.stat().st_mode & 0o777) == (64, 0o600)
        assert log.secret() == secret
    with duolog.open_log(folder) as log:
        assert log.secret() == secret
        path.chmod(0o644)
        assert read_secret(folder) is None
        assert log.secret() != secret
        assert path.stat().st_mode & 0o777 == 0o600
        path.write_text("not hex")
        assert len(log.secret()) == 64


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750])
def test_a_folder_that_was_there_before_is_closed_to_others(folder: Path, mode: int) -> None:
    folder.mkdir()
    for _ in range(2):
        folder.chmod(mode)
        with duolog.open_log(folder) as log:
            log.secret()
            assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_no_log_is_left_as_open_as_it_was(folder: Path) -> None:
    folder.mkdir()
    (folder / "theirs.txt").write_text("theirs")
    folder.chmod(0o1777)
    with pytest.raises(DuologError):
        duolog.open_log(folder)
    assert folder.stat().st_mode & 0o7777 == 0o1777


def test_a_secret_behind_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    with duolog.open_log(folder) as log:
        (tmp_path / "elsewhere").write_text("ab" * 32)
        (folder / "secret").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(LogBusy, match="cannot be read"):
            log.secret()


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (b"<html>", {}),
        (b"{}", {"Duolog-Protocol": str(VERSION)}),
        (b'{"result": {"log_id": "LOG", "proof": "00"}}', {"Duolog-Protocol": str(VERSION)}),
        (b'{"result": {"log_id": "LOG", "proof": null}}', {"Duolog-Protocol": str(VERSION)}),
        (b'{"result": {"log_id": "LOG", "nonce": 5}}', {"Duolog-Protocol": str(VERSION)}),
        (
            b'{"result": {"log_id": "LOG", "nonce": "' + b"0" * 64 + b'", "proof": "00"}}',
            {"Duolog-Protocol": str(VERSION)},
        ),
        (b'{"result": []}', {"Duolog-Protocol": str(VERSION)}),
    ],
)
def test_what_took_a_hosts_place_is_not_told_the_secret(
    folder: Path, answer: bytes, headers: dict[str, str]
) -> None:
    with duolog.open_log(folder) as log:
        secret = log.secret()
        with impostor(answer.replace(b"LOG", log.log_id.encode()), headers) as (address, asked):
            log.announce(address)
            with pytest.raises(HostMismatch):
                reach(folder, options=QUICK)
        assert asked
        assert not any(secret in str(request) or request["Authorization"] for request in asked)


@contextmanager
def relay(to: int) -> Iterator[tuple[str, list[bytes]]]:
    """Passes everything on to a port, and keeps it; its address."""
    heard: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to)) as host:
                answers = threading.Thread(target=self._pass_back, args=(host,))
                answers.start()
                while said := self.request.recv(1 << 16):
                    heard.append(said)
                    host.sendall(said)
                host.shutdown(socket.SHUT_WR)
                answers.join(10)

        def _pass_back(self, host: socket.socket) -> None:
            while said := host.recv(1 << 16):
                self.request.sendall(said)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    with running(server):
        yield f"http://127.0.0.1:{server.server_address[1]}", heard


def test_a_relay_hears_nothing_that_it_could_use(folder: Path) -> None:
    """Even one that the host itself was announced at: what it hears is good for this run alone."""
    with Host(folder) as host, relay(host.port) as (address, heard):
        secret, port = host.log.secret(), host.port
        host.log.announce(address)
        with reach(folder) as log:
            log.create_topic("orders")
        said = b"".join(heard)
        assert secret.encode() not in said
        (token,) = set(re.findall(rb"Authorization: Bearer (\S+)", said))
        with reach(folder) as log:
            log.topics()
        assert len(set(re.findall(rb"Authorization: Bearer (\S+)", b"".join(heard)))) == 2
    with Host(folder, port=port) as host, pytest.raises(HostRefused):
        reach(url=host.url, token=token.decode())


def test_what_takes_a_dead_hosts_port_hears_nothing_of_clients_that_were_connected(
    folder: Path,
) -> None:
    with Host(folder) as host:
        log = reach(folder, remote=BRIEF)
        registry = registry_for(log)
        log.create_topic("orders")
        port = host.port
    answer, said = b'{"result": []}', {"Duolog-Protocol": str(VERSION)}
    with log, impostor(answer, said, port=port) as (_, asked):
        for call in (
            log.topics,
            lambda: log.publish("orders", Record(b"for the log alone")),
            lambda: registry.register("orders-value", SchemaText('"string"')),
        ):
            with pytest.raises(HostUnreachable, match="prove"):
                call()
        assert asked
        assert all(path.startswith("/v1/internal/hello?nonce=") for path in asked.paths)
        assert not any(headers["Authorization"] for headers in asked)


def test_a_host_that_was_started_anew_is_asked_on_by_all_that_asked_before(folder: Path) -> None:
    with Host(folder) as host:
        near = reach(folder)
        registry = registry_for(near)
        near.create_topic("orders")
        number = registry.register("orders-value", SchemaText('"string"'))
        port = host.port
    with near:
        with Host(folder, port=port):
            assert registry.latest("orders-value").id == number
        with Host(folder, port=port):
            assert len(near.topics()) == 1


def test_a_proof_that_was_passed_on_is_none(folder: Path) -> None:
    """What listens where a host was cannot ask the real one for the answer."""
    with Host(folder) as host, duolog.open_log(folder.with_name("other")) as other:
        # The other folder has the first one's secret, and a hint to an address that is not it.
        (folder.with_name("other") / "secret").write_text(host.log.secret())
        (folder.with_name("other") / "secret").chmod(0o600)
        hint = HostHint(f"localhost:{host.port}", host.log.log_id)
        other._ownership.announce(hint)
        with pytest.raises(HostMismatch, match="secret"):
            reach(folder.with_name("other"), options=QUICK)


def test_nobody_answers_where_host_json_points(folder: Path) -> None:
    with duolog.open_log(folder) as log:
        log.secret()
        log.announce("http://127.0.0.1:9")
        with pytest.raises(HostUnreachable, match=r"127\.0\.0\.1:9"):
            reach(folder, options=QUICK)


@pytest.mark.parametrize("hint", ["{", '{"address": "ftp://x", "log_id": "y"}', "[]", '""'])
def test_a_hint_that_makes_no_sense_is_only_a_hint(folder: Path, hint: str) -> None:
    with duolog.open_log(folder) as log:
        log.secret()
        (folder / "host.json").write_text(hint)
        with pytest.raises((HostUnreachable, LogBusy)):
            reach(folder, options=QUICK)


def test_a_held_log_without_a_host_is_busy(folder: Path) -> None:
    with duolog.open_log(folder), pytest.raises(LogBusy, match="process"):
        reach(folder, options=QUICK)


def test_a_dead_hosts_hint_goes_with_the_next_owner(folder: Path) -> None:
    reach(folder, create=True).close()
    (folder / "host.json").write_text(json.dumps({"address": "127.0.0.1:9", "log_id": "x"}))
    with reach(folder) as log:
        assert isinstance(log, EmbeddedLog)
        assert not (folder / "host.json").exists()


def test_a_host_that_appears_while_the_lock_is_waited_for_is_used(folder: Path) -> None:
    with duolog.open_log(folder) as owner, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(reach, folder, options=LogOptions(lock_wait_seconds=30))
        server = Server(host_app(owner))
        owner.announce(server.url)
        with waiting.result(30) as log:
            assert isinstance(log, RemoteLog)
            assert log.log_id == owner.log_id
        server.stop()


def test_another_log_at_the_same_url_is_noticed(folder: Path) -> None:
    with Host(folder) as host:
        log = reach(url=host.url, token=TOKEN)
        log.create_topic("orders")
        port = host.port
    with Host(folder.with_name("other"), port=port) as other:
        other.log.create_topic("orders")
        with log:
            with pytest.raises(HostMismatch, match="replaced"):
                log.publish("orders", Record(b"for the first log"))
            with pytest.raises(HostMismatch):
                log.fetch("orders", 0, 0)
        assert other.log.offsets("orders")[0].next_offset == 0


def test_a_url_where_no_log_is(folder: Path) -> None:
    with (
        impostor(b"<html>hello</html>", {}) as (address, _),
        pytest.raises(HostMismatch, match="no host of a Duolog log"),
    ):
        reach(url=f"http://{address}", token=TOKEN, remote=BRIEF)
    with pytest.raises(HostUnreachable, match=r"tried for \d"):
        reach(url="http://127.0.0.1:9", token=TOKEN, remote=BRIEF)


def test_another_version_of_the_protocol_is_refused_by_both_sides(folder: Path) -> None:
    with (
        impostor(b"{}", {"Duolog-Protocol": "1"}) as (address, _),
        pytest.raises(UnsupportedFormat, match="version '1'"),
    ):
        reach(url=f"http://{address}", token=TOKEN, remote=BRIEF)
    with Host(folder) as host:
        for version in ({}, {"Duolog-Protocol": "1"}, {"Duolog-Protocol": str(VERSION + 1)}):
            connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=10)
            headers = {**version, "Authorization": f"Bearer {TOKEN}"}
            connection.request("GET", "/v1/internal/hello", headers=headers)
            answer = connection.getresponse()
            assert json.loads(answer.read())["code"] == "UnsupportedFormat"
            connection.close()


def test_over_tls_only_with_a_certificate_that_is_trusted(folder: Path, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "host")
    trusting = RemoteOptions(ca_path=str(certificate.certificate), deadline_seconds=5)
    with Host(folder, tls=certificate) as host:
        with reach(url=host.url, token=TOKEN, remote=trusting) as log:
            log.create_topic("orders")
        with reach(folder) as log:  # which has proved that it knows the log's secret
            assert len(log.topics()) == 1
        with pytest.raises(HostUnreachable, match="certificate is not trusted"):
            reach(url=host.url, token=TOKEN, remote=BRIEF)
    with pytest.raises(InvalidSetting, match="ca_path"):
        reach(url=host.url, token=TOKEN, remote=RemoteOptions(ca_path="/no/such.pem"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "path or its host's url"),
        ({"path": "a", "url": "http://localhost"}, "one of them"),
        ({"path": "a", "token": TOKEN}, "belongs to a url"),
        ({"url": "http://localhost", "create": True}, "not created"),
        ({"url": "http://far.example", "token": TOKEN}, "plain http"),
        ({"url": "http://localhost", "token": "two words"}, "without spaces"),
        ({"path": "a", "avro": {"auto.registr.schemas": "true"}}, "auto.register.schemas"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_opened(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidSetting, match=told) as refusal:
        reach(**given)
    assert TOKEN not in str(refusal.value)
