"""A real `duolog serve` process with a token file, and what is there for attacks to reach.

The process is started as a user starts it. With a mutant, a module of this drill changes one line
of the product first and then runs the same command.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from tests.drills.edge.wire import DEADLINE_SECONDS, Answer, answers_in, connect, read_to_end

ROOT = Path(__file__).parents[3]
SECRET = "S3CRET"
"""Stands in every record and schema that limited tokens may not see."""

OWN = "of-customer-7"
"""Stands in the records that the token with a condition may read."""

SALARIES = "salaries"
"""The topic that limited tokens may not see. Its name is in none of their answers."""

MAX_CONNECTIONS = 48
MAX_CONSUME_SECONDS = 1.0
MAX_STORED_GROUPS_OF_TOKEN = 300
MAX_SCHEMAS_BYTES = 12 << 20
SETTINGS = f"""
cache_bytes = {16 << 20}
[serve]
max_connections = {MAX_CONNECTIONS}
headers_within_seconds = 1.5
body_silence_seconds = 1.5
[topics]
max_consume_timeout = {MAX_CONSUME_SECONDS}
[members]
max_stored_groups_of_token = {MAX_STORED_GROUPS_OF_TOKEN}
[registry]
max_schemas_bytes = {MAX_SCHEMAS_BYTES}
[sql]
max_processes = 1
timeout_seconds = 2.0
memory_bytes = {384 << 20}
"""

ROLES = ("user", "service", "dba", "system")
_LIMITED: Mapping[str, tuple[str, ...]] = {
    "for orders": ("--topics", "orders*"),
    "for group mine": ("--groups", "mine-*"),
    "for table shop": ("--topics", "orders*", "--tables", "shop.*"),
    "for subject orders": ("--subjects", "orders*"),
    "for customer 7": ("--topics", "bills", "--where", "customer = 7"),
}
_ENDING: Mapping[str, tuple[str, ...]] = {
    "revoked": (),
    "rotated": (),
    "expired": ("--expires-seconds", "1"),
}


@dataclass
class Process:
    """`duolog serve`, ended at the latest when its block is left."""

    process: subprocess.Popen[bytes]
    said: Path
    port: int
    heard_bytes: int = 0  # of its journal

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def failures(self) -> list[str]:
        """What its journal has told since the last time of failures that nobody foresaw."""
        with self.said.open("rb") as journal:
            journal.seek(self.heard_bytes)
            lines = journal.read().decode(errors="replace").splitlines()
            self.heard_bytes = journal.tell()
        return [line for line in lines if '"level": "error"' in line or "Traceback" in line]

    def ask(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        within_seconds: float = DEADLINE_SECONDS,
    ) -> Answer:
        """One request on a connection of its own."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        sent = {} if body is None else {"Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=within_seconds)
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, named, answer.read())
        finally:
            connection.close()

    def send(self, *pieces: bytes) -> list[Answer]:
        """Send raw bytes and no more, and hear every answer until the host hangs up."""
        with connect(self.port) as client:
            return answers_in(read_to_end(client, *pieces))

    def close(self) -> None:
        if not self.has_ended:
            self.process.terminate()
            try:
                self.process.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(DEADLINE_SECONDS)
        cast("IO[bytes]", self.process.stdout).close()


def start_host(folder: Path, *arguments: str, mutant: str | None = None) -> Process:
    """Start `duolog serve` in a folder, and wait until it tells where it listens."""
    program = ["duolog.cli"] if mutant is None else ["tests.drills.edge.mutants", mutant]
    said = folder / f"journal-of-{arguments[1]}"
    with said.open("wb") as journal:
        process = subprocess.Popen(
            [sys.executable, "-m", *program, "serve", *arguments, "--log-json", "--json"],
            cwd=folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=journal,
        )
    line = cast("IO[bytes]", process.stdout).readline()
    if not line:
        code = process.wait(DEADLINE_SECONDS)
        raise RuntimeError(f"The host ended with {code}: {said.read_text(errors='replace')}")
    port = int(json.loads(line)["url"].rpartition(":")[2])
    return Process(process, said, port)


@dataclass(frozen=True)
class Keys:
    """A token file as users make it, and the tokens of it by their names."""

    file: Path
    tokens: Mapping[str, str]
    former: str  # of the one that was replaced

    @classmethod
    def make(cls, folder: Path) -> Keys:
        """One that is revoked and one that is replaced are among them."""
        tokens = {role: add_token(folder / "tokens", Caller(role, Role.of(role))) for role in ROLES}
        making = {
            name: _begin(
                folder,
                *("token", "create", "--name", name.replace(" ", "-"), "--file", "tokens"),
                *("--role", "dba", *limits),
            )
            for name, limits in {**_LIMITED, **_ENDING}.items()
        }
        tokens |= {name: _finished(process) for name, process in making.items()}
        former = tokens["rotated"]
        tokens["rotated"] = _told(folder, "token", "rotate", "rotated", "--file", "tokens")
        _told(folder, "token", "revoke", "revoked", "--file", "tokens")
        return cls(folder / "tokens", tokens, former)


