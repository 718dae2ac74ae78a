"""A token that is limited to subjects learns of no other ones, by any route of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from duolog.avro.embedded import registry_of
from duolog.avro.registry import rest_http
from duolog.avro.registry.app import registry_app
from duolog.avro.registry.port import SchemaReference, SchemaText
from duolog.avro.registry.subject_access import SubjectAccess
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from tests.integration.serve_host import Reply, ServedLog, served

MINE, THEIRS = "orders-value", "salaries-value"
IN_CONTEXT = ":.staging:salaries-value"
SECRET = "SecretField"
CONFIG = {"compatibility": "NONE"}


def schema(field: str) -> str:
    fields = [{"name": field, "type": "int"}]
    record = {"type": "record", "name": f"Of{field}", "fields": fields}
    return json.dumps(record, separators=(",", ":"))


class Registry:
    def __init__(self, host: ServedLog, tokens: dict[str, str], ids: dict[str, int]) -> None:
        self.host = host
        self.tokens = tokens
        self.ids = ids

    def ask(self, who: str, call: str, content: Any = None) -> Reply:
        method, _, path = call.partition(" ")
        return self.host.ask(f"/registry{path}", content, method=method, token=self.tokens[who])


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    path = tmp_path / "tokens"
    orders = ("orders*",)
    tokens = {
        "all": add_token(path, Caller("all", Role.DBA)),
        "topics": add_token(path, Caller("topics", Role.DBA, topics=("orders",))),
        "subjects": add_token(path, Caller("subjects", Role.DBA, subjects=orders)),
        "reader": add_token(path, Caller("reader", Role.SERVICE, subjects=orders)),
        "groups": add_token(path, Caller("groups", Role.DBA, groups=("mine",))),
    }
    with served(tmp_path / "log", tokens=path) as host:
        service = registry_of(host.log)
        ids = {
            MINE: service.register(MINE, SchemaText(schema("Mine"))),
            THEIRS: service.register(THEIRS, SchemaText(schema(SECRET))),
            IN_CONTEXT: service.register(IN_CONTEXT, SchemaText(schema(SECRET))),
        }
        service.register("orders-both", SchemaText(schema("Both")))
        service.register("salaries-both", SchemaText(schema("Both")))
        referring = schema("Ref").replace('"int"', f'"Of{SECRET}"')
        reference = SchemaReference(f"Of{SECRET}", THEIRS, 1)
        service.register("salaries-refers", SchemaText(referring, references=(reference,)))
        yield Registry(host, tokens, ids)


def calls(registry: Registry, subject: str) -> list[tuple[str, Any]]:
    """Every route of the registry, with a subject, its id and its guid in their places."""
    routes = registry_app(registry_of(registry.host.log)).openapi()["paths"]
    schema_id = registry.ids[subject]
    guid = registry.ask("all", f"GET /subjects/{quote(subject, safe='')}/versions/1").json["guid"]
    values = {"subject": quote(subject, safe=""), "version": "1", "id": str(schema_id),
              "guid": guid, "context": ".staging"}  # fmt: skip
    named = quote(subject, safe="")
    reference = {"name": f"Of{SECRET}", "subject": subject, "version": 1}
    referring = {"schema": schema("Ref").replace('"int"', f'"Of{SECRET}"'),
                 "references": [reference]}  # fmt: skip
    found: list[tuple[str, Any]] = []
    for path, methods in routes.items():
        for method in methods:
            if path == "/{rest}":
                continue
            call = f"{method.upper()} {path.format(**values)}"
            if method in {"get", "delete"}:
                found += [(f"{call}{query}", None) for query in (
                    "", "?deleted=true", f"?subject={named}", f"?subjectPrefix={named}",
                    "?subjectPrefix=:*:", "?format=resolved", "?permanent=true",
                )]  # fmt: skip
            elif "config" in path:
                found += [(call, CONFIG)]
            elif "mode" in path:
                found += [(call, {"mode": "IMPORT"})]
            else:
                found += [(call, {"schema": schema(SECRET)}), (call, referring),
                          (f"{call}?verbose=true", referring)]  # fmt: skip
    return found


def leaks(registry: Registry, who: str) -> tuple[list[str], set[int]]:
    """Requests whose answers tell of subjects that are not the sender's; all statuses met."""
    found, met = [], set()
    for subject in (THEIRS, IN_CONTEXT):
        for call, content in calls(registry, subject):
            reply = registry.ask(who, call, content)
            said = reply.body.decode().replace(quote(subject, safe=""), "").replace(subject, "")
            if reply.status == 500 or SECRET in said or "salaries" in said:
                found.append(f"{call}: {reply.status} {said[:200]}")
            met.add(reply.status)
    return found, met


@pytest.mark.parametrize("who", ["topics", "subjects", "reader"])
def test_no_route_tells_of_another_subject(registry: Registry, who: str) -> None:
    found, met = leaks(registry, who)
    assert found == []
    assert {200, 403, 404} <= met
    versions = registry.ask("all", "GET /schemas?deleted=true").json
    assert {THEIRS, "salaries-both", "salaries-refers"} <= {each["subject"] for each in versions}
    assert registry.ask("all", f"GET /config/{THEIRS}").status == 404


