"""Publishing over HTTP: durable when answered, whichever way the request takes in the host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http import watching
from duolog.log.model import Op, PayloadMode, Route
from tests.integration.serve_host import ServedLog, served

PUBLISH = "/v1/api/topics/publish"
LAST_SEQUENCE = "/v1/api/writers/last-sequence"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ServedLog]:
    with served(tmp_path / "log") as running:
        running.log.create_topic("orders")
        yield running


def offsets_of(answer: Any) -> list[int]:
    return [each["offset"] for each in answer["offsets"]]


@pytest.mark.parametrize("count", [1, 200, 201, 1000])
def test_messages_of_one_request_lie_in_their_order(host: ServedLog, count: int) -> None:
    reply = host.publish("orders", *(f"v{nth}" for nth in range(count)))
    assert reply.status == 200
    assert offsets_of(reply.json) == list(range(count))
    fetched = host.log.fetch("orders", 0, 0)
    assert [record.value for record in fetched] == [b"v%d" % nth for nth in range(count)]


@pytest.mark.parametrize("count", [1, 201])
def test_a_retry_is_answered_as_the_first_time(host: ServedLog, count: int) -> None:
    messages = [{"value": f"v{nth}"} for nth in range(count)]
    once = {"topic": "orders", "messages": messages, "writer": "w", "sequence": 0}
    first, again = host.ask(PUBLISH, once), host.ask(PUBLISH, once)
    assert first.json == again.json
    other = host.ask(PUBLISH, {**once, "messages": [{"value": "x"}] * count})
    assert (other.status, other.code) == (409, "SequenceContentMismatch")
    assert host.log.offsets("orders")[0].next_offset == count


@pytest.mark.parametrize("count", [1, 201])
def test_one_message_that_is_too_large_keeps_all_out(host: ServedLog, count: int) -> None:
    reply = host.publish("orders", *["v"] * (count - 1), "x" * (2 << 20))
    assert (reply.status, reply.code) == (413, "RecordTooLarge")
    assert host.log.offsets("orders")[0].next_offset == 0


def test_publishers_at_once_get_offsets_without_gaps(host: ServedLog) -> None:
    with ThreadPoolExecutor(8) as publishers:
        replies = publishers.map(lambda nth: host.publish("orders", f"v{nth}"), range(80))
        offsets = [offsets_of(reply.json)[0] for reply in replies]
    assert sorted(offsets) == list(range(80))
    values = [record.value for record in host.log.fetch("orders", 0, 0)]
    assert [values[offset] for offset in offsets] == [b"v%d" % nth for nth in range(80)]


def test_readiness_tells_of_a_committer_that_hangs(
    host: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host.ask("/readyz").status == 200
    monkeypatch.setattr(watching, "_ANSWERS_WITHIN_SECONDS", 0.1)
    monkeypatch.setattr(host.log, "committer_answers", lambda _: None)
    reply = host.ask("/readyz")
    assert (reply.status, reply.code) == (503, "NotReady")
    assert "threads that commit" in reply.json["error"]
    monkeypatch.undo()
    assert host.ask("/readyz").status == 200


def test_rows_come_with_the_rows_before_them(host: ServedLog) -> None:
    everything = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
    host.log.add_route("orders", Route("shop.rows", everything, payload=PayloadMode.DIFF))
    sent = {"table": "shop.rows", "op": "update", "key_columns": ["id"]}
    rows = [{"id": 1, "qty": 3}, {"id": 2, "qty": 4}]
    before = [{"id": 1, "qty": 2}, None]
    assert host.ask(PUBLISH, {**sent, "rows": rows, "before": before}).status == 200
    values = [json.loads(record.value or b"") for record in host.log.fetch("orders", 0, 0)]
    assert [value["before"] for value in values] == [{"qty": 2}, None]
    short = host.ask(PUBLISH, {**sent, "rows": rows, "before": before[:1]})
    assert (short.status, short.code) == (422, "InvalidRows")
    misplaced = {"topic": "orders", "messages": [{"value": "x"}], "before": before}
    assert host.ask(PUBLISH, misplaced).status == 422


def test_rows_without_a_route_are_dropped_when_told_so(host: ServedLog) -> None:
    sent = {"table": "shop.none", "op": "insert", "key_columns": ["id"], "rows": [{"id": 1}]}
    refused = host.ask(PUBLISH, sent)
    assert (refused.status, refused.code) == (404, "UnknownRoute")
    assert host.ask(PUBLISH, {**sent, "unrouted": "drop"}).json == {"offsets": []}
    assert host.ask(PUBLISH, {**sent, "unrouted": "maybe"}).status == 422


@pytest.mark.parametrize("count", [1, 201])
def test_sequences_are_taken_in_order_where_that_is_asked_for(host: ServedLog, count: int) -> None:
    def publish(sequence: int, **more: Any) -> tuple[int, str | None]:
        messages = [{"value": f"v{sequence + nth}"} for nth in range(count)]
        asked = {"topic": "orders", "messages": messages, "writer": "w", "sequence": sequence}
        reply = host.ask(PUBLISH, {**asked, **more})
        return reply.status, None if reply.status == 200 else reply.code

    def last() -> Any:
        return host.ask(LAST_SEQUENCE, {"writer": "w"}).json

    assert last() == {"writer": "w", "last_sequence": None}
    for sequence in (0, 4 * count, 2 * count):
        assert publish(sequence) == (200, None)
    assert last() == {"writer": "w", "last_sequence": 5 * count - 1}
    assert publish(6 * count, in_order=True) == (409, "SequenceGap")
    assert publish(3 * count, in_order=True) == (409, "SequenceOutOfOrder")
    assert publish(4 * count, in_order=True) == (200, None)
    assert publish(5 * count, in_order=True) == (200, None)
    assert host.log.offsets("orders")[0].next_offset == 4 * count


def test_order_without_a_writer_is_refused(host: ServedLog) -> None:
    asked = {"topic": "orders", "messages": [{"value": "v"}], "in_order": True}
    reply = host.ask(PUBLISH, asked)
    assert reply.status == 422
    assert "in_order" in reply.json["error"]
