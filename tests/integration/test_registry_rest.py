"""Confluent's documented answers over HTTP, as tables of what is asked one after the other."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from duolog.avro.registry.app import registry_app
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.model import Candidate
from duolog.avro.registry.port import SchemaText
from duolog.avro.registry.rest import registry_router
from duolog.avro.registry.service import RegistryService
from duolog.errors import DiskFull
from tests.integration.registry_settings import SETTINGS
from tests.integration.registry_steps import A, C, Step, sent
from tests.integration.registry_versions import VERSIONS

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
SCENARIOS = VERSIONS | SETTINGS


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(registry_app(RegistryService(MemoryDocuments()))) as client:
        yield client


@pytest.fixture(scope="module")
def shared() -> Iterator[TestClient]:
    """For tests that leave nothing behind that another could see."""
    with TestClient(registry_app(RegistryService(MemoryDocuments()))) as client:
        yield client


def ask(client: TestClient, call: str, body: Any = None, **more: Any) -> Any:
    method, _, path = call.partition(" ")
    if body is not None:
        more["json"] = body
    if "content" in more:
        more.setdefault("headers", {"content-type": MEDIA_TYPE})
    return client.request(method, path, **more)


@pytest.mark.parametrize("steps", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_confluents_answers(client: TestClient, steps: list[Step]) -> None:
    for step in steps:
        response = ask(client, step.call, step.body)
        assert response.status_code == step.status, (step, response.text)
        if step.answer is None:
            assert not response.content
            continue
        assert response.headers["content-type"] == MEDIA_TYPE
        check(step, response.json())


def check(step: Step, answer: Any) -> None:
    match step.answer:
        case int() as code if step.status >= 400:
            assert answer["error_code"] == code, (step, answer)
        case (code, message) if step.status >= 400:
            assert answer == {"error_code": code, "message": message}, step
        case dict() as members:
            assert answer == answer | members, (step, answer)
        case [dict(), *_] as items:
            assert len(answer) == len(items), (step, answer)
            for found, wanted in zip(answer, items, strict=True):
                assert found == found | wanted, (step, answer)
        case _:
            assert answer == step.answer, step


@pytest.mark.parametrize(
    "sent_as",
    [
        MEDIA_TYPE,
        "application/vnd.schemaregistry+json",
        "application/json; charset=utf-8",
        "application/octet-stream",
    ],
)
def test_bodies_are_json_whatever_they_are_called(shared: TestClient, sent_as: str) -> None:
    body, headers = json.dumps(sent(A)).encode(), {"content-type": sent_as}
    response = ask(shared, "POST /subjects/s/versions", content=body, headers=headers)
    assert response.status_code == 200


def test_a_body_that_says_nothing_may_come_from_any_page(shared: TestClient) -> None:
    """A browser sends it across sites without asking first."""
    body = json.dumps(sent(A)).encode()
    for headers in ({}, {"content-type": ""}, {"content-type": ";"}):
        response = ask(shared, "POST /subjects/s/versions", content=body, headers=headers)
        assert refused(response) == (415, 415, "HTTP 415 Unsupported Media Type")


@pytest.mark.parametrize("sent_as", ["text/plain", "application/xml", "multipart/form-data"])
def test_bodies_of_other_types_are_refused(shared: TestClient, sent_as: str) -> None:
    response = ask(
        shared, "POST /subjects/s/versions", content=b"{}", headers={"content-type": sent_as}
    )
    assert refused(response) == (415, 415, "HTTP 415 Unsupported Media Type")


def refused(response: Any) -> tuple[int, int, str]:
    assert response.headers["content-type"] == MEDIA_TYPE
    answer = response.json()
    assert answer.keys() == {"error_code", "message"}
    return response.status_code, answer["error_code"], answer["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"\xff\xfe{", 400),
        (b'{"schema": 5}', 422),  # Java reads it as "5", which is no schema
        (b'{"schema": {}}', 400),
        (b'{"schema": "\\"int\\"", "version": "one"}', 400),
        (b'{"schema": "\\"int\\"", "id": 2147483648}', 400),
        (b'{"schema": "\\"int\\"", "id": 1e400}', 400),
        (b'{"schema": "\\"int\\"", "references": [null]}', 400),
        (b'{"schema": "\\"int\\"", "metadata": {"tags": {"a": "b"}}}', 400),
        (b'{"schema": "\\"int\\"", "ruleSet": {"domainRules": [{"kind": "OTHER"}]}}', 400),
        (b'{"schema": "\\"int\\"", "metadata": {"properties": {"a": "\\ud800"}}}', 400),
        (b'{"schema": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
    ],
)
def test_bodies_that_are_not_right_are_refused(
    shared: TestClient, body: bytes, status: int
) -> None:
    response = ask(shared, "POST /subjects/refused/versions", content=body)
    assert refused(response)[0] == status
    assert ask(shared, "GET /subjects/refused/versions").status_code == 404


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    app = registry_app(RegistryService(MemoryDocuments()), max_body_bytes=1000)
    with TestClient(app) as client:
        too_large = b" " * 1001
        declared = ask(client, "POST /subjects/s/versions", content=too_large)
        in_pieces = ask(client, "POST /subjects/s/versions", content=iter([too_large] * 3))
        just_right = ask(
            client, "POST /subjects/s/versions", content=json.dumps(sent(A)).encode().ljust(1000)
        )
    expected = (413, 413, "The request body is larger than 1000 bytes.")
    assert refused(declared) == refused(in_pieces) == expected
    assert just_right.status_code == 200


@pytest.mark.parametrize(
    ("accept", "answered_as"),
    [
        (None, MEDIA_TYPE),
        ("*/*", MEDIA_TYPE),
        ("application/*", MEDIA_TYPE),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("application/json, application/vnd.schemaregistry.v1+json;q=0.4", "application/json"),
        (
            "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, "
            "application/json; q=0.5",
            MEDIA_TYPE,
        ),
    ],
)
def test_answers_come_as_the_client_likes_them(
    shared: TestClient, accept: str | None, answered_as: str
) -> None:
    shared.headers.pop("accept", None)
    headers = {} if accept is None else {"accept": accept}
    for call in ("GET /subjects", "GET /subjects/unknown/versions"):
        assert ask(shared, call, headers=headers).headers["content-type"] == answered_as


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*"])
def test_what_the_client_does_not_take_is_not_sent(shared: TestClient, accept: str) -> None:
    response = ask(shared, "GET /subjects", headers={"accept": accept})
    assert refused(response) == (406, 406, "HTTP 406 Not Acceptable")


def test_unknown_paths_and_methods_are_answered_in_json(shared: TestClient) -> None:
    assert refused(ask(shared, "GET /nowhere")) == (404, 404, "HTTP 404 Not Found")
    assert refused(ask(shared, "GET /docs"))[0] == 404
    assert refused(ask(shared, "GET /associations/resources/-/topic"))[0] == 404
    response = ask(shared, "PATCH /subjects/a%2Fb/versions")
    assert refused(response) == (405, 405, "HTTP 405 Method Not Allowed")
    assert response.headers["allow"] == "GET, HEAD, POST"
    assert refused(ask(shared, "BREW /mode"))[0] == 405


def test_a_slash_at_the_end_makes_no_difference(shared: TestClient) -> None:
    assert ask(shared, "POST /subjects/s/versions/", sent(A)).status_code == 200
    for call in ("GET /subjects/", "GET /subjects/s/versions/1/", "GET /config/", "GET /mode/"):
        assert ask(shared, call).status_code == 200


def test_head_is_get_without_a_body(shared: TestClient) -> None:
    assert ask(shared, "HEAD /subjects").status_code == 200
    assert ask(shared, "HEAD /subjects/unknown/versions").status_code == 404


def included() -> FastAPI:
    app = FastAPI()
    service = RegistryService(MemoryDocuments())
    app.include_router(registry_router(service), prefix="/registry")
    return app


def mounted() -> FastAPI:
    app = FastAPI()
    app.mount("/registry", registry_app(RegistryService(MemoryDocuments())))
    return app


@pytest.mark.parametrize("build", [included, mounted])
def test_a_host_has_the_registry_below_a_prefix(build: Any) -> None:
    with TestClient(build()) as client:
        for path in ("subjects/a%2Fb/versions", "contexts/.ctx/subjects/a%2Fb/versions"):
            assert ask(client, f"POST /registry/{path}", sent(A)).json()["id"] == 1
        assert ask(client, "GET /registry/subjects").json() == [":.ctx:a/b", "a/b"]
        assert ask(client, "GET /registry").json() == {}
        assert refused(ask(client, "GET /registry/nowhere"))[0] == 404
        assert refused(ask(client, "PUT /registry/subjects/a%2Fb"))[0] == 405
        assert (
            refused(ask(client, "POST /registry/subjects/s/versions", {"schema": "{"}))[1] == 42201
        )


class FullDocuments(MemoryDocuments):
    """Takes the first change, then no more."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error
        self._stored = False

    def store(self, changes: Any) -> None:
        if self._stored:
            raise self._error
        super().store(changes)
        self._stored = True


