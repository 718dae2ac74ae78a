"""Every route, with every kind of token: who is let in, who is told what."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.rules import TopicRules
from duolog.bridge.http.sql import Sql
from duolog.bridge.http.tokens import add_token, condition_of, revoke_token
from duolog.bridge.metrics.names import CONNECTIONS, POLLS_WAITING
from duolog.log.model import Op, Record, Route
from tests.integration.serve_host import ServedLog, served, until

TOPICS = "/v1/api/topics"
SERVED: dict[str, tuple[str, Any]] = {
    "health": ("/healthz", None),
    "ready": ("/readyz", None),
    "description": ("/openapi.json", None),
    "metrics": ("/metrics", None),
    "consume": (f"{TOPICS}/consume", {"topic": "orders", "timeout_seconds": 0}),
    "ack": (f"{TOPICS}/ack", {"topic": "orders", "group_id": "g", "upto_offset": 0}),
    "offsets": (f"{TOPICS}/latest-offsets", {"topic": "orders"}),
    "publish": (f"{TOPICS}/publish", {"topic": "orders", "messages": [{"value": "v"}]}),
    "sql": ("/v1/api/sql", {"sql": "CONSUME FROM orders"}),
    "subjects": ("/registry/subjects", None),
    "register": ("/registry/subjects/orders-value/versions", {"schema": '"string"'}),
    "nothing": ("/nothing", None),
}
OPEN = {"health", "ready", "description"}
LEAST = {
    "metrics": Role.USER,
    "nothing": Role.USER,
    "consume": Role.SERVICE,
    "ack": Role.SERVICE,
    "offsets": Role.SERVICE,
    "publish": Role.SERVICE,
    "sql": Role.SERVICE,
    "subjects": Role.SERVICE,
    "register": Role.SERVICE,
}
WITH_USERS = {"consume", "ack", "offsets", "sql"}


class Guarded:
    """A host with tokens."""

    def __init__(self, host: ServedLog, tokens: dict[str, str], folder: Path) -> None:
        self.host = host
        self.folder = folder
        self.tokens = tokens

    def status(self, name: str, token: str | None) -> int:
        path, content = SERVED[name]
        return self.host.ask(path, content, token=token).status


@pytest.fixture(scope="module", params=[False, True], ids=["", "users consume"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    path = folder / "tokens"
    tokens = {role.word: add_token(path, Caller(role.word, role)) for role in Role}
    tokens["orders only"] = add_token(path, Caller("orders-only", Role.SERVICE, ("ord*",)))
    tokens["others only"] = add_token(path, Caller("others-only", Role.SYSTEM, ("other",)))
    tokens["mine only"] = add_token(path, Caller("mine", Role.SERVICE, groups=("mine-*",)))
    rules = TopicRules(allow_user_role_consume=request.param)
    with served(folder / "log", tokens=path, rules=rules) as host:
        for name in ("orders", "other"):
            host.log.create_topic(name)
            host.log.publish(name, [])
        host.log.publish("orders", [])
        host.log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
        host.log.add_route("other", Route("shop.orders", frozenset({Op.INSERT})))
        yield Guarded(host, tokens, folder)


def good(name: str) -> set[int]:
    """What a route answers to those who may ask."""
    return {404} if name == "nothing" else {409, 200} if name == "ack" else {200}


@pytest.mark.parametrize("name", SERVED)
def test_every_route_with_every_role(guarded: Guarded, name: str) -> None:
    users_consume = guarded.host.host.topic_rules.allow_user_role_consume
    for role in Role:
        least = Role.USER if users_consume and name in WITH_USERS else LEAST.get(name)
        expected = good(name) if least is None or role >= least else {403}
        assert guarded.status(name, guarded.tokens[role.word]) in expected, role


@pytest.mark.parametrize("name", SERVED)
def test_every_route_with_tokens_that_are_none(guarded: Guarded, name: str) -> None:
    whole = guarded.tokens["system"]
    for token in (None, "", "x", whole[:-1], whole + "x", whole.upper(), "é" * 40):
        reply = guarded.host.ask(
            *SERVED[name],
            headers={} if token is None else {"Authorization": b"Bearer " + token.encode()},  # type: ignore[dict-item]
        )
        assert reply.status in (good(name) if name in OPEN else {401}), token
        if reply.status == 401:
            assert "Bearer" in reply.headers["www-authenticate"]
            assert whole.encode() not in reply.body


@pytest.mark.parametrize("ending", ["%0a", "%0A", "%0d%0a", "%00", "/", "%20", ";"])
def test_a_path_that_is_nearly_one_is_none(guarded: Guarded, ending: str) -> None:
    """A path with a line end behind it is asked for by the least role, so nothing may answer it."""
    for name, (path, content) in SERVED.items():
        for role in ("user", "system", "orders only"):
            token = guarded.tokens[role]
            status = guarded.host.ask(f"{path}{ending}", content, token=token).status
            is_registry = path.startswith("/registry")  # where a slash makes no difference
            assert status == 404 or (is_registry and status in {200, 403, 405}), (name, role)


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "bearer  ", "Basic %%%", "Basic " + base64.b64encode(b"no colon").decode(),
     "Digest {}", "Token {}", "{}"],
)  # fmt: skip
def test_malformed_authorizations_are_refused(guarded: Guarded, authorization: str) -> None:
    sent = {"Authorization": authorization.format(guarded.tokens["system"])}
    assert guarded.host.ask("/metrics", headers=sent).status == 401


def test_a_token_may_be_the_password_of_basic_auth(guarded: Guarded) -> None:
    for scheme in ("Basic", "basic"):
        brought = base64.b64encode(f"anyone:{guarded.tokens['service']}".encode()).decode()
        sent = {"Authorization": f"{scheme} {brought}"}
        assert guarded.host.ask("/registry/subjects", headers=sent).status == 200


def test_the_registry_refuses_in_its_own_form(guarded: Guarded) -> None:
    assert guarded.host.ask("/registry/subjects").json["error_code"] == 401
    low = guarded.host.ask("/registry/subjects", token=guarded.tokens["user"])
    assert (low.status, low.json["error_code"]) == (403, 403)


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("PUT", "/registry/config", {"compatibility": "FULL"}),
        ("DELETE", "/registry/subjects/none", None),
    ],
)
def test_what_a_registry_promises_is_changed_by_a_dba(
    guarded: Guarded, method: str, path: str, content: Any
) -> None:
    ask = guarded.host.ask
    for role in (Role.USER, Role.SERVICE):
        refused = ask(path, content, method=method, token=guarded.tokens[role.word])
        assert refused.status == 403
    assert ask(path, content, method=method, token=guarded.tokens["dba"]).status in {200, 404}


def test_a_token_for_some_topics_sees_no_others(guarded: Guarded) -> None:
    ask, limited = guarded.host.ask, guarded.tokens["orders only"]
    for name in ("consume", "offsets", "publish"):
        assert guarded.status(name, limited) == 200
        assert guarded.status(name, guarded.tokens["others only"]) == 403
    other_id = guarded.host.log.topic("other").id
    for reference in ("other", other_id, str(other_id), "none", 999):
        refused = ask(f"{TOPICS}/latest-offsets", {"topic": reference}, token=limited)
        assert (refused.status, refused.code) == (403, "Forbidden"), reference
    unknown = ask(f"{TOPICS}/latest-offsets", {"topic": "ordnance"}, token=limited)
    assert (unknown.status, unknown.code) == (404, "UnknownTopic")
    assert "other" not in unknown.json["error"]


def test_a_token_for_some_topics_reads_neither_metrics_nor_writes_schemas(
    guarded: Guarded,
) -> None:
    limited = guarded.tokens["orders only"]
    assert guarded.status("metrics", limited) == 403
    assert guarded.status("subjects", limited) == 200
    assert guarded.status("register", limited) == 403


def test_rows_that_would_reach_another_topic_are_refused_whole(guarded: Guarded) -> None:
    rows = {"table": "shop.orders", "op": "insert", "rows": [{"id": 1}], "key_columns": ["id"]}
    ask, limited = guarded.host.ask, guarded.tokens["orders only"]
    before = guarded.host.log.offsets("orders")
    refused = ask(f"{TOPICS}/publish", rows, token=limited)
    assert refused.status == 403
    assert refused.json["error"] == (
        "The token 'orders-only' may not use table 'shop.orders': its rows go to other topics, "
        "too. Have one made with --topics that match all topics of the table."
    )
    assert guarded.host.log.offsets("orders") == before
    assert ask(f"{TOPICS}/publish", rows, token=guarded.tokens["service"]).status == 200
    unknown = ask(f"{TOPICS}/publish", {**rows, "table": "none"}, token=limited)
    assert unknown.code == "UnknownRoute"
    assert "shop.orders" not in unknown.json["error"]


def test_a_token_for_some_groups_uses_no_others(guarded: Guarded) -> None:
    ask, token = guarded.host.ask, guarded.tokens["mine only"]
    guarded.host.log.publish("orders", [Record(b"v")] * 3)
    guarded.host.log.begin_group("another", "orders", {0: 0})
    requests: dict[str, dict[str, Any]] = {
        "consume": {"timeout_seconds": 0, "partition_id": 0},
        "ack": {"upto_offset": 1},
        "heartbeat": {"member_id": "m", "generation": 1},
        "leave": {"member_id": "m"},
    }
    for name, content in requests.items():
        of = {"topic": "orders", **content}
        refused = ask(f"{TOPICS}/{name}", {**of, "group_id": "another"}, token=token)
        assert (refused.status, refused.code) == (403, "Forbidden"), name
        assert refused.json["error"] == (
            "The token 'mine' may not use group 'another'. Have one made with --groups that match "
            "it."
        )
        allowed = ask(f"{TOPICS}/{name}", {**of, "group_id": "mine-1"}, token=token)
        assert allowed.status in {200, 409}, name
    position = guarded.host.log.group_position("another", "orders", 0)
    assert position is not None
    assert position.position == 0
    assert guarded.status("metrics", token) == 403


def test_a_poll_gets_nothing_after_its_token_was_taken_back(guarded: Guarded) -> None:
    path = guarded.folder / "tokens"
    token = add_token(path, Caller("gone-soon", Role.SERVICE))
    end = guarded.host.log.offsets("other")[0].next_offset
    wanted = {"topic": "other", "timeout_seconds": 30, "start": {"offset": end}}
    with ThreadPoolExecutor(1) as pool:
        polls = guarded.host.host.tally.number(POLLS_WAITING)
        answer = pool.submit(guarded.host.ask, f"{TOPICS}/consume", wanted, token=token)
        until(lambda: guarded.host.host.tally.number(POLLS_WAITING) > polls)
        revoke_token(path, "gone-soon")
        guarded.host.log.publish("other", Record(b"not for them"))
        refused = answer.result(60)
    assert (refused.status, refused.code) == (401, "Unauthorized")
    assert b"not for them" not in refused.body


def test_statements_behind_a_revocation_are_not_done(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, answer = guarded.folder / "tokens", Sql._answer
    token = add_token(path, Caller("dba-gone-soon", Role.DBA))

    async def answer_then_revoke(*arguments: Any) -> bytes:
        answered = await answer(*arguments)
        revoke_token(path, "dba-gone-soon")
        return answered

    monkeypatch.setattr(Sql, "_answer", answer_then_revoke)
    content = {"sql": "CREATE TOPIC made_first; CREATE TOPIC made_second"}
    refused = guarded.host.ask("/v1/api/sql", content, token=token)
    made = {topic.name for topic in guarded.host.log.topics()}
    assert refused.status == 401
    assert "made_first" in made
    assert "made_second" not in made
    guarded.host.log.drop_topic("made_first")


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("POST", f"{TOPICS}/publish", {"topic": "orders", "messages": [{"value": "late"}]}),
        ("POST", f"{TOPICS}/ack", {"topic": "orders", "group_id": "late", "upto_offset": 0}),
        ("POST", f"{TOPICS}/latest-offsets", {"topic": "orders"}),
        ("POST", "/v1/api/writers/last-sequence", {"writer": "w"}),
        ("POST", "/registry/subjects/late/versions", {"schema": '"string"'}),
        ("PUT", "/registry/config", {"compatibility": "NONE"}),
    ],
)
def test_a_body_that_ends_after_its_token_was_taken_back_does_nothing(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch, method: str, path: str, content: Any
) -> None:
    monkeypatch.setattr("duolog.bridge.http.gate._A_MOMENT_SECONDS", 0.0)
    log, tokens = guarded.host.log, guarded.folder / "tokens"
    before = log.offsets("orders"), guarded.host.ask("/registry/config").body
    token = add_token(tokens, Caller("slow", Role.DBA))
    body = json.dumps(content).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    requests = guarded.host.host.tally.number(CONNECTIONS)
    try:
        with socket.create_connection(("127.0.0.1", guarded.host.port), timeout=60) as client:
            client.sendall(head.encode() + body[:1])
            until(lambda: guarded.host.host.tally.number(CONNECTIONS) > requests)
            assert guarded.host.ask("/healthz").status == 200  # what was sent before is being read
            revoke_token(tokens, "slow")
            client.sendall(body[1:])
            assert client.recv(4096).startswith(b"HTTP/1.1 401 ")
    finally:
        if "slow" in tokens.read_text():
            revoke_token(tokens, "slow")
    assert (log.offsets("orders"), guarded.host.ask("/registry/config").body) == before
    assert log.group_position("late", "orders", 0) is None
    subjects = guarded.host.ask("/registry/subjects", token=guarded.tokens["service"]).json
    assert "late" not in subjects


def test_a_token_with_a_condition_makes_no_routes(guarded: Guarded) -> None:
    """How many rows came to its topic would tell what the others hold."""
    where = condition_of("customer = 7")
    token = add_token(guarded.folder / "tokens", Caller("seven", Role.DBA, where=where))
    statement = "ALTER TOPIC orders ADD SOURCE shop.pay ON INSERT WHERE salary > 5000"
    refused = guarded.host.ask("/v1/api/sql", {"sql": statement}, token=token)
    assert (refused.status, refused.code) == (403, "Forbidden")
    assert "without --where" in refused.json["error"]
    revoke_token(guarded.folder / "tokens", "seven")


def test_no_name_of_a_token_makes_anothers_writer_its_own(guarded: Guarded) -> None:
    """A name of a writer may have a slash in it, as those of `duolog publish --table` have."""
    publish, tokens = f"{TOPICS}/publish", guarded.folder / "tokens"
    limited = add_token(tokens, Caller("import", Role.SERVICE, ("ord*",)))

    def sent(token: str, writer: str, sequence: int) -> int:
        message = {"topic": "orders", "writer": writer, "sequence": sequence,
                   "messages": [{"value": "v"}]}  # fmt: skip
        return guarded.host.ask(publish, message, token=token).status

    assert sent(guarded.tokens["service"], "import/2/0", 0) == 200
    assert sent(limited, "2/0", 5000) == 200
    assert sent(guarded.tokens["service"], "import/2/0", 1) == 200
    revoke_token(tokens, "import")


def test_refusals_are_counted_by_reason(guarded: Guarded) -> None:
    def count(reason: str) -> float:
        reply = guarded.host.ask("/metrics", token=guarded.tokens["user"]).body.decode()
        for line in reply.splitlines():
            if line.startswith(f'duolog_http_refused_total{{reason="{reason}"}} '):
                return float(line.rpartition(" ")[2])
        return 0.0

    before = [count(each) for each in ("no token", "unknown token", "role", "topic")]
    guarded.status("publish", None)
    guarded.status("publish", "unknown")
    guarded.status("publish", guarded.tokens["user"])
    guarded.status("publish", guarded.tokens["others only"])
    after = [count(each) for each in ("no token", "unknown token", "role", "topic")]
    assert [one - other for one, other in zip(after, before, strict=True)] == [1, 1, 1, 1]


def test_the_journal_names_whose_token_it_was(guarded: Guarded) -> None:
    """At level info where a request was refused for its role or limits, else at debug."""
    ask, tokens = guarded.host.ask, guarded.tokens
    asked = [
        ("low", SERVED["publish"], tokens["user"]),
        ("limited", SERVED["publish"], tokens["others only"]),
        ("fine", SERVED["publish"], tokens["service"]),
        ("nobody", SERVED["publish"], "unknown"),
        ("open", SERVED["health"], tokens["service"]),
    ]
    for name, (path, content), token in asked:
        ask(path, content, token=token, headers={"X-Request-Id": f"journal-{name}"})
    said: dict[str, dict[str, Any]] = {}

    def is_said() -> bool:
        lines = map(json.loads, guarded.host.said.getvalue().splitlines())
        said.update({line.get("id", ""): line for line in lines})
        return all(f"journal-{name}" in said for name, _, _ in asked)

    until(is_said)
    shown = {
        name: tuple(said[f"journal-{name}"].get(field) for field in ("level", "event", "caller"))
        for name, _, _ in asked
    }
    assert shown == {
        "low": ("info", "request.refused", "user"),
        "limited": ("info", "request.refused", "others-only"),
        "fine": ("debug", "request", "service"),
        "nobody": ("debug", "request", None),
        "open": ("debug", "request", None),
    }


def test_no_token_is_ever_said(guarded: Guarded, tmp_path: Path) -> None:
    said = guarded.host.said.getvalue()
    shown = guarded.host.ask("/metrics", token=guarded.tokens["dba"]).body.decode()
    for token in guarded.tokens.values():
        for text in (said, shown):
            assert token not in text
            assert token.removeprefix("duolog_")[:16] not in text
    assert said.count("\n") > 20


def page(origin: str | None, site: str | None = None) -> dict[str, str]:
    """What a browser says of itself."""
    said = {"Origin": origin, "Sec-Fetch-Site": site}
    return {name: value for name, value in said.items() if value is not None}


FOREIGN_PAGES = [
    page("https://evil.example"),
    page("null"),
    page("file://"),
    page("http://localhost:1"),
    page("http://127.0.0.1"),
    page("http://[::1"),
    page(""),
    page(None, "cross-site"),
    page("http://127.0.0.1:{port}", "Cross-Site"),
    page("http://127.0.0.1:{port}.evil.example"),
    page("http://evil.example@127.0.0.1:{port}"),
    page("https://127.0.0.1:{port}"),
]


@pytest.fixture(scope="module")
def open_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    """A host without tokens."""
    with served(tmp_path_factory.mktemp("open") / "log") as host:
        host.log.create_topic("orders")
        yield host


@pytest.mark.parametrize("said", FOREIGN_PAGES, ids=str)
def test_pages_of_other_sites_reach_nothing_where_there_are_no_tokens(
    open_host: ServedLog, said: dict[str, str]
) -> None:
    headers = {name: value.format(port=open_host.port) for name, value in said.items()}
    for path, content in SERVED.values():
        assert open_host.ask(path, content, headers=headers).status == 403, path
    for method, path in (("DELETE", "/registry/subjects/s"), ("PUT", "/registry/config")):
        assert open_host.ask(path, b"{}", method=method, headers=headers).status == 403
    assert open_host.log.offsets("orders")[0].next_offset == 0


@pytest.mark.parametrize(
    "said",
    [page("http://127.0.0.1:{port}", "same-origin"), page(None, "none"), page(None, "same-origin")],
    ids=str,
)
def test_the_hosts_own_pages_and_programs_reach_it(
    open_host: ServedLog, said: dict[str, str]
) -> None:
    headers = {name: value.format(port=open_host.port) for name, value in said.items()}
    assert open_host.ask("/registry/subjects", headers=headers).status == 200
    assert open_host.ask(*SERVED["offsets"], headers=headers).status == 200


def test_a_password_that_a_browser_keeps_is_of_no_use_to_other_sites(guarded: Guarded) -> None:
    brought = base64.b64encode(f"anyone:{guarded.tokens['service']}".encode()).decode()
    headers = page("https://evil.example") | {"Authorization": f"Basic {brought}"}
    refused = guarded.host.ask("/registry/subjects", headers=headers)
    assert (refused.status, refused.json["error_code"]) == (403, 403)
    own = page(f"http://127.0.0.1:{guarded.host.port}") | {"Authorization": f"Basic {brought}"}
    assert guarded.host.ask("/registry/subjects", headers=own).status == 200


def test_a_limited_tokens_writers_are_its_own(guarded: Guarded) -> None:
    """By the name of another's writer it would learn of that one's sequences, and use them up."""
    publish, last = f"{TOPICS}/publish", "/v1/api/writers/last-sequence"
    orders, whole = guarded.tokens["orders only"], guarded.tokens["service"]

    def sent(token: str, sequence: int, value: str) -> int:
        message = {"topic": "orders", "writer": "w", "sequence": sequence, "in_order": True,
                   "messages": [{"value": value}]}  # fmt: skip
        return guarded.host.ask(publish, message, token=token).status

    def last_of(token: str, writer: str = "w") -> int | None:
        number: int | None = guarded.host.ask(last, {"writer": writer}, token=token).json[
            "last_sequence"
        ]
        return number

    assert [sent(whole, number, "theirs") for number in (0, 1)] == [200, 200]
    assert last_of(orders) is None
    assert [sent(orders, number, "own") for number in (0, 1, 2)] == [200, 200, 200]
    assert (last_of(orders), last_of(whole)) == (2, 1)
    assert sent(orders, 2, "own") == 200  # a repeat
    assert sent(orders, 2, "other") == 409
    assert sent(whole, 2, "theirs") == 200
    assert last_of(whole, "token:orders-only/w") == 2  # as the log knows it


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_head_answers_as_get_does_without_a_body(tmp_path: Path, path: str) -> None:
    with served(tmp_path / "log") as host:
        got, headers_alone = host.ask(path), host.ask(path, method="HEAD")
        assert (headers_alone.status, headers_alone.body) == (got.status, b"")
        assert headers_alone.headers["content-length"] == str(len(got.body))
        assert host.ask("/readyz", method="DELETE").status == 405


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:80", "localhost.", "LocalHost.:7070"])
def test_names_of_this_machine_however_they_are_written(tmp_path: Path, name: str) -> None:
    with served(tmp_path / "log") as host:
        assert host.ask("/readyz", headers={"Host": name}).status == 200
        assert host.ask("/readyz", headers={"Host": f"x{name}"}).status == 403
