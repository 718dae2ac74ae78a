"""Tokens, the log's secret and passwords of others are nowhere to be read: not in answers, logs,
metrics, files, lists of processes, or their environments.

A real `duolog serve` is asked in every way by good and bad tokens, with and without its children.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

import psutil
import pytest

from duolog import open_log
from duolog.bridge.http.tokens import hash_of
from duolog.errors import InvalidSetting
from duolog.log.model import Format, Op, Route, TopicSettings
from duolog.reach.protocol import PROTOCOL_HEADER, VERSION
from duolog.settings import load_settings

DUOLOG = [sys.executable, "-P", "-m", "duolog.cli"]
DEADLINE_SECONDS = 60
PASSWORD = "hunter2-of-the-registry"
KAFKA_PASSWORD = "hunter2-of-the-brokers"
BAD = "hunter2-that-nobody-knows"
SETTINGS = f"""
log = "log"
[serve]
listen = "127.0.0.1:0"
tokens = "tokens"
[avro]
"schema.registry.url" = "http://127.0.0.1:9"
"basic.auth.user.info" = "user:{PASSWORD}"
[kafka]
"bootstrap.servers" = "127.0.0.1:9"
"security.protocol" = "SASL_PLAINTEXT"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "user"
"sasl.password" = "{KAFKA_PASSWORD}"
"""


@dataclass
class Told:
    """All that came out, and where."""

    texts: list[tuple[str, str]] = field(default_factory=list)

    def add(self, where: str, text: str | bytes) -> None:
        self.texts.append(
            (where, text if isinstance(text, str) else text.decode("utf-8", "replace"))
        )

    def places_of(self, secret: str) -> list[str]:
        """Where it can be read, as it is or thinly hidden."""
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        shapes = {secret, encoded, secret.encode().hex(), json.dumps(secret)[1:-1]}
        return [where for where, text in self.texts if any(shape in text for shape in shapes)]


class Asking:
    """A host's client that keeps all it is told."""

    def __init__(self, url: str, told: Told) -> None:
        where = urlsplit(url)
        self._place = (where.hostname or "", where.port)
        self._told = told

    def ask(self, method: str, path: str, content: Any, headers: list[tuple[str, str]]) -> int:
        connection = http.client.HTTPConnection(*self._place, timeout=DEADLINE_SECONDS)
        with contextlib.closing(connection):
            connection.putrequest(method, path)
            body = content or b""
            if not isinstance(body, bytes):
                body = json.dumps(content).encode()
            for name, value in [
                *headers,
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                (PROTOCOL_HEADER, str(VERSION)),
            ]:
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            shown = f"{answer.headers}\n".encode() + answer.read()
            self._told.add(f"{method} {path} -> {answer.status}", shown)
            return answer.status


def ways(token: str) -> Iterator[list[tuple[str, str]]]:
    """How a token may be brought, right and wrong."""
    basic = base64.b64encode(f"user:{token}".encode()).decode()
    yield [("Authorization", f"Bearer {token}")]
    yield [("Authorization", f"Basic {basic}")]
    yield [("Authorization", f"Token {token}")]
    yield [("Authorization", token)]
    yield [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    yield [("X-Request-Id", "mine"), ("Authorization", f"Bearer {token}x")]


def described(asking: Asking, told: Told) -> list[tuple[str, str]]:
    """Every path and method of the host's own description, and those that it leaves out."""
    assert asking.ask("GET", "/openapi.json", None, []) == 200
    shown = json.loads(told.texts[-1][1].partition("\n\n")[2])
    found = [
        (method.upper(), path) for path, methods in shown["paths"].items() for method in methods
    ]
    assert ("POST", "/v1/api/topics/publish") in found
    return [
        *found,
        ("GET", "/registry/subjects"),
        ("POST", "/registry/subjects/s/versions"),
        ("GET", "/v1/internal/hello"),
        ("GET", f"/v1/internal/hello?nonce={'0' * 64}"),
        ("POST", "/v1/internal/call/topics"),
        ("POST", "/v1/internal/call/publish_rows"),
        ("PUT", "/v1/internal/parts/none"),
        ("GET", "/none"),
    ]


CONTENTS: tuple[Any, ...] = (
    {},
    None,
    b"{",
    {"topic": "orders", "messages": [{"value": "a"}]},
    {"topic": "orders", "timeout_seconds": 0, "start": "Earliest"},
    {"sql": "DROP TOPIC none"},
)
COSTLY: tuple[tuple[str, Any], ...] = (
    ("/v1/api/sql", {"sql": "SELECT * FROM orders LIMIT 1"}),  # by a process of its own
    (
        "/v1/api/topics/publish",  # asks the registry that cannot be reached
        {"table": "shop.orders", "op": "insert", "rows": [{"id": 1}], "key_columns": ["id"]},
    ),
)


@pytest.fixture
def inherited(tmp_path: Path) -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("DUOLOG_")}


def made_token(folder: Path, role: str, environment: dict[str, str]) -> str:
    made = subprocess.run(
        [*DUOLOG, "token", "create", "--role", role, "--name", role, "--file", "tokens"],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
        timeout=DEADLINE_SECONDS,
    )
    return made.stdout.decode().strip()


def look_at_processes(pid: int, told: Told) -> None:
    host = psutil.Process(pid)
    for process in (host, *host.children(recursive=True)):
        told.add("a command line", " ".join(process.cmdline()))
        told.add("an environment", json.dumps(process.environ()))


