"""SQL over HTTP without a host: limits, frames, forms of answers, and whom a topic is shown to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pyarrow as pa
import pytest

from duolog import open_log
from duolog.avro.registry.port import RegisteredSchema, Registry, SchemaReference, SchemaText
from duolog.bridge.http.access import lacks, need_of_statement
from duolog.bridge.http.answers import refusal_of
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.sql.answering import READING, Answering
from duolog.bridge.sql.asked_log import AskedLog, AskedSchemas
from duolog.bridge.sql.child import Outcome, death_of
from duolog.bridge.sql.children import is_spent
from duolog.bridge.sql.frames import HEAD, Kind, framed, head_of
from duolog.bridge.sql.query_process import is_worn
from duolog.bridge.sql.rules import SqlRules
from duolog.bridge.sql.seen_log import SeenLog, UsedLog
from duolog.bridge.sql.shown import AnswerLimits, as_arrow, as_json
from duolog.errors import (
    AnswerTooLarge,
    ForbiddenTopic,
    HostFailed,
    InvalidRequest,
    InvalidSetting,
    InvalidSql,
    OffsetOutOfRange,
    QueryProcessDied,
    QueryTimedOut,
    QueryTooLarge,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import AtOffset, Format, Op, Record, Route, TopicSettings
from duolog.reach.calls import CALLS
from duolog.reach.failures import error_of
from duolog.settings import load_settings
from duolog.sql import parse
from duolog.sql.result import SqlResult

if TYPE_CHECKING:
    from duolog.bridge.visible_reads import VisibleTopics

ALL_ROWS = cast("VisibleTopics", None)  # none of these callers has a condition
LIMITED = Caller("limited", Role.DBA, ("orders*",), tables=("*",))
ANYONE = Caller("anyone", Role.DBA)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log") as log:
        for name in ("orders", "payments"):
            log.create_topic(name, TopicSettings(partitions=2, value_format=Format.RAW))
            log.publish(name, [Record(b"%d" % n, partition=n % 2, ts_ms=n) for n in range(1000)])
            log.ack("g", name, 3, 0)
        yield log


# -- what a query may use


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_processes", 0),
        ("timeout_seconds", 0),
        ("timeout_seconds", float("inf")),
        ("timeout_seconds", float("nan")),
        ("memory_bytes", 100 << 20),
        ("max_rows", 0),
        ("max_answer_bytes", 0),
        ("idle_seconds", -1),
        ("idle_seconds", float("nan")),
    ],
)
def test_rules_that_allow_nothing_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=name):
        SqlRules(**{name: value})


def test_the_settings_are_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings().host_options().sql_rules == SqlRules()
    (tmp_path / "duolog.toml").write_text('[sql]\nmemory_bytes = "512 MiB"\nmax_processes = 3\n')
    rules = load_settings().host_options().sql_rules
    assert rules == SqlRules(memory_bytes=512 << 20, max_processes=3)
    assert rules.pool_bytes == (512 - 256 << 20) // 3
    (tmp_path / "duolog.toml").write_text("[sql]\nmax_proceses = 3\n")
    with pytest.raises(InvalidSetting, match=r"max_proceses.*'max_processes'"):
        load_settings()


# -- who may

READ = (
    "SELECT 1",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "CONSUME FROM t",
    "CONSUME FROM t GROUP 'g' AUTO ACK",
    "ACK t GROUP 'g' UPTO OFFSET 1",
)
DEFINE = (
    "CREATE TOPIC t",
    "ALTER TOPIC t ADD SOURCE a.b ON INSERT",
    "ALTER TOPIC t DROP SOURCE a.b",
    "ALTER TOPIC t SET RETENTION WITH (retention_seconds = 1)",
    "ALTER TOPIC t CLEAR RETENTION",
    "ALTER TOPIC t SET PARTITIONS 2",
    "DROP TOPIC t",
    "CLEAR TOPIC t",
    "RESET CONSUMER GROUP 'g' ON t TO EARLIEST",
)


@pytest.mark.parametrize("text", [*READ, *DEFINE])
def test_which_role_a_statement_asks_for(text: str) -> None:
    (statement,) = parse(text)
    for users_consume in (False, True):
        least = Role.DBA if text in DEFINE else Role.USER if users_consume else Role.SERVICE
        need = need_of_statement(statement, users_consume=users_consume)
        for role in Role:
            assert (lacks(Caller("a", role), need) is None) == (role >= least)


def test_a_limited_caller_sees_its_topics_and_no_others(log: EmbeddedLog) -> None:
    seen = SeenLog(cast("LogAccess", log), LIMITED, ALL_ROWS)
    everything = SeenLog(cast("LogAccess", log), ANYONE, ALL_ROWS)
    payments = log.topic("payments")
    reads: list[Callable[[Any], object]] = [
        seen.topic,
        seen.offsets,
        lambda topic: seen.resolve(topic, 0, AtOffset(1)),
        lambda topic: seen.fetch(topic, 0, 0),
        lambda topic: seen.fetch_encoded(topic, 0, 0),
        lambda topic: seen.group_position("g", topic, 0),
        lambda topic: seen.group_positions("g", topic),
    ]
    for read in reads:
        assert read("orders")
        for reference in ("payments", payments.id, str(payments.id), "none", 999):
            with pytest.raises(ForbiddenTopic, match=f"'{reference}'"):
                read(reference)
    assert [topic.name for topic in seen.topics()] == ["orders"]
    assert {each.topic for each in seen.group_positions()} == {"orders"}
    assert len(everything.topics()) == 2
    assert {each.topic for each in everything.group_positions()} == {"orders", "payments"}
    with pytest.raises(UnknownTopic) as unknown:
        seen.topic("orders_none")
    assert not isinstance(unknown.value, ForbiddenTopic)
    assert "payments" not in str(unknown.value)


def test_an_alias_that_moves_leads_nowhere_new(log: EmbeddedLog) -> None:
    """Between the look at a name and what is done, the name may come to mean another topic."""

    class Moving(SeenLog):
        def topic(self, reference: str | int, *, topic_id: int | None = None) -> Any:
            found = super().topic(reference)
            if reference == "orders":
                log.drop_topic("orders")
                log.create_topic("payments2", TopicSettings(alias="orders"))
            return found

    moving = Moving(cast("LogAccess", log), LIMITED, ALL_ROWS)
    with pytest.raises(UnknownTopic):
        moving.offsets("orders")


def test_checks_come_before_anything_is_done(log: EmbeddedLog) -> None:
    used = UsedLog(cast("LogAccess", log), LIMITED, ALL_ROWS)
    log.add_route("payments", Route("shop.cards", frozenset({Op.INSERT})))
    refused = [
        "CREATE TOPIC payments_new",
        "CREATE TOPIC orders_new ALIAS 'payments_new'",
        "CREATE TOPIC orders_new WITH (kafka_topic = 'payments')",
        "ALTER TOPIC orders ADD SOURCE shop.cards ON INSERT",
        "DROP TOPIC payments",
        "CONSUME FROM nothing",
    ]
    for text in refused:
        (statement,) = parse(text)
        with pytest.raises(ForbiddenTopic):
            used.check(statement)
        UsedLog(cast("LogAccess", log), ANYONE, ALL_ROWS).check(statement)
    for text in ("CREATE TOPIC orders_new", "DROP TOPIC orders_new", "SELECT * FROM payments"):
        used.check(*parse(text))
    with pytest.raises(ForbiddenTopic):
        used.create_topic("orders_new", TopicSettings(alias="payments_new"))
    with pytest.raises(ForbiddenTopic):
        used.add_route("orders", Route("shop.cards", frozenset({Op.INSERT})))


# -- between the host and a query's process


def asked_of(log: EmbeddedLog, caller: Caller, registry: Any = None) -> Callable[..., Any]:
    """What a process is answered, over the same frames, without the process."""
    answering = Answering(SeenLog(cast("LogAccess", log), caller, ALL_ROWS), lambda: registry)

    def ask(call: str, arguments: dict[str, Any]) -> Any:
        sent = json.loads(json.dumps({"call": call, "arguments": arguments}))
        frame = answering.frame(sent)
        kind, length = head_of(frame[: HEAD.size])
        content = frame[HEAD.size :]
        assert len(content) == length
        if kind is Kind.REFUSED:
            error = error_of(json.loads(content))
            assert error is not None
            raise error
        return content if kind is Kind.BATCHES else json.loads(content)

    return ask


def test_a_process_reads_what_the_log_has(log: EmbeddedLog) -> None:
    asked = AskedLog(asked_of(log, ANYONE))
    assert asked.topics() == log.topics()
    assert asked.topic("orders") == log.topic("orders")
    assert asked.offsets("orders") == log.offsets("orders")
    assert asked.group_positions() == log.group_positions()
    assert asked.resolve("orders", 1, AtOffset(7)) == 7
    for offset in (0, 100, 499, 500):
        one = asked.fetch("orders", 1, offset, max_records=150)
        other = log.fetch("orders", 1, offset, max_records=150)
        assert one.table().equals(other.table())
        assert one.next_offset == other.next_offset
    with pytest.raises(OffsetOutOfRange):
        asked.fetch("orders", 1, 501, max_records=1)


def test_a_process_reads_what_its_sender_may_and_does_nothing_else(log: EmbeddedLog) -> None:
    ask = asked_of(log, LIMITED)
    asked = AskedLog(ask)
    assert [topic.name for topic in asked.topics()] == ["orders"]
    for read in (asked.topic, asked.offsets):
        with pytest.raises(ForbiddenTopic):
            read("payments")
    with pytest.raises(ForbiddenTopic):
        asked.fetch(log.topic("payments").id, 0, 0, max_records=1)
    before = log.topics(), log.group_positions()
    for name in {*CALLS, "close", "secret", "__class__", "none"} - READING:
        with pytest.raises(InvalidRequest, match="A query does not ask for"):
            ask(name, {})
    assert (log.topics(), log.group_positions()) == before


def test_a_process_gets_schemas_by_every_name(log: EmbeddedLog) -> None:
    text = SchemaText('"string"', references=(SchemaReference("n", "s", 2),))
    asked_for: list[object] = []

    class Known:
        def schema_by_id(self, schema_id: int) -> SchemaText:
            asked_for.append(schema_id)
            return text

        def schema_by_guid(self, guid: UUID) -> SchemaText:
            asked_for.append(guid)
            return text

        def version(self, subject: str, version: int) -> RegisteredSchema:
            return RegisteredSchema(subject, version, 9, text)

    guid = UUID(int=7)
    schemas = AskedSchemas(asked_of(log, LIMITED, cast("Registry", Known())))
    for _ in range(2):
        assert schemas.schema_by_id(5) == text
        assert schemas.schema_by_guid(guid) == text
    assert schemas.version("s", 2) == RegisteredSchema("s", 2, 9, text)
    assert asked_for == [5, guid]


def test_a_frame_of_another_program_is_refused() -> None:
    assert head_of(framed(Kind.QUERY, {"a": 1})[: HEAD.size]) == (Kind.QUERY, 8)
    assert framed(Kind.PIECE, memoryview(b"ab"))[HEAD.size :] == b"ab"
    with pytest.raises(HostFailed):
        head_of(b"GET /")


@pytest.mark.parametrize(
    ("code", "said", "error", "words"),
    [
        (-6, "memory allocation of 64 bytes failed\n", QueryTooLarge, "more memory"),
        (-6, "terminate called after … std::bad_alloc", QueryTooLarge, "more memory"),
        (-6, "thread has overflowed its stack", QueryProcessDied, "SIGABRT"),
        (-9, "", QueryProcessDied, "SIGKILL"),
        (1, "Traceback …", QueryProcessDied, "code 1"),
    ],
)
def test_why_a_process_died(code: int, said: str, error: type[Exception], words: str) -> None:
    death = death_of(code, said)
    assert type(death) is error
    assert words in str(death)
    assert refusal_of(death).status == (422 if error is QueryTooLarge else 503)


@pytest.mark.parametrize(
    ("held", "worn"), [(300, False), (650, False), (651, True), (999, True), (0, False)]
)
def test_a_process_that_keeps_much_memory_is_worn(held: int, worn: bool) -> None:
    assert is_worn(held, 300, 1000) == worn


@pytest.mark.parametrize(
    ("outcome", "spent"),
    [
        (Outcome(b"{}"), False),
        (Outcome(b"{}", is_worn=True), True),
        (Outcome(error=InvalidSql("No.")), False),
        (Outcome(error=QueryTooLarge("No.")), False),
        (Outcome(error=QueryTooLarge("No."), is_worn=True), True),
        (Outcome(error=QueryTimedOut("No.")), True),
    ],
)
def test_after_which_outcomes_a_process_is_not_used_again(outcome: Outcome, spent: bool) -> None:
    assert is_spent(outcome) == spent


# -- answers


def result_of(**columns: pa.Array) -> SqlResult:
    return SqlResult.of(pa.table(columns))


def test_every_kind_of_cell_in_both_forms() -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    columns = {
        "text": pa.array(["a", None], pa.string_view()),
        "bytes": pa.array([b"\xff", b"b"], pa.binary_view()),
        "float": pa.array([float("nan"), 1.5]),
        "decimal": pa.array([Decimal("1.25"), None]),
        "moment": pa.array([moment, None], pa.timestamp("ms", "UTC")),
        "list": pa.array([[{"name": "h", "value": b"\xff"}], None]),
    }
    found = json.loads(as_json(result_of(**columns), AnswerLimits()))
    assert found["columns"] == list(columns)
    assert found["types"][:2] == ["string", "binary"]
    listed = [{"name": "h", "value": "/w==", "value_encoding": "base64"}]
    assert found["rows"] == [
        ["a", {"base64": "/w=="}, "nan", "1.25", "2026-01-31T12:00:00.000Z", listed],
        [None, "b", 1.5, None, None, None],
    ]
    stream = as_arrow(result_of(**columns), AnswerLimits())
    table = pa.ipc.open_stream(stream).read_all()
    assert [str(each) for each in table.schema.types] == found["types"]
    assert table.column("bytes").to_pylist() == [b"\xff", b"b"]


@pytest.mark.parametrize("form", [as_json, as_arrow])
def test_an_answer_ends_where_its_limit_is(form: Callable[..., bytes]) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(10):
            made.append(number)
            yield pa.record_batch({"n": pa.array(range(1000))})

    made: list[int] = []
    schema = pa.schema([("n", pa.int64())])
    assert form(SqlResult(schema, batches()), AnswerLimits(10_000, 1 << 20))
    made.clear()
    with pytest.raises(AnswerTooLarge, match="9,999 rows"):
        form(SqlResult(schema, batches()), AnswerLimits(9_999, 1 << 20))
    made.clear()
    with pytest.raises(AnswerTooLarge, match="20,000 bytes"):
        form(SqlResult(schema, batches()), AnswerLimits(10_000, 20_000))
    assert len(made) < 10


def test_a_mistake_in_sql_says_where() -> None:
    refusal = refusal_of(InvalidSql("No.", text="SELECT", position=3))
    assert (refusal.status, refusal.more) == (422, {"position": 3})
    assert refusal_of(InvalidSql("No.")).more == {}