def test_what_could_not_be_stored_is_told_and_not_there() -> None:
    service = RegistryService(FullDocuments(DiskFull("The disk is full.")))
    with TestClient(registry_app(service)) as client:
        assert ask(client, "POST /subjects/s/versions", sent(A)).status_code == 200
        response = ask(client, "POST /subjects/s/versions", sent(C))
        assert refused(response) == (500, 50001, "The disk is full.")
        assert ask(client, "GET /subjects/s/versions").json() == [1]


def test_an_error_that_nobody_meant_is_answered_in_json_and_logged() -> None:
    service = RegistryService(FullDocuments(ZeroDivisionError()))
    app = registry_app(service)
    with TestClient(app, raise_server_exceptions=False) as client:
        ask(client, "POST /subjects/s/versions", sent(A))
        response = ask(client, "POST /subjects/s/versions", sent(C))
        assert refused(response) == (500, 500, "HTTP 500 Internal Server Error")
    with TestClient(app) as client, pytest.raises(ZeroDivisionError):
        ask(client, "POST /subjects/s/versions", sent(C))


def test_the_description_has_each_route_once_and_declares_its_errors() -> None:
    description = registry_app(RegistryService(MemoryDocuments())).openapi()
    operations = [
        (operation["operationId"], operation)
        for methods in description["paths"].values()
        for operation in methods.values()
    ]
    assert len({name for name, _ in operations}) == len(operations) == 38
    error = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    for name, operation in operations:
        refusals = {s: r for s, r in operation["responses"].items() if s not in ("200", "204")}
        assert refusals, name
        assert all(response["content"] == error for response in refusals.values()), name
    assert "HTTPValidationError" not in description["components"]["schemas"]