class Edge:
    """The host that is attacked, and what attackers have: tokens, raw connections, time."""

    def __init__(
        self, folder: Path, keys: Keys, *, settings: str = SETTINGS, mutant: str | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.tokens = keys.tokens
        self.former = keys.former
        self._mutant = mutant
        self._ending = ExitStack()
        (folder / "duolog.toml").write_text(settings)
        (folder / "tokens").write_bytes(keys.file.read_bytes())
        self.host = self._start("log", "--tokens", "tokens")
        self._open_host: Process | None = None
        try:
            fill(self.host, self.tokens["system"])
        except BaseException:
            self.close()
            raise

    @property
    def open_host(self) -> Process:
        """A second real host, without tokens."""
        if self._open_host is None:
            self._open_host = self._start("open-log")
        return self._open_host

    @property
    def log_folder(self) -> Path:
        return self.folder / "log"

    def ask(
        self, method: str, path: str, content: Any = None, *, who: str | None = None, **more: Any
    ) -> Answer:
        """Ask the host with the token of that name."""
        token = None if who is None else self.tokens[who]
        return self.host.ask(method, path, content, token=token, **more)

    def sql(self, text: str, who: str = "system", **more: Any) -> Answer:
        return self.ask("POST", "/v1/api/sql", {"sql": text}, who=who, **more)

    def salaries_are_untouched(self) -> bool:
        """Whether the topic of others has its one record, its route and its group's position."""
        topics = self.sql("SELECT topic, partitions FROM system.topics WHERE topic = 'salaries'")
        offsets = self.ask(
            "POST", "/v1/api/topics/latest-offsets", {"topic": SALARIES}, who="system"
        ).json
        groups = self.sql(
            "SELECT position FROM system.topic_offsets WHERE group_id = 'others' "
            "AND topic = 'salaries'"
        )
        routed = self.sql("SELECT topic FROM system.sources WHERE topic = 'salaries'")
        return (
            topics.json["rows"] == [[SALARIES, 1]]
            and [each["next_offset"] for each in offsets["offsets"]] == [1]
            and groups.json["rows"] == [[1]]
            and len(routed.json["rows"]) == 1
        )

    def wrong_after(self) -> list[str]:
        """What an attack has left behind that it should not."""
        wrong = [] if not self.host.has_ended else ["the host has ended"]
        for host in (self.host, self._open_host):
            if host is not None and not host.has_ended:
                until(lambda host=host: host.ask("GET", "/healthz").status == 200)  # type: ignore[misc]
                wrong += host.failures()
        return wrong

    def close(self) -> None:
        self._ending.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self, log: str, *more: str) -> Process:
        listen = ("--listen", "127.0.0.1:0")
        host = start_host(self.folder, "--log", log, *listen, *more, mutant=self._mutant)
        self._ending.callback(host.close)
        return host


def fill(host: Process, token: str) -> None:
    """What belongs to the limited tokens, and what belongs to others."""

    def done(method: str, path: str, content: Any) -> Answer:
        answer = host.ask(method, path, content, token=token)
        assert answer.status == 200, answer
        return answer

    statements = (
        "CREATE TOPIC orders",
        "ALTER TOPIC orders SET PARTITIONS 2",
        "CREATE TOPIC salaries ALIAS 'wages'",
        "ALTER TOPIC salaries ADD SOURCE hr.pay ON INSERT",
        "ALTER TOPIC orders ADD SOURCE shop.orders ON INSERT",
        "CREATE TOPIC many",
        "ALTER TOPIC many ADD SOURCE shop.many ON INSERT",
        "CREATE TOPIC bills",
    )
    done("POST", "/v1/api/sql", {"sql": "; ".join(statements)})
    for topic, value in (("orders", "plain"), (SALARIES, SECRET)):
        messages = [{"value": value, "partition_id": 0}]
        done("POST", "/v1/api/topics/publish", {"topic": topic, "messages": messages})
        field = {"name": value, "type": "int"}
        schema = {"type": "record", "name": f"Of{value}", "fields": [field]}
        path = f"/registry/subjects/{topic}-value/versions"
        done("POST", path, {"schema": json.dumps(schema)})
    for customer, note in ((7, OWN), (8, SECRET), (7, OWN)):
        messages = [{"value": {"customer": customer, "note": note}}]
        done("POST", "/v1/api/topics/publish", {"topic": "bills", "messages": messages})
    writer = {"writer": "others", "sequence": 40}
    messages = [{"value": "plain", "partition_id": 1}]
    done("POST", "/v1/api/topics/publish", {"topic": "orders", "messages": messages, **writer})
    for group, topic in (("others", SALARIES), ("others", "orders"), ("mine-1", "orders")):
        acknowledged = {"topic": topic, "group_id": group, "upto_offset": 0, "partition_id": 0}
        done("POST", "/v1/api/topics/ack", acknowledged)


def until(condition: Callable[[], bool], within_seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for something that the host does by itself."""
    deadline = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.02)


def _environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DUOLOG_")}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), *_python_path()])}


def _python_path() -> list[str]:
    path = os.environ.get("PYTHONPATH")
    return [] if not path else [path]


def _begin(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "duolog.cli", *arguments],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _finished(process: subprocess.Popen[bytes]) -> str:
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err
    return out.decode().strip()


def _told(folder: Path, *arguments: str) -> str:
    return _finished(_begin(folder, *arguments))