@pytest.mark.parametrize(
    ("of", "what", "mutant"),
    [
        (rest_http, "is_open_to", lambda *_: True),
        (SubjectAccess, "check", lambda _, subject: subject),
        (SubjectAccess, "versions", lambda _, versions: list(versions)),
        (SubjectAccess, "subjects", lambda _, subjects: list(subjects)),
    ],
    ids=["open_to_all", "check", "versions", "subjects"],
)
def test_the_routes_find_the_mutant(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, of: Any, what: str, mutant: Any
) -> None:
    monkeypatch.setattr(of, what, mutant)
    assert leaks(registry, "reader")[0]


def test_the_same_routes_tell_an_unlimited_token(registry: Registry) -> None:
    """Or the test before would pass with a registry that tells nobody."""
    told = [
        call
        for call, content in calls(registry, THEIRS)
        if call.startswith("GET") and SECRET in registry.ask("all", call, content).body.decode()
    ]
    assert len(told) >= 10


def test_own_subjects_are_read(registry: Registry) -> None:
    for who in ("topics", "subjects", "reader"):
        subjects = registry.ask(who, "GET /subjects").json
        assert subjects == (["orders-value"] if who == "topics" else ["orders-both", MINE])
        assert registry.ask(who, f"GET /subjects/{MINE}/versions/latest").json["subject"] == MINE
        schema_id = registry.ids[MINE]
        assert registry.ask(who, f"GET /schemas/ids/{schema_id}").json["schema"] == schema("Mine")
        assert registry.ask(who, f"GET /schemas/ids/{schema_id}/subjects").json == [MINE]
        assert registry.ask(who, "GET /config").status == 200
    both = registry.ask("all", "GET /subjects/orders-both/versions/1").json["id"]
    assert registry.ask("subjects", f"GET /schemas/ids/{both}/versions").json == [
        {"subject": "orders-both", "version": 1}
    ]


def test_who_may_change_subjects(registry: Registry) -> None:
    register = f"POST /subjects/{MINE}/versions"
    changed = {"schema": schema("Mine")}
    for who, status in (("all", 200), ("subjects", 200), ("reader", 200), ("topics", 403),
                        ("groups", 403)):  # fmt: skip
        assert registry.ask(who, register, changed).status == status, who
    for who, status in (("all", 200), ("subjects", 200), ("reader", 403), ("topics", 403)):
        assert registry.ask(who, f"PUT /config/{MINE}", CONFIG).status == status, who
        assert registry.ask(who, f"PUT /config/{THEIRS}", CONFIG).status == (
            200 if who == "all" else 403
        )
    assert registry.ask("subjects", "PUT /config", CONFIG).status == 403
    assert registry.ask("subjects", "DELETE /contexts/.staging").status == 403
    assert registry.ask("subjects", f"DELETE /subjects/{MINE}").status == 200


@pytest.mark.parametrize("who", ["topics", "subjects", "reader"])
def test_a_lookup_and_a_check_are_reads_of_own_subjects(registry: Registry, who: str) -> None:
    mine = {"schema": schema("Mine")}
    paths = ("/subjects/{}", "/subjects/{}/", "/contexts/:.:/subjects/{}",
             "/compatibility/subjects/{}/versions", "/compatibility/subjects/{}/versions/latest",
             "/compatibility/subjects/{}/versions/1/")  # fmt: skip
    for path in paths:
        assert registry.ask(who, f"POST {path.format(MINE)}", mine).status == 200, path
        assert registry.ask(who, f"POST {path.format(THEIRS)}", mine).status == 403, path


def test_a_token_for_topics_changes_nothing(registry: Registry) -> None:
    before = registry.ask("all", "GET /schemas?deleted=true").json
    new = {"schema": schema("New")}
    for path in (f"/subjects/{MINE}/versions", f"/subjects/{MINE}/versions/",
                 f"/subjects/{MINE}/versions?normalize=true",
                 f"/contexts/:.:/subjects/{MINE}/versions"):  # fmt: skip
        reply = registry.ask("topics", f"POST {path}", new)
        assert (reply.status, reply.json["error_code"]) == (403, 403), path
        assert "--subjects" in reply.json["message"]
    for call in (f"PUT /mode/{MINE}", f"DELETE /config/{MINE}", f"DELETE /subjects/{MINE}",
                 f"DELETE /subjects/{MINE}/versions/1"):  # fmt: skip
        assert registry.ask("topics", call, {"mode": "IMPORT"}).status == 403, call
    assert registry.ask("all", "GET /schemas?deleted=true").json == before


def test_an_alias_does_not_lead_to_another_subject(registry: Registry) -> None:
    set_alias = registry.ask("subjects", f"PUT /config/{MINE}", {"alias": THEIRS})
    assert set_alias.status == 200
    for call in (f"/subjects/{MINE}/versions/1", f"/subjects/{MINE}/versions",
                 f"/schemas/ids/{registry.ids[THEIRS]}?subject={MINE}"):  # fmt: skip
        assert registry.ask("subjects", f"GET {call}").status == 403, call


def test_a_token_for_groups_alone_reads_the_whole_registry(registry: Registry) -> None:
    assert THEIRS in registry.ask("groups", "GET /subjects").json
