"""No record leaves that does not meet the condition of its reader's token, by no way of reading."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duolog.bridge import visible_reads
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token, condition_of
from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.bridge.visible_rows import VisibleRows
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from tests.integration.serve_host import Reply, ServedLog, served, until
from tests.integration.sql_asking import ARROW, SQL

CONSUME = "/v1/api/topics/consume"
SECRET = "hidden-from-seven"
MINE = 7
COUNT = 300


def value_of(number: int) -> dict[str, Any]:
    customer = MINE if number % 10 == 3 else number % 10
    item = f"tea-{number}" if customer == MINE else f"{SECRET}-{number}"
    return {"id": number, "customer": customer, "item": item}


def odd_values() -> list[bytes | None]:
    """Values of others, in which the condition is not simply false."""
    texts: list[dict[str, Any]] = [
        {"customer": None}, {}, {"customer": "7"}, {"Customer": 7}, {"customer": [7]},
        {"customer": {"id": 7}}, {"customer": True}, {"customer": 2**70},
        {"after": {"customer": 7}}, {"customer": {f"{SECRET}-{n}": n for n in range(50)}},
    ]  # fmt: skip
    made = [json.dumps({**each, "item": SECRET}).encode() for each in texts]
    doubled = b'{"customer": 7, "customer": 8, "item": "%b"}' % SECRET.encode()
    return [*made, doubled, None, b"", b"7", b'"%b"' % SECRET.encode(), b"\xff" + SECRET.encode(),
            b'{"customer": NaN, "item": "%b"}' % SECRET.encode(),
            b'{"customer": "\\ud800", "item": "%b"}' % SECRET.encode(),
            b'{"customer": {"\\udfff": "\\ud800"}, "item": "%b"}' % SECRET.encode()]  # fmt: skip


def record_of(number: int, value: bytes | None) -> Record:
    """What is not in the value is hidden as well."""
    if value is not None and b"tea-" in value:
        return Record(value, key=b"mine", partition=number % 2)
    headers = ((f"name-{SECRET}", SECRET.encode()),)
    return Record(value, key=SECRET.encode(), headers=headers, table=SECRET, partition=number % 2)


class Guarded:
    def __init__(self, host: ServedLog, tokens: dict[str, str]) -> None:
        self.host = host
        self.tokens = tokens

    def ask(self, path: str, content: Any, who: str = "seven", *, arrow: bool = False) -> Reply:
        headers = ARROW if arrow else {}
        return self.host.ask(path, content, token=self.tokens[who], headers=headers)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    path = tmp_path / "tokens"
    where = condition_of(f"customer = {MINE}")
    tokens = {
        "all": add_token(path, Caller("all", Role.DBA)),
        "seven": add_token(path, Caller("seven", Role.DBA, where=where)),
        "publisher": add_token(
            path, Caller("publisher", Role.SERVICE, ("orders",), where=condition_of("false"))
        ),
    }
    with served(tmp_path / "log", tokens=path) as host:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.create_topic("encoded", TopicSettings(key_format=Format.AVRO,
                                                       value_format=Format.AVRO))  # fmt: skip
        host.log.create_topic("raw", TopicSettings(value_format=Format.RAW))
        host.log.add_route("encoded", Route("shop.orders", frozenset({Op.INSERT})))
        values = [json.dumps(value_of(number)).encode() for number in range(COUNT)]
        odd = odd_values()
        host.log.publish("orders", [record_of(number, value) for number, value in
                                    enumerate([*values, *odd])])  # fmt: skip
        host.log.publish_rows("shop.orders", Op.INSERT, [value_of(n) for n in range(COUNT)], ["id"])
        host.log.publish("encoded", Record(b"\0\0\0\0\x63" + SECRET.encode()))
        host.log.publish("raw", Record(SECRET.encode()))
        yield Guarded(host, tokens)


def texts_in(reply: Reply) -> str:
    """All that a reply says, with what is packed in it unpacked."""
    if "arrow" in reply.headers.get("content-type", ""):
        return str(pa.ipc.open_stream(reply.body).read_all().to_pydict()) + repr(reply.body)
    said = reply.body.decode("utf-8", "replace")
    values = [] if reply.status != 200 else reply.json.get("messages", [])
    packed = [b64decode(each["payload"] or "") for each in values]
    return said + repr(packed)


SELECTS = (
    "SELECT * FROM {t}",
    'SELECT value FROM {t} WHERE "offset" >= 0',
    "SELECT item FROM {t} WHERE customer = 8 OR 1 = 1",
    "SELECT count(*) AS n, max(item) AS m, min(item) AS l FROM {t}",
    "SELECT a.value FROM {t} a JOIN {t} b ON a.item <> b.item",
    "SELECT item FROM {t} UNION ALL SELECT item FROM {t}",
    "SELECT item FROM {t} ORDER BY item DESC LIMIT 5",
    "SELECT array_agg(value) AS v FROM {t}",
)


def replies(guarded: Guarded) -> Iterator[tuple[str, Reply]]:
    """Every way of reading."""
    for topic in ("orders", "encoded", "raw"):
        for arrow in (False, True):
            for limit in (1, 7, 10_000):
                for wanted in ({"start": "Earliest"},
                               {"start": "Earliest", "group_id": f"g{limit}"},
                               {"start": {"offset": 5}, "partition_id": 0}):  # fmt: skip
                    asked = {"topic": topic, "limit": limit, "timeout_seconds": 0, **wanted}
                    yield f"{asked} {arrow}", guarded.ask(CONSUME, asked, arrow=arrow)
            member = {"topic": topic, "group_id": f"m{arrow}", "member_id": "m",
                      "start": "Earliest", "limit": 1000, "timeout_seconds": 0}  # fmt: skip
            yield str(member), guarded.ask(CONSUME, member, arrow=arrow)
            for text in SELECTS:
                asked = {"sql": text.format(t=topic)}
                yield str(asked), guarded.ask(SQL, asked, arrow=arrow)
            for text in ("CONSUME FROM {t} LIMIT 500", "CONSUME FROM {t} GROUP 's' FROM EARLIEST",
                         "CONSUME FROM {t} GROUP 'a' FROM EARLIEST LIMIT 3 AUTO ACK"):  # fmt: skip
                yield text, guarded.ask(SQL, {"sql": text.format(t=topic)}, arrow=arrow)


def leaks(guarded: Guarded) -> tuple[list[str], int, int]:
    """Ways that tell of another's records; how many ways told of the reader's, and were refused."""
    found, told, refused = [], 0, 0
    for what, reply in replies(guarded):
        text = texts_in(reply)
        if SECRET in text or reply.status >= 500:
            found.append(f"{what}: {reply.status}")
        told += "tea-" in text
        refused += reply.status == 403
    return found, told, refused


def test_no_way_of_reading_gives_anothers_record(guarded: Guarded) -> None:
    found, told, refused = leaks(guarded)
    assert found == []
    assert told > 40
    assert refused > 20  # the topic whose values are bytes


def test_the_ways_find_the_mutant(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_rows(_: VisibleRows, records: Any) -> Any:
        return np.ones(records.num_rows, np.bool_)

    monkeypatch.setattr(VisibleRows, "_mask", all_rows)
    found, _, _ = leaks(guarded)
    ways = ("'limit': 10000", "'member_id'", "SELECT item", "count(*)", "CONSUME FROM")
    for way in (*ways, "} True", "} False"):
        assert any(way in each for each in found), way


def test_all_of_ones_own_records_are_given(guarded: Guarded) -> None:
    expected = [value_of(n)["item"] for n in range(COUNT) if value_of(n)["customer"] == MINE]
    for topic in ("orders", "encoded"):
        rows = guarded.ask(SQL, {"sql": f"SELECT item FROM {topic}"}).json["rows"]
        assert sorted(item for (item,) in rows) == sorted(expected)
    for limit in (1, 4, 1000):
        given: list[str] = []
        offsets: dict[str, int] = {"0": 0, "1": 0}
        for _ in range(2 * len(expected) + 10):
            wanted = {"topic": "orders", "start": {"offsets": offsets}, "limit": limit}
            reply = guarded.ask(CONSUME, {**wanted, "timeout_seconds": 0}).json
            given += [json.loads(b64decode(each["payload"]))["item"] for each in reply["messages"]]
            offsets = reply["next_offsets"]
            if not reply["has_more"]:
                break
        assert sorted(given) == sorted(expected), limit


def test_a_group_gets_behind_others_records(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of them than one look passes over, and the group acknowledges none of them."""
    monkeypatch.setattr(visible_reads, "_PAGE_RECORDS", 10)
    monkeypatch.setattr(visible_reads, "_PAGE_BYTES", 1000)
    monkeypatch.setattr(visible_reads, "_LOOKED_AT_BYTES", 1000)
    log = guarded.host.log
    log.create_topic("sparse")
    others = json.dumps({"customer": 8, "item": SECRET}).encode()
    log.publish("sparse", [Record(others) for _ in range(2000)])
    log.publish("sparse", Record(json.dumps({"customer": MINE, "item": "tea-late"}).encode()))
    asked = {"topic": "sparse", "group_id": "g", "start": "Earliest", "timeout_seconds": 30}
    waiting = guarded.ask(CONSUME, asked).json
    assert [each["offset"] for each in waiting["messages"]] == [2000]
    polls = {**asked, "group_id": "h", "timeout_seconds": 0}
    for _ in range(2000):
        reply = guarded.ask(CONSUME, polls).json
        if reply["messages"]:
            break
    assert [each["offset"] for each in reply["messages"]] == [2000]


