"""Which role each path asks for. The only place that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from duolog.bridge.http.callers import Caller, Role
from duolog.sql.statements import Ack, Consume, Select, Statement

CONSUME: Final = "/v1/api/topics/consume"
ACK: Final = "/v1/api/topics/ack"
HEARTBEAT: Final = "/v1/api/topics/heartbeat"
LEAVE: Final = "/v1/api/topics/leave"
OFFSETS: Final = "/v1/api/topics/latest-offsets"
PUBLISH: Final = "/v1/api/topics/publish"
LAST_SEQUENCE: Final = "/v1/api/writers/last-sequence"
SQL: Final = "/v1/api/sql"
METRICS: Final = "/metrics"
HEALTH: Final = "/healthz"
READY: Final = "/readyz"
DESCRIPTION: Final = "/openapi.json"
INTERNAL: Final = "/v1/internal"
REGISTRY: Final = "/registry"
OTHER: Final = "other"

API: Final = "/v1/api/"
_LIMITS: Final = ("topics", "groups", "tables", "subjects", "where")  # of a caller
_READING: Final = ("GET", "HEAD")
_CHANGING: Final = ("PUT", "DELETE")


@dataclass(frozen=True, slots=True)
class Need:
    """What a request asks of its sender. Without a role, nothing."""

    role: Role | None
    unlimited: bool = False  # a token that is limited in any way is not enough
    unless_to_subjects: bool = False  # named, or of its topics: the registry says what it may there


_NEEDS: Final = {
    CONSUME: Need(Role.SERVICE),
    ACK: Need(Role.SERVICE),
    HEARTBEAT: Need(Role.SERVICE),
    LEAVE: Need(Role.SERVICE),
    OFFSETS: Need(Role.SERVICE),
    PUBLISH: Need(Role.SERVICE),
    LAST_SEQUENCE: Need(Role.SERVICE),
    SQL: Need(Role.SERVICE),  # for its least; each statement asks for itself
    METRICS: Need(Role.USER, unlimited=True),
    HEALTH: Need(None),
    READY: Need(None),
    DESCRIPTION: Need(None),
    INTERNAL: Need(None),  # its routes ask for themselves, by another secret
    OTHER: Need(Role.USER),
}
_CONSUMING: Final = (CONSUME, ACK, HEARTBEAT, LEAVE, OFFSETS, SQL)

SERVICE_CALLS: Final = frozenset(
    {
        "hello", "fetch", "wait", "parts", "max_record_bytes", "max_timestamp_ahead_seconds",
        "stats", "topic", "topics",
        "append", "last_epoch", "forget_writer", "publish", "publish_rows", "last_sequence",
        "offsets", "all_offsets", "record_times", "resolve",
        "group_position", "group_positions", "group_members", "ack",
        "settle_group", "begin_group", "mirror", "mirrors", "mirror_producer", "mirror_modes",
        "mirror_reports",
        "look_for_damage", "damage", "holes",
    }
)  # fmt: skip
"""What another Duolog process may do with a log as a service: read, write, acknowledge."""

DBA_CALLS: Final = frozenset(
    {
        "create_topic", "drop_topic", "clear_topic", "add_route", "drop_route", "set_retention",
        "set_partitions", "seek", "delete_group", "enforce_retention", "begin_mirror",
        "change_mirror", "forget_mirror", "keep_mirror_producer", "remember_kafka",
        "set_mirror_mode", "tell_mirror", "checkpoint", "skip_to",
    }
)  # fmt: skip
"""What only a dba may: define topics, move groups anywhere, remove records, mirror."""


def endpoint_of(path: str) -> str:
    """The endpoint that a path belongs to; one of a small number, so that it can be a label."""
    if path in _NEEDS and path != INTERNAL:
        return path
    for prefix in (INTERNAL, REGISTRY):
        if path == prefix or path.startswith(f"{prefix}/"):
            return prefix
    return OTHER


def need_of(endpoint: str, method: str, *, users_consume: bool) -> Need:
    """What a request to an endpoint asks for."""
    if endpoint == REGISTRY:
        if method in _READING:
            return Need(Role.SERVICE)
        role = Role.DBA if method in _CHANGING else Role.SERVICE
        return Need(role, unlimited=True, unless_to_subjects=True)
    if users_consume and endpoint in _CONSUMING:
        return Need(Role.USER)
    return _NEEDS[endpoint]


def need_of_statement(statement: Statement, *, users_consume: bool) -> Need:
    """What a statement of SQL asks for. The topics that it names are looked at besides."""
    if isinstance(statement, Select | Consume | Ack):
        return need_of(SQL, "POST", users_consume=users_consume)
    return Need(Role.DBA)


def need_of_call(call: str) -> Need:
    """What a call of another Duolog process asks for; one that nobody put in a list, the most."""
    if call in SERVICE_CALLS:
        return Need(Role.SERVICE, unlimited=True)
    return Need(Role.DBA if call in DBA_CALLS else Role.SYSTEM, unlimited=True)


def lacks_for_call(caller: Caller, call: str) -> str | None:
    """Why this caller may not make a call of another Duolog process; None when they may."""
    need = need_of_call(call)
    if lacks(caller, need) is None:
        return None
    if caller.is_limited:
        limits = ", ".join(f"--{each}" for each in _LIMITS if getattr(caller, each) is not None)
        return (
            f"The token '{caller.name}' is limited ({limits}): the command line, Admin and Spark "
            "take a token without limits. Use HTTP, Consumer or Publisher with it."
        )
    role = (need.role or Role.SYSTEM).word
    return (
        f"The token '{caller.name}' has the role {caller.role.word}: the command line, Admin and "
        f"Spark take {role} or a higher one ('{call}'). Have a token made with: duolog token "
        f"create --role {role}."
    )


def lacks(caller: Caller, need: Need) -> str | None:
    """Why this caller may not; None when they may."""
    if need.role is not None and caller.role < need.role:
        return (
            f"This takes the role {need.role.word} or a higher one; the token '{caller.name}' has "
            f"{caller.role.word}."
        )
    if need.unlimited and caller.is_limited:
        if not need.unless_to_subjects:
            return f"This takes a token without limits; '{caller.name}' is limited."
        if not caller.is_limited_to_subjects:
            return (
                "This takes a token without limits, or one whose subjects are named (--subjects); "
                f"'{caller.name}' is limited otherwise."
            )
    return None
