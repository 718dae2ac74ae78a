"""Who may do what: a table of every path, role and limit."""

from __future__ import annotations

import pytest

from duolog.bridge.http import access
from duolog.bridge.http.access import (
    DBA_CALLS,
    SERVICE_CALLS,
    endpoint_of,
    lacks,
    lacks_for_call,
    need_of,
    need_of_call,
)
from duolog.bridge.http.callers import Caller, Role
from duolog.errors import InvalidSetting
from duolog.reach.calls import CALLS

OPEN = None


@pytest.mark.parametrize(
    ("path", "method", "least", "least_if_users_consume", "unlimited"),
    [
        ("/healthz", "GET", OPEN, OPEN, False),
        ("/readyz", "GET", OPEN, OPEN, False),
        ("/openapi.json", "GET", OPEN, OPEN, False),
        ("/v1/internal", "POST", OPEN, OPEN, False),
        ("/v1/internal/call/append", "POST", OPEN, OPEN, False),
        ("/metrics", "GET", Role.USER, Role.USER, True),
        ("/v1/api/topics/consume", "POST", Role.SERVICE, Role.USER, False),
        ("/v1/api/topics/ack", "POST", Role.SERVICE, Role.USER, False),
        ("/v1/api/topics/latest-offsets", "POST", Role.SERVICE, Role.USER, False),
        ("/v1/api/writers/last-sequence", "POST", Role.SERVICE, Role.SERVICE, False),
        ("/v1/api/topics/publish", "POST", Role.SERVICE, Role.SERVICE, False),
        ("/v1/api/sql", "POST", Role.SERVICE, Role.USER, False),
        ("/registry", "GET", Role.SERVICE, Role.SERVICE, False),
        ("/registry/subjects", "GET", Role.SERVICE, Role.SERVICE, False),
        ("/registry/subjects/a/versions", "POST", Role.SERVICE, Role.SERVICE, True),
        ("/registry/subjects/a", "POST", Role.SERVICE, Role.SERVICE, True),
        ("/registry/config", "PUT", Role.DBA, Role.DBA, True),
        ("/registry/subjects/a", "DELETE", Role.DBA, Role.DBA, True),
        ("/", "GET", Role.USER, Role.USER, False),
        ("/v1/internals", "GET", Role.USER, Role.USER, False),
        ("/healthz/", "GET", Role.USER, Role.USER, False),
        ("/v1/api/topics/CONSUME", "POST", Role.USER, Role.USER, False),
        ("/other", "GET", Role.USER, Role.USER, False),
    ],
)
def test_what_each_path_asks_for(
    path: str,
    method: str,
    least: Role | None,
    least_if_users_consume: Role | None,
    unlimited: bool,
) -> None:
    for users_consume, wanted in ((False, least), (True, least_if_users_consume)):
        need = need_of(endpoint_of(path), method, users_consume=users_consume)
        assert need.role == wanted
        assert need.unlimited == unlimited
        for role in Role:
            enough = wanted is None or role >= wanted
            assert (lacks(Caller("a", role), need) is None) == enough
            limited = Caller("a", role, groups=("orders",))
            assert (lacks(limited, need) is None) == (enough and not unlimited)
            for to_subjects in (Caller("a", role, ("orders",)), Caller("a", role, subjects=("o",))):
                may_come = not unlimited or path.startswith("/registry")  # which looks at subjects
                assert (lacks(to_subjects, need) is None) == (enough and may_come)


def test_every_call_of_another_process_is_either_a_services_or_a_dbas() -> None:
    routes = {"hello", "fetch", "wait", "parts"}
    assert set(CALLS) | routes == SERVICE_CALLS | DBA_CALLS
    assert not SERVICE_CALLS & DBA_CALLS
    changing = {
        name for name in CALLS if name.startswith(("create_", "drop_", "clear_", "set_", "add_"))
    }
    assert changing <= DBA_CALLS


@pytest.mark.parametrize(
    ("call", "least"),
    [
        ("append", Role.SERVICE),
        ("parts", Role.SERVICE),
        ("drop_topic", Role.DBA),
        ("seek", Role.DBA),
        ("a call of tomorrow", Role.SYSTEM),
    ],
)
def test_what_a_call_asks_for(call: str, least: Role) -> None:
    need = need_of_call(call)
    for role in Role:
        assert (lacks(Caller("a", role), need) is None) == (role >= least)
        assert lacks(Caller("a", role, ("orders",)), need) is not None


def test_why_another_process_may_not_is_said_with_what_to_do() -> None:
    limited = Caller("pub", Role.SERVICE, ("orders",), groups=("g-*",))
    assert lacks_for_call(limited, "hello") == (
        "The token 'pub' is limited (--topics, --groups): the command line, Admin and Spark take a "
        "token without limits. Use HTTP, Consumer or Publisher with it."
    )
    assert lacks_for_call(Caller("eyes", Role.USER), "hello") == (
        "The token 'eyes' has the role user: the command line, Admin and Spark take service or a "
        "higher one ('hello'). Have a token made with: duolog token create --role service."
    )
    assert lacks_for_call(Caller("app", Role.SERVICE), "create_topic") == (
        "The token 'app' has the role service: the command line, Admin and Spark take dba or a "
        "higher one ('create_topic'). Have a token made with: duolog token create --role dba."
    )
    assert lacks_for_call(Caller("ops", Role.DBA), "create_topic") is None


def test_paths_that_nobody_knows_make_no_new_labels() -> None:
    paths = [f"/{number}" for number in range(10)] + ["/openapi.json", "/registry/a/b"]
    assert {endpoint_of(path) for path in paths} == {
        access.OTHER,
        access.DESCRIPTION,
        access.REGISTRY,
    }


@pytest.mark.parametrize(
    ("patterns", "topic", "allowed"),
    [
        (None, "orders", True),
        (("orders",), "orders", True),
        (("orders",), "orders2", False),
        (("orders",), "Orders", False),
        (("orders.*",), "orders.eu", True),
        (("orders.*",), "orders", False),
        (("a", "b?"), "b1", True),
        (("*",), "anything", True),
        ((), "orders", False),
    ],
)
def test_topic_patterns(patterns: tuple[str, ...] | None, topic: str, allowed: bool) -> None:
    assert Caller("a", Role.SYSTEM, patterns).may_use(topic) is allowed


def test_an_unknown_role_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InvalidSetting, match=r"'root' is no role.*user, service, dba, system"):
        Role.of("root")