def test_a_poll_waits_for_a_record_of_ones_own(guarded: Guarded) -> None:
    log = guarded.host.log
    log.create_topic("live")
    asked = {"topic": "live", "start": "Earliest", "timeout_seconds": 60}
    answers: list[Any] = []
    poll = threading.Thread(target=lambda: answers.append(guarded.ask(CONSUME, asked).json))
    poll.start()
    until(lambda: guarded.host.host.tally.number(POLLS_WAITING) == 1)
    log.publish("live", Record(json.dumps({"customer": 8, "item": SECRET}).encode()))
    log.publish("live", Record(json.dumps({"customer": MINE, "item": "tea"}).encode()))
    poll.join(60)
    assert [each["offset"] for each in answers[0]["messages"]] == [1]


def test_a_topic_whose_rows_cannot_be_told_is_refused_by_name(guarded: Guarded) -> None:
    for path, asked in ((CONSUME, {"topic": "raw", "timeout_seconds": 0}),
                        (SQL, {"sql": "SELECT * FROM raw"}),
                        (SQL, {"sql": "CONSUME FROM raw"})):  # fmt: skip
        reply = guarded.ask(path, asked)
        assert reply.status == 403, asked
        assert "customer = 7" in reply.json["error"]
        assert "raw bytes" in reply.json["error"]


def test_such_a_token_sees_no_metrics(guarded: Guarded) -> None:
    assert guarded.host.ask("/metrics", token=guarded.tokens["seven"]).status == 403


def test_a_condition_that_is_never_true_makes_a_publisher_alone(guarded: Guarded) -> None:
    messages = [{"value": value_of(MINE)}]
    content = {"topic": "orders", "messages": messages}
    assert guarded.ask("/v1/api/topics/publish", content, "publisher").status == 200
    polled = guarded.ask(CONSUME, {"topic": "orders", "timeout_seconds": 0}, "publisher")
    assert (polled.status, polled.json["messages"]) == (200, [])
    selected = guarded.ask(SQL, {"sql": "SELECT * FROM orders"}, "publisher")
    assert (selected.status, selected.json["rows"]) == (200, [])
