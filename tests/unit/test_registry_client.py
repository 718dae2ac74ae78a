"""The client of a schema registry: answers, retries, and what it remembers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.registry.client import RegistryClient
from duolog.avro.registry.port import Registry, SchemaReference, SchemaText
from duolog.errors import (
    DuologError,
    IncompatibleSchema,
    InvalidSchema,
    RegistryRefused,
    RegistryUnreachable,
    UnknownSchema,
    UnknownSubject,
)
from tests.support.registry_server import serving
from tests.unit.registry_door import (
    GUID,
    REGISTERED,
    SCHEMA,
    URL,
    VERSION,
    Door,
    Scripted,
    client_of,
)

Calls: Any = {
    "register": lambda client: client.register("s", SCHEMA),
    "lookup": lambda client: client.lookup("s", SCHEMA),
    "latest": lambda client: client.latest("s"),
    "version": lambda client: client.version("s", 3),
    "schema_by_id": lambda client: client.schema_by_id(7),
    "schema_by_guid": lambda client: client.schema_by_guid(GUID),
}
EACH_CALL = pytest.mark.parametrize("call", Calls.values(), ids=Calls)


def answering(status: int, body: Any) -> RegistryClient:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    transport = httpx.MockTransport(lambda request: httpx.Response(status, content=content))
    return client_of(URL, transport=transport, max_retries="0")


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    made = Door()
    with serving(made) as made.url:
        yield made


def dead_url() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def silent_url() -> Iterator[str]:
    """An address that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


# What is asked, and what comes back


def test_each_call_asks_what_confluents_registry_answers(door: Door) -> None:
    referring = SchemaText("x", "PROTOBUF", (SchemaReference("n", "other", 2),))
    script = Scripted([(200, VERSION)])
    with client_of(f"{door.behind(script)}/api/") as client:
        registry: Registry = client
        assert registry.register("a/b ü", SCHEMA) == 7
        assert registry.register("s", referring, normalize=True) == 7
        assert registry.lookup("s", SCHEMA) == REGISTERED
        assert registry.lookup("s", SCHEMA, normalize=True) == REGISTERED
        assert registry.latest("s") == REGISTERED
        assert registry.version("s", 2) == REGISTERED
        assert registry.schema_by_id(8) == SCHEMA
        assert registry.schema_by_guid(GUID) == SCHEMA
    plain = {"schema": SCHEMA.text}
    full = {
        "schema": "x",
        "schemaType": "PROTOBUF",
        "references": [{"name": "n", "subject": "other", "version": 2}],
    }
    assert [
        (seen.method, seen.path, seen.query, json.loads(seen.body or b"null"))
        for seen in script.seen
    ] == [
        ("POST", "/api/subjects/a%2Fb%20%C3%BC/versions", "", plain),
        ("POST", "/api/subjects/s/versions", "normalize=true", full),
        ("POST", "/api/subjects/s", "", plain),
        ("POST", "/api/subjects/s", "normalize=true", plain),
        ("GET", "/api/subjects/s/versions/latest", "", None),
        ("GET", "/api/subjects/s/versions/2", "deleted=true", None),
        ("GET", "/api/schemas/ids/8", "", None),
        ("GET", f"/api/schemas/guids/{GUID}", "", None),
    ]
    accepted = script.seen[0].headers["accept"]
    assert accepted.startswith("application/vnd.schemaregistry.v1+json")
    assert script.seen[0].headers["content-type"] == "application/vnd.schemaregistry.v1+json"


def test_type_and_references_of_a_schema_are_read() -> None:
    reference = {"name": "n", "subject": "t", "version": 1}
    answer = {"schema": "x", "schemaType": "JSON", "references": [reference], "metadata": None}
    with answering(200, answer) as client:
        found = client.schema_by_id(1)
    assert found == SchemaText("x", "JSON", (SchemaReference("n", "t", 1),))


