"""One token begins a share of the groups that a log takes, whichever way, and others theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from duolog.bridge.members.model import Rules
from duolog.log.model import Record, TopicSettings
from tests.integration.serve_host import Reply, ServedLog, served

Begin = Callable[[ServedLog, str, str], Reply]


def _post(path: str, **content: Any) -> Begin:
    def ask(host: ServedLog, group: str, token: str) -> Reply:
        return host.ask(path, {**content, "group_id": group}, token=token)

    return ask


def _sql(text: str) -> Begin:
    def ask(host: ServedLog, group: str, token: str) -> Reply:
        return host.ask(
            "/v1/api/sql", {"sql": text.replace("GROUP_NAME", f"'{group}'")}, token=token
        )

    return ask


_READ = {"topic": "orders", "timeout_seconds": 0}
_WAYS: dict[str, Begin] = {
    "a member": _post("/v1/api/topics/consume", **_READ),
    "a partition": _post("/v1/api/topics/consume", **_READ, partition_id=0),
    "an acknowledgement": _post(
        "/v1/api/topics/ack", topic="orders", partition_id=0, upto_offset=0
    ),
    "CONSUME": _sql("CONSUME FROM orders GROUP GROUP_NAME PARTITION 0 LIMIT 1"),
    "ACK": _sql("ACK orders GROUP GROUP_NAME PARTITION 0 UPTO OFFSET 0"),
    "RESET": _sql("RESET CONSUMER GROUP GROUP_NAME ON orders PARTITION 0 TO EARLIEST"),
}


@pytest.mark.parametrize("way", _WAYS)
def test_a_token_begins_its_share_and_others_theirs(tmp_path: Path, way: str) -> None:
    begin, tokens = _WAYS[way], tmp_path / "tokens"
    billing = add_token(tokens, Caller("billing", Role.DBA))
    shipping = add_token(tokens, Caller("shipping", Role.DBA))
    rules = Rules(max_stored_groups_of_token=2)
    with served(tmp_path / "log", tokens=tokens, members=rules) as host:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.publish("orders", [Record(b"v", partition=n % 2) for n in range(4)])
        for group in ("one", "two", "one"):
            assert begin(host, group, billing).status == 200, begin(host, group, billing).json
        refused = begin(host, "three", billing)
        assert (refused.status, refused.json["code"]) == (429, "TokenLimitReached")
        assert refused.headers["retry-after"]
        assert "max_stored_groups_of_token" in refused.json["error"]
        assert begin(host, "three", shipping).status == 200
        assert begin(host, "three", billing).status in {
            200,
            409,
        }  # it is known, and somebody has it
        assert begin(host, "two", shipping).status in {200, 409}
    with served(tmp_path / "log", tokens=tokens, members=rules) as host:
        assert begin(host, "four", billing).json["code"] == "TokenLimitReached"
        assert begin(host, "four", shipping).status == 200
        host.log.delete_group("one")
        assert begin(host, "five", billing).status == 200
        assert begin(host, "six", billing).json["code"] == "TokenLimitReached"
        host.log.drop_topic("orders")
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.publish("orders", [Record(b"v", partition=n % 2) for n in range(4)])
        assert begin(host, "six", billing).status == 200


def test_where_there_are_no_tokens_the_limit_of_the_log_alone_holds(tmp_path: Path) -> None:
    with served(tmp_path / "log", members=Rules(max_stored_groups_of_token=1)) as host:
        host.log.create_topic("orders")
        for group in ("one", "two", "three"):
            assert host.consume(**_READ, group_id=group).status == 200