def look_at_files(folder: Path, told: Told) -> None:
    """All but the one that is for secrets, and the settings that a person has written."""
    for path in folder.rglob("*"):
        told.add("a file's name", path.name)
        if path.is_file() and path.name not in {"secret", "duolog.toml"}:
            told.add(path.name, path.read_bytes())


def documented_as_open() -> set[str]:
    """The paths that docs/security.md says need no token."""
    text = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    table = text.partition("answered without a token:\n\n")[2].partition("\n\n")[0]
    return {line.split("`")[1] for line in table.splitlines()[2:]}


def test_what_is_answered_without_a_token_is_what_the_documents_say(
    tmp_path: Path, inherited: dict[str, str]
) -> None:
    (tmp_path / "duolog.toml").write_text(SETTINGS.partition("[avro]")[0])
    made_token(tmp_path, "service", inherited)
    told, answered = Told(), set()
    with subprocess.Popen(
        [*DUOLOG, "serve", "--json"], cwd=tmp_path, env=inherited, stdout=subprocess.PIPE
    ) as host:
        try:
            asking = Asking(json.loads(cast("IO[bytes]", host.stdout).readline())["url"], told)
            for method, path in (*described(asking, told), ("GET", "/openapi.json")):
                if asking.ask(method, path, {}, []) != 401:
                    answered.add(path.partition("?")[0])
        finally:
            host.terminate()
            host.wait(DEADLINE_SECONDS)
    assert answered == documented_as_open()


@pytest.mark.parametrize(("form", "most"), [(["--log-json"], 4), ([], 1)], ids=["json", "text"])
def test_secrets_are_nowhere_to_be_read(
    tmp_path: Path, inherited: dict[str, str], form: list[str], most: int
) -> None:
    """`most`: with so many tokens; how the log is written changes little of it."""
    (tmp_path / "duolog.toml").write_text(SETTINGS)
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.create_topic("changes", TopicSettings(value_format=Format.AVRO))
        log.add_route("changes", Route("shop.orders", frozenset({Op.INSERT})))
    tokens = [made_token(tmp_path, role, inherited) for role in ("service", "system")]
    told = Told()
    with (
        (tmp_path / "stderr").open("wb") as stderr,
        subprocess.Popen(
            [*DUOLOG, "serve", "--json", "--log-level", "debug", *form],
            cwd=tmp_path,
            env=inherited,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as host,
    ):
        try:
            url = str(json.loads(cast("IO[bytes]", host.stdout).readline())["url"])
            secret = (tmp_path / "log" / "secret").read_text().strip()
            statuses = ask_everything(Asking(url, told), told, [*tokens, secret, BAD][:most])
            look_at_processes(host.pid, told)
            host.terminate()
            out, _ = host.communicate(timeout=DEADLINE_SECONDS)
        finally:
            host.kill()
    told.add("stdout", out)
    look_at_files(tmp_path, told)
    assert {200, 400, 401, 403, 404, 422, 503} <= statuses
    assert host.returncode == 0
    # What may be seen is found, so the rest would be.
    assert told.places_of(hash_of(tokens[0])) == ["tokens"]
    assert told.places_of("host.started") == ["stderr"]
    assert told.places_of("duolog.bridge.kafka.worker") == ["a command line"]
    parts = (secret[:32], *(token[7:30] for token in tokens))
    for hidden in (*tokens, *parts, secret, BAD, PASSWORD, KAFKA_PASSWORD):
        assert told.places_of(hidden) == []


def ask_everything(asking: Asking, told: Told, tokens: list[str]) -> set[int]:
    statuses = set()
    paths = described(asking, told)
    for token in tokens:
        for number, headers in enumerate(ways(token)):
            # The first way is the one that is let in, so it is the one that is told the most.
            for method, path in paths:
                for content in CONTENTS if number == 0 and method == "POST" else CONTENTS[:1]:
                    statuses.add(asking.ask(method, path, content, headers))
                if number == 0:
                    asked = f"{path}{'&' if '?' in path else '?'}token={token}"
                    statuses.add(asking.ask(method, asked, None, headers))
    for path, content in COSTLY:
        statuses.add(asking.ask("POST", path, content, next(ways(tokens[0]))))
    # What was asked is what we have said ourselves.
    told.texts = [(where.partition("?")[0], text) for where, text in told.texts]
    return statuses


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ("token = 12345678", {}),
        ('[avro]\n"basic.auth.user.info" = 12345678', {}),
        ("", {"DUOLOG_AVRO": '{"basic.auth.user.info": 12345678}'}),
        ("", {"DUOLOG_AVRO": "12345678"}),
        ("", {"DUOLOG_AVRO": '"12345678'}),
        ('token = "12345678', {}),
    ],
)
def test_settings_that_are_wrong_do_not_show_what_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, variables: dict[str, str]
) -> None:
    (tmp_path / "duolog.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(InvalidSetting) as refused:
        load_settings()
    assert "12345678" not in str(refused.value)


def test_a_host_that_does_not_start_does_not_show_them_either(
    tmp_path: Path, inherited: dict[str, str]
) -> None:
    (tmp_path / "duolog.toml").write_text(
        '[avro]\n"schema.registry.url" = "http://u:12345678@none:x"'
    )
    run = subprocess.run(
        [*DUOLOG, "serve", "--log", "log", "--listen", "127.0.0.1:0", "--json"],
        cwd=tmp_path,
        env=inherited,
        capture_output=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert run.returncode == 1
    assert json.loads(run.stderr.splitlines()[-1])["code"] == "InvalidSetting"
    assert b"12345678" not in run.stdout + run.stderr