REFUSALS: list[tuple[int, Any, type[DuologError], str]] = [
    (404, {"error_code": 40401, "message": "Subject 's' not found."}, UnknownSubject, "Subject 's"),
    (404, {"error_code": 40402, "message": "Version 3 not found."}, UnknownSchema, "Version 3"),
    (404, {"error_code": 40403, "message": "Schema 7 not found"}, UnknownSchema, "Schema 7"),
    (404, {"error_code": 40404, "message": "was soft deleted"}, UnknownSubject, "soft deleted"),
    (404, {"error_code": 40406, "message": "was soft deleted"}, UnknownSchema, "soft deleted"),
    (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, RegistryRefused, "check the path"),
    (404, b"<html>nothing here</html>", RegistryRefused, "nothing here"),
    (409, {"error_code": 409, "message": "reader's 'x' has no default"}, IncompatibleSchema, "'x'"),
    (409, {"error_code": 40901, "message": "field 'x'"}, IncompatibleSchema, "field 'x'"),
    (409, b"", IncompatibleSchema, "it refused"),
    (422, {"error_code": 42201, "message": "Invalid schema {"}, InvalidSchema, "Invalid schema {"),
    (422, {"error_code": 44201, "message": "Invalid Avro"}, InvalidSchema, "Invalid Avro"),
    (422, {"error_code": 42202, "message": "version"}, RegistryRefused, "42202"),
    (422, {"error_code": 42205, "message": "READONLY"}, RegistryRefused, "READONLY"),
    (401, {"error_code": 401, "message": "Unauthorized"}, RegistryRefused, "basic.auth.user.info"),
    (403, {"error_code": 40301, "message": "Forbidden"}, RegistryRefused, "bearer.auth.token"),
    (429, {"error_code": 42901, "message": "Too many"}, RegistryRefused, "left alone"),
    (500, {"error_code": 50001, "message": "store"}, RegistryRefused, "50001"),
    (503, b"\xff\xfe not text", RegistryRefused, "not text"),
    (400, {"error_code": True, "message": 5}, RegistryRefused, "status 400, error code 400"),
    (400, [1, 2], RegistryRefused, "[1, 2]"),
    (400, b"[" * 100_000, RegistryRefused, "[[["),
]


@EACH_CALL
@pytest.mark.parametrize(
    ("status", "body", "kind", "told"), REFUSALS, ids=lambda value: str(value)[:40]
)
def test_an_answer_of_no_becomes_the_named_error(
    status: int, body: Any, kind: type[DuologError], told: str, call: Any
) -> None:
    with answering(status, body) as client, pytest.raises(DuologError) as refusal:
        call(client)
    assert type(refusal.value) is kind
    assert told in str(refusal.value)
    assert f"registry at {URL} was asked to" in str(refusal.value)
    if isinstance(refusal.value, RegistryRefused):
        assert refusal.value.status == status


@EACH_CALL
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b"[" * 100_000,
        b"\xff",
        [],
        {},
        {"id": "7", "schema": 7},
        {"id": True, "schema": None},
        {"schema": "x", "references": {"a": 1}, "id": 1.5},
        {"schema": "x", "references": [{"name": "n"}], "id": None},
        {"schema": "x", "references": ["n"], "id": []},
    ],
    ids=lambda body: str(body)[:30],
)
def test_a_success_that_is_none_is_refused_by_name(body: Any, call: Any) -> None:
    with answering(200, body) as client, pytest.raises(RegistryRefused, match="does not speak as"):
        call(client)


@settings(deadline=None)
@given(st.integers(200, 599), st.binary(max_size=60) | st.from_regex(rb'\{"id":\d+\}'))
def test_no_library_error_escapes(status: int, body: bytes) -> None:
    with answering(status, body) as client:
        for call in Calls.values():
            try:
                call(client)
            except DuologError:
                continue


def test_an_answer_without_end_is_given_up(door: Door) -> None:
    script = Scripted([(200, b" " * (17 << 20))])
    with (
        client_of(door.behind(script)) as client,
        pytest.raises(RegistryRefused, match="more than 16777216 bytes"),
    ):
        client.schema_by_id(1)
    assert len(script.seen) == 1


# Retries and addresses


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_is_refused_for_now_is_asked_again(door: Door, status: int) -> None:
    script = Scripted([(status, {}), (status, b""), (200, {"id": 5})])
    with client_of(door.behind(script)) as client:
        assert client.register("s", SCHEMA) == 5
    assert [seen.body for seen in script.seen] == [script.seen[0].body] * 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 422, 501])
def test_what_is_refused_for_good_is_asked_once(door: Door, status: int) -> None:
    script = Scripted([(status, {}), (200, {"id": 5})])
    with client_of(door.behind(script)) as client, pytest.raises(DuologError):
        client.register("s", SCHEMA)
    assert len(script.seen) == 1


def test_retries_end(door: Door) -> None:
    script = Scripted([(503, {"error_code": 50302, "message": "no leader"})])
    with (
        client_of(door.behind(script), max_retries="2") as client,
        pytest.raises(RegistryRefused, match="no leader"),
    ):
        client.latest("s")
    assert len(script.seen) == 3


def test_there_are_no_retries_past_the_deadline(door: Door) -> None:
    script = Scripted([(503, {})], extra=[(b"retry-after", b"3600")])
    with (
        client_of(
            door.behind(script), retries_max_wait_ms="600000", retries_deadline_ms="5000"
        ) as client,
        pytest.raises(RegistryRefused, match="status 503"),
    ):
        client.latest("s")
    assert len(script.seen) == 1


def test_a_registry_that_says_nothing_is_given_up_in_time(silent_url: str) -> None:
    with (
        client_of(silent_url, timeout="0.05", max_retries="1") as client,
        pytest.raises(RegistryUnreachable, match="no answer in time"),
    ):
        client.latest("s")


