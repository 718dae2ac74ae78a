"""Each kind of request that a host takes, and the lowest role that may send it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

PROTOCOL: Final = {"Duolog-Protocol": "2"}
"""What other Duolog processes send with each request."""

_TOPICS: Final = "/v1/api/topics"
INTERNAL: Final = "/v1/internal"
_MEMBER: Final = {"topic": "orders", "group_id": "mine-2", "member_id": "m"}
_PART: Final = f"{INTERNAL}/parts/{'0' * 24}/0/{'0' * 32}.part"


@dataclass(frozen=True)
class Guarded:
    """A request that takes a token of a role. With `unlimited`, limited tokens are refused."""

    method: str
    path: str
    content: Any
    least_role: str
    unlimited: bool = False

    @property
    def headers(self) -> dict[str, str]:
        return PROTOCOL if self.path.startswith(INTERNAL) else {}


def _sql(text: str, role: str) -> Guarded:
    return Guarded("POST", "/v1/api/sql", {"sql": text}, role)


def _call(name: str, role: str) -> Guarded:
    return Guarded("POST", f"{INTERNAL}/call/{name}", {}, role, unlimited=True)


GUARDED: Final = (
    Guarded("GET", "/metrics", None, "user", unlimited=True),
    Guarded("GET", "/nothing", None, "user"),
    Guarded("POST", f"{_TOPICS}/consume", {"topic": "orders", "timeout_seconds": 0}, "service"),
    Guarded(
        "POST",
        f"{_TOPICS}/ack",
        {"topic": "orders", "group_id": "mine-2", "upto_offset": 0, "partition_id": 0},
        "service",
    ),
    Guarded("POST", f"{_TOPICS}/heartbeat", {**_MEMBER, "generation": 1}, "service"),
    Guarded("POST", f"{_TOPICS}/leave", _MEMBER, "service"),
    Guarded("POST", f"{_TOPICS}/latest-offsets", {"topic": "orders"}, "service"),
    Guarded("POST", f"{_TOPICS}/publish", {"topic": "orders", "messages": []}, "service"),
    Guarded("POST", "/v1/api/writers/last-sequence", {"writer": "w"}, "service"),
    _sql("SELECT 1", "service"),
    _sql("CONSUME FROM orders", "service"),
    _sql("ACK orders GROUP 'mine-2' PARTITION 0 UPTO OFFSET 0", "service"),
    _sql("CREATE TOPIC IF NOT EXISTS orders_made", "dba"),
    _sql("RESET CONSUMER GROUP 'mine-2' ON orders TO EARLIEST", "dba"),
    _sql("DROP TOPIC IF EXISTS orders_gone", "dba"),
    Guarded("GET", "/registry/subjects", None, "service"),
    Guarded("GET", "/registry/schemas/ids/1", None, "service"),
    Guarded("GET", "/registry/none", None, "service"),
    Guarded(
        "POST",
        "/registry/subjects/orders-made/versions",
        {"schema": '"string"'},
        "service",
        unlimited=True,
    ),
    Guarded("PUT", "/registry/config", {"compatibility": "BACKWARD"}, "dba", unlimited=True),
    Guarded("DELETE", "/registry/subjects/orders-none", None, "dba", unlimited=True),
    _call("topics", "service"),
    _call("publish", "service"),
    _call("create_topic", "dba"),
    _call("checkpoint", "dba"),
    _call("none", "system"),
    Guarded("GET", f"{INTERNAL}/hello", None, "service", unlimited=True),
    Guarded("GET", f"{INTERNAL}/fetch", None, "service", unlimited=True),
    Guarded("POST", f"{INTERNAL}/wait", {}, "service", unlimited=True),
    Guarded("GET", _PART, None, "service", unlimited=True),
    Guarded("PUT", _PART, b"x", "service", unlimited=True),
    Guarded("DELETE", _PART, None, "service", unlimited=True),
)

OPEN_PATHS: Final = ("/healthz", "/readyz", "/openapi.json")
"""Answered without a token."""