def test_a_list_of_schemas_ends_before_it_is_large_and_goes_on_behind() -> None:
    service = RegistryService(MemoryDocuments())
    for n in range(20):
        text = json.dumps({"type": "record", "name": f"R{n}", "doc": "x" * 900_000, "fields": []})
        service.register(f"s{n:02}", SchemaText(text))
    with TestClient(registry_app(service)) as client:
        found: list[str] = []
        while True:
            response = client.get("/schemas", params={"offset": len(found), "limit": 15})
            assert len(response.content) < 9 << 20
            if not response.json():
                break
            found += [each["subject"] for each in response.json()]
        assert found == [f"s{n:02}" for n in range(20)]
        assert len(client.get("/schemas", params={"limit": 3}).json()) == 3


def test_what_was_refused_is_not_kept_until_garbage_is_looked_for() -> None:
    service = RegistryService(MemoryDocuments())
    service.limit(1000)
    text = json.dumps({"type": "record", "name": "R", "doc": "x" * 500_000, "fields": []})
    with TestClient(registry_app(service)) as client:
        ask(client, "POST /subjects/s/versions", {"schema": text})
        gc.collect()
        gc.disable()
        try:
            before = _candidates()
            for _ in range(10):
                response = ask(client, "POST /subjects/s/versions", {"schema": text})
                assert response.status_code == 422
            assert _candidates() - before < 10
        finally:
            gc.enable()


def _candidates() -> int:
    """How many candidates of a schema are alive."""
    return sum(isinstance(each, Candidate) for each in gc.get_objects())