def test_the_deadline_bounds_a_single_answer_too(silent_url: str) -> None:
    with (
        client_of(silent_url, retries_deadline_ms="60") as client,
        pytest.raises(RegistryUnreachable, match=r"no answer in time|no time left"),
    ):
        client.latest("s")


def test_another_address_takes_over_and_is_asked_first_from_then_on(door: Door) -> None:
    script = Scripted([(200, VERSION)])
    failing = Scripted([(503, {})])
    urls = f"{dead_url()},{door.behind(failing)},{door.behind(script)}"
    with client_of(urls, max_retries="0") as client:
        assert client.latest("s") == REGISTERED
        assert client.latest("s") == REGISTERED
    assert (len(script.seen), len(failing.seen)) == (2, 1)


def test_when_no_address_answers_all_are_named() -> None:
    first, second = dead_url(), dead_url()
    with (
        client_of(f"{first},{second}", max_retries="1") as client,
        pytest.raises(RegistryUnreachable) as failure,
    ):
        client.register("s", SCHEMA)
    assert first in str(failure.value)
    assert second in str(failure.value)
    assert "refused" in str(failure.value)


def test_a_connection_that_breaks_is_made_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        requests: list[bytes] = []

        def serve() -> None:
            for answer in (b"", b'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"id": 4}'):
                connection, _ = listening.accept()
                with connection:
                    requests.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with client_of(f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            assert client.register("s", SCHEMA) == 4
        thread.join(10)
    assert not thread.is_alive()
    assert len(requests) == 2


# What is remembered


@pytest.mark.parametrize("name", sorted(set(Calls) - {"latest"}))
def test_what_cannot_change_is_asked_once(door: Door, name: str) -> None:
    script = Scripted([(200, VERSION)])
    with client_of(door.behind(script)) as client:
        assert Calls[name](client) == Calls[name](client)
    assert len(script.seen) == 1


def test_the_latest_is_asked_each_time_and_fills_in_what_came_with_it(door: Door) -> None:
    script = Scripted([(200, VERSION), (200, {**VERSION, "version": 4, "id": 8}), (500, {})])
    with client_of(door.behind(script), max_retries="0") as client:
        assert [client.latest("s").version for _ in range(2)] == [3, 4]
        assert client.version("s", 3) == REGISTERED
        assert client.schema_by_id(8) == SCHEMA
    assert len(script.seen) == 2


def test_the_latest_is_remembered_when_that_is_asked_for(door: Door) -> None:
    script = Scripted([(200, VERSION)])
    given = {"latest.cache.ttl.sec": "-1"}
    with client_of(door.behind(script), **given) as client:
        assert client.latest("s") == client.latest("s")
    assert len(script.seen) == 1


def test_failures_are_not_remembered(door: Door) -> None:
    script = Scripted([(404, {"error_code": 40403, "message": "no"}), (200, VERSION)])
    with client_of(door.behind(script)) as client:
        with pytest.raises(UnknownSchema):
            client.schema_by_id(7)
        assert client.schema_by_id(7) == SCHEMA


def test_the_least_used_goes_first(door: Door) -> None:
    script = Scripted([(200, VERSION)])
    with client_of(door.behind(script), cache_capacity="2") as client:
        for schema_id in (1, 2, 1, 3, 1, 2):
            client.schema_by_id(schema_id)
    assert [seen.path[-1] for seen in script.seen] == ["1", "2", "3", "2"]


def test_many_threads_ask_once(door: Door) -> None:
    everybody_there = threading.Barrier(8)
    script = Scripted([(200, {"id": 6})])
    found: list[int] = []

    def ask(client: RegistryClient) -> None:
        everybody_there.wait(10)
        found.append(client.register("s", SCHEMA))

    with client_of(door.behind(script)) as client:
        threads = [threading.Thread(target=ask, args=(client,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert found == [6] * 8
    assert len(script.seen) == 1


# The end


def test_a_closed_client_says_so_and_may_be_closed_again() -> None:
    client = client_of(URL)
    client.close()
    client.close()
    with pytest.raises(RegistryUnreachable, match="the client was closed"):
        client.latest("s")


def test_close_ends_a_wait_between_retries() -> None:
    asked = threading.Event()
    script = Scripted([(503, {})], extra=[(b"retry-after", b"50")], before=asked.set)
    failures: list[DuologError] = []

    def ask(client: RegistryClient) -> None:
        try:
            client.latest("s")
        except DuologError as error:
            failures.append(error)

    with serving(script) as url:
        client = client_of(url, retries_max_wait_ms="50000")
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        assert asked.wait(10)
        client.close()
        thread.join(10)
        assert not thread.is_alive()
    assert isinstance(failures[0], RegistryUnreachable | RegistryRefused)
