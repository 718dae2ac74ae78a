"""`duolog registry` as a process: who may speak to it, and how it ends."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, cast

import psutil
import pytest

from duolog import open_log
from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token

DEADLINE_SECONDS = 60
REGISTRY = [sys.executable, "-m", "duolog.cli", "registry"]
SCHEMA = json.dumps({"schema": '"string"'}).encode()

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("DUOLOG_")}

    def run(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*REGISTRY, "--log", str(tmp_path / "log"), *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**inherited, **variables},
        )
        running.append(process)
        return process

    yield run
    for process in running:
        with contextlib.suppress(BrokenPipeError), process:
            process.kill()


def address(process: subprocess.Popen[bytes]) -> str:
    line = cast("IO[bytes]", process.stdout).readline()
    assert line, process.communicate(timeout=DEADLINE_SECONDS)
    return str(json.loads(line)["registry"])


def answer(
    url: str,
    content: bytes | None = None,
    authorization: str = "",
    *,
    headers: Mapping[str, str] = MappingProxyType({}),
    method: str | None = None,
) -> tuple[int, str]:
    said = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, content, said, method=method)
    if authorization:
        request.add_header("Authorization", authorization)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anyone:{password}".encode()).decode()


def test_what_is_registered_is_in_the_log_afterwards(start: Start, tmp_path: Path) -> None:
    served = start("--listen", "127.0.0.1:0")
    url = address(served)
    status, body = answer(f"{url}/subjects/orders-value/versions", SCHEMA)
    assert (status, json.loads(body)["id"]) == (200, 1)
    served.send_signal(signal.SIGTERM)
    assert served.wait(DEADLINE_SECONDS) == 0
    with open_log(tmp_path / "log", create=False) as log:
        assert registry_of(log).schema_by_id(1).text == '"string"'


def test_what_the_log_registered_is_served(start: Start, tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        registry_of(log).register("orders-key", SchemaText('"long"'))
    url = address(start("--listen", "127.0.0.1:0"))
    assert answer(f"{url}/subjects") == (200, '["orders-key"]')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_the_log_free(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    served = start("--listen", "127.0.0.1:0")
    address(served)
    served.send_signal(number)
    out, err = served.communicate(timeout=DEADLINE_SECONDS)
    assert (served.returncode, out, err) == (0, b"", b"")
    with open_log(tmp_path / "log", create=False) as log:
        assert log.topics() == ()


def test_only_those_with_a_token_may_speak(start: Start, tmp_path: Path) -> None:
    token = add_token(tmp_path / "tokens", Caller("billing", Role.SERVICE))
    url = address(start("--listen", "127.0.0.1:0", "--tokens", "tokens"))
    wrong = ["", f"Bearer {token[:-1]}", basic("no"), "Basic %%%", f"Digest {token}", "Bearer"]
    for each in wrong:
        status, body = answer(f"{url}/subjects", authorization=each)
        assert (status, json.loads(body)["error_code"]) == (401, 401)
    assert answer(f"{url}/subjects", authorization=f"Bearer {token}") == (200, "[]")
    assert answer(f"{url}/subjects", authorization=basic(token)) == (200, "[]")


def test_whoever_balances_the_load_asks_without_a_token(start: Start, tmp_path: Path) -> None:
    add_token(tmp_path / "tokens", Caller("billing", Role.SERVICE))
    url = address(start("--listen", "127.0.0.1:0", "--tokens", "tokens"))
    assert answer(f"{url}/healthz") == (200, '{"status":"ok"}')
    assert answer(f"{url}/readyz") == (200, '{"status":"ready"}')
    for path in ("/healthz/", "/readyz%0a", "/openapi.json", "/metrics"):
        assert answer(f"{url}{path}")[0] == 401, path
    assert answer(f"{url}/healthz", method="POST")[0] in {404, 405}
    (tmp_path / "log").rename(tmp_path / "elsewhere")
    status, body = answer(f"{url}/readyz")
    assert (status, json.loads(body)["code"]) == (503, "NotReady")
    assert answer(f"{url}/healthz")[0] == 200


def test_a_token_may_do_what_its_role_may(start: Start, tmp_path: Path) -> None:
    tokens = {role: add_token(tmp_path / "tokens", Caller(role.word, role)) for role in Role}
    url = address(start("--listen", "127.0.0.1:0", "--tokens", "tokens"))

    def statuses(path: str, content: bytes | None = None, method: str | None = None) -> list[int]:
        return [
            answer(f"{url}{path}", content, f"Bearer {token}", method=method)[0]
            for token in tokens.values()
        ]

    assert statuses("/subjects") == [403, 200, 200, 200]
    assert statuses("/openapi.json") == [403, 200, 200, 200]
    assert statuses("/subjects/s/versions", SCHEMA) == [403, 200, 200, 200]
    assert statuses("/subjects/none", method="DELETE") == [403, 403, 404, 404]


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (("--listen", "0.0.0.0:0"), {}, "takes tokens"),
        (("--tokens", "none"), {}, "There is no token file none"),
        (("--tokens", "other"), {}, "is not as `duolog token create` writes it"),
        (("--host", "0.0.0.0", "--port", "9"), {}, "--listen 0.0.0.0:9"),
        (("--port", "9"), {}, "--listen 127.0.0.1:9"),
        (("--token-file", "other"), {}, "--token-file is --tokens now"),
        ((), {"DUOLOG_REGISTRY_TOKEN": "hunter2"}, "duolog token create --role dba"),
    ],
)
def test_what_would_be_open_to_all_and_former_words_are_refused(
    start: Start, tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    (tmp_path / "other").write_text("hunter2\n")
    refused = start(*arguments, **variables)
    _, err = refused.communicate(timeout=DEADLINE_SECONDS)
    assert refused.returncode == 1
    error = json.loads(err)
    assert error["code"] == "InvalidSetting"
    assert said in error["error"]
    assert b"hunter2" not in err
    assert not (tmp_path / "log").exists()


def test_without_tokens_it_answers_to_no_page_of_another_site(start: Start) -> None:
    url = address(start("--listen", "127.0.0.1:0"))
    path = f"{url}/subjects/s/versions"
    for said in (
        {"Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        status, body = answer(path, SCHEMA, headers=said)
        assert (status, json.loads(body)["error_code"]) == (403, 403)
    assert answer(path, SCHEMA, headers={"Content-Type": ""})[0] == 415
    assert answer(f"{url}/subjects") == (200, "[]")


def test_clients_that_are_slow_or_endless_are_hung_up_on(start: Start) -> None:
    served = start("--listen", "127.0.0.1:0", DUOLOG_SERVE__HEADERS_WITHIN_SECONDS="0.2")
    url = address(served)
    place = ("127.0.0.1", int(url.rpartition(":")[2]))
    before = psutil.Process(served.pid).memory_info().rss
    with socket.create_connection(place, timeout=DEADLINE_SECONDS) as endless:
        endless.sendall(b"GET /subjects HTTP/1.1\r\nHost: localhost\r\nX: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            endless.sendall(b"x" * 300_000_000)
    assert psutil.Process(served.pid).memory_info().rss - before < 50 << 20
    with socket.create_connection(place, timeout=DEADLINE_SECONDS) as slow:
        slow.sendall(b"GET /subjects HTTP/1.1\r\nHost: localhost\r\n")
        heard = b""
        while said := slow.recv(1 << 16):
            heard += said
        assert b" 408 " in heard.splitlines()[0]
    assert answer(f"{url}/subjects") == (200, "[]")


def test_a_port_that_is_taken_is_named(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = start("--listen", f"127.0.0.1:{port}")
        _, err = refused.communicate(timeout=DEADLINE_SECONDS)
    assert refused.returncode == 1
    assert f"port {port}" in json.loads(err)["error"]
