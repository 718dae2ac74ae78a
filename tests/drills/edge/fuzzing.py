"""Sends a host requests that nobody thought of, and watches what becomes of it.

Wrong is: a 500, a request that is neither answered nor hung up on in time, a failure in the
journal, a process that has ended, more memory than a host may take.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from duolog.avro.registry.app import registry_app
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.service import RegistryService
from tests.drills.edge.hosting import Edge
from tests.drills.edge.memory import MOST_MEMORY_BYTES, MemoryWatch
from tests.drills.edge.mutating import mutated
from tests.drills.edge.recording import recorded
from tests.drills.edge.wire import NoAnswer, connect, read_to_end, request

ANSWER_WITHIN_SECONDS = 30.0
SETTINGS = f"""
cache_bytes = {16 << 20}
[serve]
headers_within_seconds = 0.5
body_silence_seconds = 0.5
[topics]
default_consume_timeout = 0.02
max_consume_timeout = 0.05
[sql]
max_processes = 1
timeout_seconds = 1.0
memory_bytes = {384 << 20}
"""

_AT_ONCE = 24
_EXAMPLES = 8
_LAST = request("GET", "/healthz")
_FAILED = re.compile(rb"HTTP/1\.1 500 ")
_KNOWN: dict[str, Any] = {
    "topic": "orders",
    "topic_id": "orders",
    "partition_id": 0,
    "group_id": "mine-1",
    "table": "shop.orders",
    "op": "insert",
    "writer": "w",
    "sql": "SELECT topic FROM system.topics",
}
_KNOWN_PARTS: dict[str, Any] = {
    "subject": "orders-value", "version": "latest", "id": 1, "context": "."
}  # fmt: skip


@dataclass
class Found:
    """What a run has met."""

    requests: int = 0
    wrong: list[str] = field(default_factory=list)


class Fuzzer:
    """Described and broken requests in turn, until the time is up or something is wrong."""

    def __init__(
        self,
        edge: Edge,
        chance: random.Random,
        *,
        answer_within_seconds: float = ANSWER_WITHIN_SECONDS,
    ) -> None:
        self._edge = edge
        self._chance = chance
        self._answer_within_seconds = answer_within_seconds
        self._tokens = list(edge.tokens.values())
        self.found = Found()

    def run(self, seconds: float) -> Found:
        """For so long, after what is made ready first; a little more to finish what was begun."""
        found, host = self.found, self._edge.host
        with MemoryWatch(host.pid) as memory:
            real = recorded(host, self._edge.tokens["system"])
            print(f"{len(real)} requests of real clients")
            described = self._described()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and not found.wrong:
                for _ in range(10):
                    self._send_broken(real)
                    if found.wrong:
                        break
                self._ask_described(self._chance.choice(described))
                self._put_right()
                memory.look()
                if memory.highest_bytes > MOST_MEMORY_BYTES:
                    found.wrong.append(f"{memory.highest_bytes >> 20} MiB of memory")
        print(f"{found.requests} requests, at most {memory.highest_bytes / 1e6:.0f} MB of memory")
        return found

    def _send_broken(self, real: Sequence[bytes]) -> None:
        """Some broken requests at once, each on a connection of its own."""
        batch = [mutated(self._chance, real, self._tokens) for _ in range(_AT_ONCE)]
        self.found.requests += len(batch)
        with ExitStack() as ending:
            clients = []
            for sent in batch:
                client = ending.enter_context(connect(self._edge.host.port))
                with suppress(ConnectionError):  # it may be hung up on before its end
                    client.sendall(sent + _LAST)
                clients.append((sent, client))
            for sent, client in clients:
                try:
                    said = read_to_end(
                        client, within_seconds=self._answer_within_seconds, one_is_enough=True
                    )
                except NoAnswer as error:
                    self.found.wrong.append(f"{error}, after {sent!r}")
                    return
                if _FAILED.match(said) or (b"InternalError" in said and _FAILED.search(said)):
                    self.found.wrong.append(f"a 500 after {sent!r}")

    def _described(self) -> list[tuple[str, Any]]:
        """Every operation of the host and of its registry, with where it is asked."""
        url = self._edge.host.url
        application: Any = registry_app(RegistryService(MemoryDocuments()))
        apis: Any = (
            (url, schemathesis.openapi.from_url(f"{url}/openapi.json")),
            (f"{url}/registry", schemathesis.openapi.from_dict(application.openapi())),
        )
        return [(base, each.ok()) for base, api in apis for each in api.get_all_operations()]

    def _ask_described(self, operation: tuple[str, Any]) -> None:
        base, asked = operation
        found = self.found

        @seed(self._chance.randrange(10**9))
        @settings(
            max_examples=_EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(asked.as_strategy())
        def ask(case: Any) -> None:
            token = self._tokens[found.requests % len(self._tokens)]
            found.requests += 1
            if found.requests % 2:
                _name_what_is_there(case)
            try:
                reply = case.call(
                    base_url=base,
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=self._answer_within_seconds,
                )
            except requests.Timeout:
                found.wrong.append(f"no answer to {case.as_curl_command()}")
                return
            except requests.RequestException:
                return  # a request that cannot be sent, or was hung up on
            if reply.status_code == 500:
                found.wrong.append(f"a 500 to {case.as_curl_command()}: {reply.text[:300]}")

        ask()

    def _put_right(self) -> None:
        """Make again what a request has removed, and throw away what others have stored; see
        whether the host has failed.
        """
        edge, wrong = self._edge, self.found.wrong
        if edge.host.has_ended:
            wrong.append("the host has ended")
            return
        wrong += edge.host.failures()
        for text in ("CREATE TOPIC IF NOT EXISTS orders", "CLEAR TOPIC orders"):
            answer = edge.sql(text, within_seconds=self._answer_within_seconds)
            if answer.status not in {200, 404, 409, 503}:
                wrong.append(f"{text}: {answer}")


def _name_what_is_there(case: Any) -> None:
    if isinstance(case.body, dict):
        case.body = {name: _KNOWN.get(name, value) for name, value in case.body.items()}
    for name in case.path_parameters or {}:
        if name in _KNOWN_PARTS:
            case.path_parameters[name] = _KNOWN_PARTS[name]


def fuzz(
    edge: Edge, chance: random.Random, seconds: float, *, answer_within_seconds: float
) -> list[str]:
    """What is wrong after so long, nothing if all is well."""
    return Fuzzer(edge, chance, answer_within_seconds=answer_within_seconds).run(seconds).wrong
