"""A host in this process, on a free loopback port, with its log at hand; and how to ask it."""

from __future__ import annotations

import http.client
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from duolog.avro.embedded import open_log, registry_of
from duolog.bridge.http.app import host_app
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.host import Host
from duolog.bridge.http.rules import BodyLimits, TopicRules
from duolog.bridge.journal import Journal, Level
from duolog.bridge.members.model import Rules as MemberRules
from duolog.bridge.metrics.bounds import MetricRules
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.connections import ConnectionRules, Connections
from duolog.bridge.serve.watched import watched_protocol
from duolog.bridge.sql.rules import SqlRules
from duolog.clock import Clock, SystemClock
from duolog.log import EmbeddedLog, LogOptions
from duolog.server.address import Address
from duolog.server.listener import listen

DEADLINE_SECONDS = 60


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["code"])


@dataclass
class ServedLog:
    """A host that runs in a thread of this process."""

    host: Host
    log: EmbeddedLog
    port: int
    said: io.StringIO
    server: uvicorn.Server
    thread: threading.Thread = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        path: str,
        content: Any = None,
        *,
        method: str | None = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request: POST with JSON when there is something to send, else GET."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        sent = {} if body is None else {"Content-Type": "application/json"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request(
                method or ("GET" if body is None else "POST"),
                path,
                body,
                {**sent, **(headers or {})},
            )
            answer = connection.getresponse()
            return Reply(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def consume(self, **wanted: Any) -> Reply:
        return self.ask("/v1/api/topics/consume", {"timeout_seconds": 0, **wanted})

    def publish(self, topic: str, *values: Any) -> Reply:
        messages = [{"value": value} for value in values]
        return self.ask("/v1/api/topics/publish", {"topic": topic, "messages": messages})

    def metric(self, line: str) -> float:
        """The number behind a name and labels, as /metrics has it; 0 when it has none."""
        for found in self.ask("/metrics").body.decode().splitlines():
            if found.startswith(f"{line} "):
                return float(found.rpartition(" ")[2])
        return 0.0


@contextmanager
def served(
    folder: Path,
    *,
    tokens: Path | None = None,
    clock: Clock | None = None,
    rules: TopicRules | None = None,
    limits: BodyLimits | None = None,
    sql_rules: SqlRules | None = None,
    members: MemberRules | None = None,
    metrics: MetricRules | None = None,
    connections: ConnectionRules | None = None,
    protocol: Any = None,
    level: Level = Level.DEBUG,
) -> Iterator[ServedLog]:
    """Serve a log; stops in the order in which the real process does."""
    clock = clock or SystemClock()
    said, tally = io.StringIO(), Tally()
    journal = Journal(said, level=level, as_json=True, clock=clock)
    with (
        listen(Address("127.0.0.1", 0)) as listener,
        open_log(folder, options=LogOptions(clock=clock)) as log,
    ):
        host = Host(
            log,
            clock,
            tally,
            journal,
            Doorkeeper(tokens, tally, journal, clock),
            rules or TopicRules(),
            limits or BodyLimits(),
            sql_rules=sql_rules or SqlRules(),
            member_rules=members or MemberRules(),
            metric_rules=metrics or MetricRules(),
        )
        server = uvicorn.Server(
            uvicorn.Config(
                host_app(host, registry=registry_of(log)),
                http=watched_protocol(
                    Connections(connections or ConnectionRules(), tally, journal), protocol
                ),
                log_config=None,
                lifespan="on",
                ws="none",
                timeout_graceful_shutdown=10,
            )
        )
        running = ServedLog(host, log, listener.getsockname()[1], said, server)
        running.thread = threading.Thread(target=server.run, args=([listener],), name="host")
        running.thread.start()
        try:
            yield running
        finally:
            stop(running)


def stop(running: ServedLog) -> None:
    """Stop it as a signal does."""
    running.server.should_exit = True
    running.host.stop_waiting()
    running.thread.join(DEADLINE_SECONDS)
    assert not running.thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that the host does by itself."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)
