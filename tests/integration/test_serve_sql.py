"""SQL over HTTP: every statement, in both forms of answer, and every mistake."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.bridge.http.rules import TopicRules
from duolog.bridge.sql.rules import SqlRules
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from duolog.sql import run
from duolog.sql.cells import cell, fields
from duolog.sql.cells import rows_of as rows_in
from tests.integration.serve_host import Reply, ServedLog, served, until
from tests.integration.sql_asking import ARROW, arrow_of, ask_sql, rows_of

RULES = SqlRules(max_rows=500, max_answer_bytes=100_000)
VOLATILE = {"created_at", "updated_at", "changed_at", "lag_seconds"}
RECORDS = [
    Record(b'{"id":%d,"item":"%s"}' % (number, item), key=b'"k"', partition=number % 2, ts_ms=1000)
    for number, item in enumerate((b"tea", b"jam", b"tea", b"rice"))
]

STATEMENTS = [
    "CREATE TOPIC orders PARTITIONS 2",
    "create topic if not exists orders",
    "CREATE TOPIC \"odd-name\" ALIAS 'nick' PARTITIONS 1 WITH (retention_seconds = 60, "
    "retention_max_bytes = 1000000, key_format = 'raw', value_format = 'raw', envelope = "
    "'debezium', tombstones_on_delete = FALSE, kafka_topic = 'k', dedup_window_seconds = 1.5)",
    "ALTER TOPIC orders ADD SOURCE shop.orders ON INSERT, UPDATE WHERE qty > 1 PARTITION BY item "
    "WITH (payload = 'diff')",
    "ALTER TOPIC orders ADD SOURCE shop.orders ON DELETE",
    "SELECT * FROM system.sources ORDER BY ops",
    "ALTER TOPIC orders DROP SOURCE shop.orders ON INSERT",
    "ALTER TOPIC orders DROP SOURCE shop.orders",
    "ALTER TOPIC nick SET RETENTION WITH (retention_seconds = NULL)",
    "ALTER TOPIC nick CLEAR RETENTION",
    "ALTER TOPIC nick SET PARTITIONS 3",
    "CONSUME FROM orders",
    "CONSUME FROM orders PARTITION 1 LIMIT 1",
    "CONSUME FROM orders FROM LATEST",
    "CONSUME FROM orders FROM EARLIEST LIMIT 3",
    "CONSUME FROM orders PARTITION 0 FROM 1",
    "CONSUME FROM orders FROM TIMESTAMP '1970-01-01T00:00:02Z'",
    "CONSUME FROM orders FROM TIMESTAMP 500",
    "CONSUME FROM orders GROUP 'g' LIMIT 1 AUTO ACK",
    "CONSUME FROM orders GROUP 'g' PARTITION 0",
    "ACK orders GROUP 'g' PARTITION 1 UPTO OFFSET 0",
    "SELECT group_id, topic, partition, position, lag FROM system.topic_offsets ORDER BY partition",
    "RESET CONSUMER GROUP 'g' ON orders TO EARLIEST",
    "RESET CONSUMER GROUP 'g' ON orders PARTITION 1 TO LATEST",
    "RESET CONSUMER GROUP 'g' ON orders PARTITION 1 TO 1",
    "RESET CONSUMER GROUP 'g' ON orders TO TIMESTAMP 500",
    "SELECT * FROM system.topics ORDER BY topic",
    "SELECT * FROM system.partitions ORDER BY topic, partition",
    "SELECT * FROM orders",
    "SELECT item, count(*) AS n, sum(id) AS s FROM orders WHERE offset < 5 GROUP BY 1 ORDER BY 1",
    "WITH few AS (SELECT id FROM orders WHERE partition = 1) SELECT a.id, b.id FROM few a, few b",
    "SELECT 1 / 4.0 AS a, CAST('1.25' AS DECIMAL(5, 2)) AS d, DATE '2026-01-31' AS f, 'NaN'::REAL",
    "CLEAR TOPIC orders",
    "DROP TOPIC IF EXISTS none",
    "DROP TOPIC IF EXISTS orders",
    "DROP TOPIC nick",
    "SELECT * FROM system.topics;",
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log", sql_rules=RULES) as running:
        running.log.create_topic("shared", TopicSettings(partitions=2))
        running.log.publish("shared", RECORDS)
        running.log.create_topic("raw", TopicSettings(value_format=Format.RAW))
        running.log.publish("raw", [Record(b"text"), Record(b"\xff\x00"), Record(None)])
        yield running


def test_every_statement_answers_what_it_does_on_an_embedded_log(tmp_path: Path) -> None:
    with served(tmp_path / "served") as host, open_log(tmp_path / "embedded") as log:
        for text in STATEMENTS:
            if text == "CONSUME FROM orders":
                host.log.publish("orders", RECORDS)
                log.publish("orders", RECORDS)
            result = run(log, text.rstrip(";"))
            wanted = [  # what `duolog sql --json` prints
                fields(result.columns, row) for batch in result.batches() for row in rows_in(batch)
            ]
            reply = ask_sql(host, text)
            assert reply.status == 200, (text, reply.body)
            found = reply.json
            assert found.keys() == {"columns", "types", "rows"}
            assert found["columns"] == list(result.columns)
            assert len(found["types"]) == len(found["columns"])
            rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
            same = set(result.columns) - VOLATILE
            assert [{name: row[name] for name in same} for row in rows] == [
                {name: row[name] for name in same} for row in wanted
            ], text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM shared",
        "SELECT key, value, headers FROM raw",
        "CONSUME FROM raw",
        "CONSUME FROM shared GROUP 'new'",
        "SELECT * FROM system.topics",
        "SELECT upper(item) AS item, max(ts) AS t, 1.5::DECIMAL(9, 3) AS d, [1, NULL] AS l, "
        "{'a': true} AS s, 'Infinity'::DOUBLE AS f FROM shared GROUP BY item ORDER BY item",
        "SELECT * FROM shared WHERE offset > 1000",
        "SELECT item AS same, item AS same_2, a.id, b.id FROM shared a JOIN shared b USING (item)",
    ],
)
def test_json_and_arrow_say_the_same(host: ServedLog, text: str) -> None:
    answer, table = ask_sql(host, text).json, arrow_of(host, text)
    assert answer["columns"] == table.schema.names
    assert answer["types"] == [str(each) for each in table.schema.types]
    columns = [column.to_pylist() for column in table.columns]
    assert answer["rows"] == [[cell(each) for each in row] for row in zip(*columns, strict=True)]


def test_bytes_that_are_no_text_are_marked(host: ServedLog) -> None:
    assert rows_of(host, "SELECT value FROM raw") == [["text"], [{"base64": "/wA="}], [None]]


MISTAKES = [
    ("SELECT nam FROM shared", 422, "InvalidSql", 7),
    ("SELECT id FROM shared WERE id = 1", 422, "InvalidSql", 27),
    ("SELEC id FROM shared", 422, "InvalidSql", 0),
    ("SELECT 1; CONSUM FROM shared", 422, "InvalidSql", 10),
    ("CREATE TOPIC t WITH (retention_second = 60)", 422, "InvalidSql", 21),
    ("CONSUME FROM shared LIMIT 0", 422, "InvalidSql", 26),
    ("CONSUME FROM shared LIMIT 1000000", 422, "InvalidSql", 26),
    ("CONSUME FROM shared AUTO ACK", 422, "InvalidSql", 20),
    ("ACK shared GROUP 'g' UPTO OFFSET -1", 422, "InvalidSql", 33),
    ("SELECT 'never closed", 422, "InvalidSql", 7),
    ("", 422, "InvalidRequest", None),
    (" ; -- nothing", 422, "InvalidSql", None),
    ("SELECT * FROM none", 404, "UnknownTopic", None),
    ("SELECT * FROM system.none", 404, "UnknownTopic", None),
    ("CONSUME FROM none", 404, "UnknownTopic", None),
    ("CONSUME FROM shared PARTITION 7", 404, "UnknownPartition", None),
    ("CONSUME FROM shared PARTITION 0 FROM 77", 416, "OffsetOutOfRange", None),
    ("ACK shared GROUP 'g' PARTITION 0 UPTO OFFSET 77", 409, "AckBeyondHead", None),
    ("ACK shared GROUP 'g' UPTO OFFSET 0", 422, "InvalidRequest", None),
    ("DROP TOPIC none", 404, "UnknownTopic", None),
    ("CREATE TOPIC shared", 409, "NameTaken", None),
    ('CREATE TOPIC "a b"', 422, "InvalidName", None),
    ("ALTER TOPIC shared DROP SOURCE shop.none", 404, "UnknownRoute", None),
    ("ALTER TOPIC shared SET PARTITIONS 1", 422, "InvalidSetting", None),
    ("SELECT 1 / (id - id) FROM shared", 422, "QueryFailed", None),
    ("SELECT a.offset FROM shared a, shared b, shared c, shared d, shared e", 422,
     "AnswerTooLarge", None),
    ("WITH w AS (SELECT value || value || value || value AS v FROM shared) SELECT a.v || b.v || "
     "c.v || d.v || a.v || b.v || c.v FROM w a, w b, w c, w d", 422, "AnswerTooLarge", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "status", "code", "position"), MISTAKES)
def test_mistakes(host: ServedLog, text: str, status: int, code: str, position: int | None) -> None:
    reply = ask_sql(host, text)
    assert (reply.status, reply.code, reply.json.get("position")) == (status, code, position)
    assert "DataFusion" not in reply.json["error"]


@pytest.mark.parametrize(
    "body",
    [{}, {"sql": 1}, {"sql": None}, {"sql": ["SELECT 1"]}, {"sql": "SELECT 1", "rows": 1}, []],
)
def test_bodies_that_are_not_as_described(host: ServedLog, body: Any) -> None:
    assert host.ask("/v1/api/sql", body).status == 422


def test_a_text_that_is_too_long(host: ServedLog) -> None:
    assert ask_sql(host, "SELECT 1" + " " * 300_000).code == "InvalidSql"
    many = ask_sql(host, "SELECT 1;" * 101)
    assert (many.status, many.code) == (422, "InvalidRequest")


def test_as_many_rows_and_bytes_as_are_allowed(host: ServedLog) -> None:
    four = "FROM shared a, shared b, shared c, shared d"  # 256 rows
    assert len(rows_of(host, f"SELECT a.offset {four} LIMIT 500")) == 256
    assert arrow_of(host, f"SELECT a.offset {four}").num_rows == 256
    for headers in ({}, ARROW):
        too_many = ask_sql(host, f"SELECT a.offset {four}, shared e", headers=headers)
        assert "500 rows" in too_many.json["error"]
        assert ask_sql(host, f"SELECT a.offset {four}, shared e LIMIT 500").status == 200


def test_several_statements_are_done_in_order(host: ServedLog) -> None:
    reply = ask_sql(
        host,
        "CREATE TOPIC several; -- with a comment; and a semicolon\n"
        "CONSUME FROM shared LIMIT 1; SELECT 'a;b' AS text; DROP TOPIC several",
    )
    assert reply.status == 200
    results = reply.json["results"]
    assert [each["columns"][0] for each in results] == ["topic", "partition", "text", "topic"]
    assert results[2]["rows"] == [["a;b"]]


def test_nothing_is_done_before_all_statements_are_understood(host: ServedLog) -> None:
    assert ask_sql(host, "CREATE TOPIC early; DROP TOPIK early").status == 422
    assert ask_sql(host, "CONSUME FROM early").status == 404


def test_the_first_that_fails_ends_them_and_what_was_done_is_answered(host: ServedLog) -> None:
    reply = ask_sql(
        host,
        "CONSUME FROM shared GROUP 'stops' PARTITION 0 LIMIT 1 AUTO ACK; "
        "SELECT nothing FROM shared; CREATE TOPIC late",
    )
    assert (reply.status, reply.code) == (422, "InvalidSql")
    assert reply.json["statement"] == 2
    assert reply.json["error"].count("SELECT nothing") == 1
    (consumed,) = reply.json["results"]
    assert len(consumed["rows"]) == 1
    position = host.log.group_position("stops", "shared", 0)
    assert position is not None
    assert position.position == 1
    assert ask_sql(host, "CONSUME FROM late").status == 404


def test_what_statements_answer_together_is_limited(host: ServedLog) -> None:
    host.log.create_topic("wide")
    host.log.publish("wide", [Record(b'"%b"' % (b"x" * 60_000)) for _ in range(3)])
    consumed = ask_sql(host, "CONSUME FROM wide")
    assert (consumed.status, len(consumed.json["rows"])) == (200, 3)  # has a limit of its own
    reply = ask_sql(host, "CONSUME FROM wide; CREATE TOPIC beyond; SELECT 1")
    assert (reply.status, reply.code, reply.json["statement"]) == (422, "AnswerTooLarge", 2)
    assert reply.json["results"] == [consumed.json]
    assert ask_sql(host, "CONSUME FROM beyond").status == 404
    assert ask_sql(host, "CONSUME FROM wide LIMIT 1; SELECT value FROM wide").status == 422


def test_an_arrow_stream_is_one_answer(host: ServedLog) -> None:
    several = ask_sql(host, "SELECT 1; SELECT 2", headers=ARROW)
    assert (several.status, several.code) == (422, "InvalidRequest")
    wrong = ask_sql(host, "SELECT", headers=ARROW)
    assert (wrong.status, wrong.headers["content-type"]) == (422, "application/json")


def test_a_group_that_is_being_answered_is_not_consumed(host: ServedLog) -> None:
    wanted = {"topic": "shared", "group_id": "held", "start": "Latest", "timeout_seconds": 60}
    poll = threading.Thread(target=host.ask, args=("/v1/api/topics/consume", wanted))
    poll.start()
    until(lambda: len(host.host.places) == 2)
    refused = ask_sql(host, "CONSUME FROM shared GROUP 'held' PARTITION 1")
    assert (refused.status, refused.code) == (409, "PartitionHeld")
    assert "anybody at 127.0.0.1" in refused.json["holder"]
    assert ask_sql(host, "CONSUME FROM shared GROUP 'other'").status == 200
    host.log.publish("shared", Record(b"{}", partition=0, ts_ms=1000))
    poll.join()
    assert ask_sql(host, "CONSUME FROM shared GROUP 'held' PARTITION 1").status == 200
    assert len(host.host.places) == 0


def test_avro_is_decoded_by_the_schemas_of_the_log(host: ServedLog) -> None:
    settings = TopicSettings(key_format=Format.AVRO, value_format=Format.AVRO)
    host.log.create_topic("encoded", settings)
    host.log.add_route("encoded", Route("shop.items", frozenset({Op.INSERT})))
    rows = [{"id": number, "item": "tea"} for number in range(3)]
    host.log.publish_rows("shop.items", Op.INSERT, rows, ["id"])
    assert rows_of(host, "SELECT id, item FROM encoded WHERE id > 0") == [[1, "tea"], [2, "tea"]]
    consumed = ask_sql(host, "CONSUME FROM encoded LIMIT 1").json
    at = consumed["columns"].index("value")
    assert json.loads(consumed["rows"][0][at])["item"] == "tea"


def test_what_was_just_written_is_selected(host: ServedLog) -> None:
    for number in range(1, 4):
        host.publish("shared", {"id": 1000 + number})
        found = rows_of(host, "SELECT count(*) AS n FROM shared WHERE id > 1000")
        assert found == [[number]]


def test_records_that_are_consumed_are_counted(host: ServedLog) -> None:
    line = 'duolog_consumed_records_total{topic="raw"}'
    before = host.metric(line)
    ask_sql(host, "CONSUME FROM raw LIMIT 2")
    assert host.metric(line) == before + 2


def test_a_host_gives_a_topic_so_many_partitions_and_larger_ones_go_on(tmp_path: Path) -> None:
    def sql(host: ServedLog, text: str) -> Reply:
        return host.ask("/v1/api/sql", {"sql": text})

    with served(tmp_path / "log", rules=TopicRules(max_partitions=8)) as host:
        assert sql(host, "CREATE TOPIC large PARTITIONS 8; CREATE TOPIC grows").status == 200
    with served(tmp_path / "log", rules=TopicRules(max_partitions=4)) as host:
        for text in (
            "CREATE TOPIC more PARTITIONS 5",
            "ALTER TOPIC grows SET PARTITIONS 5",
            "ALTER TOPIC large SET PARTITIONS 9",
        ):
            refused = sql(host, text)
            assert (refused.status, refused.json["code"]) == (422, "InvalidSetting"), text
            assert "max_partitions" in refused.json["error"]
        assert sql(host, "ALTER TOPIC grows SET PARTITIONS 4").status == 200
        assert sql(host, "CREATE TOPIC IF NOT EXISTS large PARTITIONS 8").status == 200
        assert sql(host, "ALTER TOPIC large SET PARTITIONS 8").status == 200
        assert host.publish("large", 1).status == 200
        assert len(host.log.offsets("large")) == 8
