"""The host's description of itself, held against its answers by schemathesis over a real socket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from duolog.bridge.http.rules import TopicRules
from duolog.log.model import Op, Record, Route, TopicSettings
from duolog.settings import RegistrySettings, ServeSettings, SqlSettings, TopicsSettings
from tests.integration.serve_host import ServedLog, served

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "http.md"
RULES = TopicRules(default_consume_timeout=0.01, max_consume_timeout=0.02)
KNOWN = {
    "topic": "orders",
    "topic_id": "orders",
    "partition_id": 0,
    "group_id": "g",
    "table": "shop.orders",
    "op": "insert",
    "sql": "SELECT topic FROM system.topics",
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log", rules=RULES) as running:
        running.log.create_topic("orders", TopicSettings(partitions=2))
        running.log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
        running.log.publish("orders", [Record(b"a", partition=0), Record(b"b", partition=1)])
        yield running


WATCHED = ("/healthz", "/readyz", "/metrics")
PATHS = (
    "/v1/api/topics/consume",
    "/v1/api/topics/ack",
    "/v1/api/topics/heartbeat",
    "/v1/api/topics/leave",
    "/v1/api/topics/latest-offsets",
    "/v1/api/topics/publish",
    "/v1/api/writers/last-sequence",
    "/v1/api/sql",
    *WATCHED,
)


def known(body: Any) -> Any:
    """Half of the requests name what is there."""
    if isinstance(body, dict) and len(str(body)) % 2:
        return {name: KNOWN.get(name, value) for name, value in body.items()}
    return body


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_described(host: ServedLog, path: str) -> None:
    described = schemathesis.openapi.from_url(f"{host.url}/openapi.json")
    cases = described[path]["get" if path in WATCHED else "post"].as_strategy()

    @seed(20261118)
    @settings(
        max_examples=80,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def answers(case: Any) -> None:
        case.body = known(case.body)
        case.call_and_validate(
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_headers_conformance,
                response_schema_conformance,
                unsupported_method,
                allow_header_conformance,
            ]
        )

    answers()


def test_the_description_names_every_route_and_both_forms_of_records(host: ServedLog) -> None:
    described = host.ask("/openapi.json").json
    assert set(described["paths"]) == set(PATHS)
    consume = described["paths"]["/v1/api/topics/consume"]["post"]
    assert set(consume["responses"]["200"]["content"]) == {
        "application/json",
        "application/vnd.apache.arrow.stream",
    }
    assert {"401", "403", "404", "409", "413", "416", "422", "503"} <= set(consume["responses"])
    start = described["components"]["schemas"]["ConsumeRequest"]["properties"]["start"]
    assert start["anyOf"][0] == {"type": "string", "enum": ["Latest", "Earliest"]}


def test_the_guide_lists_every_status_of_an_error(host: ServedLog) -> None:
    described = host.ask("/openapi.json").json["paths"]
    statuses = {
        status
        for methods in described.values()
        for operation in methods.values()
        for status in operation["responses"]
    }
    told = set(re.findall(r"^\| (\d{3}) \|", GUIDE.read_text(), re.MULTILINE))
    assert told == statuses - {"200"}


def test_the_guide_shows_every_setting() -> None:
    shown = GUIDE.read_text().partition("\n## Settings\n")[2].partition("\n## ")[0]
    for kind in (ServeSettings, RegistrySettings, TopicsSettings, SqlSettings):
        for name in kind.model_fields:
            assert name in shown or f"--{name.replace('_', '-')}" in GUIDE.read_text(), name
