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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from duolog import open_log
from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText

DEADLINE_SECONDS = 60
REGISTRY = [sys.executable, "-m", "duolog.cli", "registry"]
TOKEN = "0123456789abcdef0123456789abcdef"
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


def answer(url: str, content: bytes | None = None, authorization: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
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
    served = start("--port", "0")
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
    url = address(start("--port", "0"))
    assert answer(f"{url}/subjects") == (200, '["orders-key"]')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_the_log_free(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    served = start("--port", "0")
    address(served)
    served.send_signal(number)
    out, err = served.communicate(timeout=DEADLINE_SECONDS)
    assert (served.returncode, out, err) == (0, b"", b"")
    with open_log(tmp_path / "log", create=False) as log:
        assert log.topics() == ()


def test_only_those_with_a_token_may_speak(start: Start, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"another-token-of-somebody-else\n{TOKEN}\n")
    url = address(start("--port", "0", "--token-file", "tokens"))
    refused = (401, '{"error_code": 401, "message": "Unauthorized"}')
    wrong = ["", f"Bearer {TOKEN[:-1]}", basic("no"), "Basic %%%", f"Digest {TOKEN}", "Bearer"]
    assert [answer(f"{url}/subjects", authorization=each) for each in wrong] == [refused] * 6
    assert answer(f"{url}/subjects", authorization=f"Bearer {TOKEN}") == (200, "[]")
    assert answer(f"{url}/subjects", authorization=basic(TOKEN)) == (200, "[]")


def test_the_token_may_come_from_the_environment(start: Start) -> None:
    url = address(start("--port", "0", DUOLOG_REGISTRY_TOKEN=TOKEN))
    assert answer(f"{url}/subjects")[0] == 401
    assert answer(f"{url}/subjects", authorization=f"Bearer {TOKEN}")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--host", "0.0.0.0", "--port", "0"), "takes a token"),
        (("--token-file", "none"), "cannot be read"),
        (("--token-file", "empty"), "holds no token"),
        (("--token-file", "short"), "too easy to guess"),
    ],
)
def test_what_would_be_open_to_all_is_refused(
    start: Start, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty").write_text("\n \n")
    (tmp_path / "short").write_text("hunter2\n")
    refused = start(*arguments)
    _, err = refused.communicate(timeout=DEADLINE_SECONDS)
    assert refused.returncode == 1
    error = json.loads(err)
    assert error["code"] == "InvalidSetting"
    assert said in error["error"]
    assert b"hunter2" not in err
    assert not (tmp_path / "log").exists()


def test_a_port_that_is_taken_is_named(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = start("--port", str(port))
        _, err = refused.communicate(timeout=DEADLINE_SECONDS)
    assert refused.returncode == 1
    assert f"port {port}" in json.loads(err)["error"]
