"""SELECT over topics: what is read for it, what is shown, what it may not do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import duolog
from duolog.errors import (
    DataFusionNotFound,
    InvalidSetting,
    InvalidSql,
    LogClosed,
    QueryFailed,
    QueryTimedOut,
    QueryTooLarge,
    Undecodable,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Format, Op, Record, Retention, TopicSettings
from duolog.sql import QueryLimits, run
from duolog.sql.select.topic_table import FIRST_PAGE_RECORDS, SAMPLE_RECORDS
from tests.support.clock import ManualClock
from tests.support.counting import CountingLog
from tests.support.records import BATCH, part_of

RECORDS = 20_000
RAW = TopicSettings(partitions=2, key_format=Format.RAW, value_format=Format.RAW)
ENDLESS = "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLog]:
    """A log with a raw topic `big`: two partitions, each record a second after the one before."""
    with duolog.open_log(tmp_path_factory.mktemp("sql") / "log") as log:
        topic = log.create_topic("big", RAW)
        values = [b"%d" % number for number in range(RECORDS)]
        times = [1000 * number for number in range(RECORDS)]
        log.append(BATCH, 1, [part_of(topic, {0: values, 1: values}, ts_ms=times)])
        yield log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


def rows(log: Any, sql: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(cast("LogAccess", log), sql, **options).table().to_pylist()
    return found


def publish(log: EmbeddedLog, topic: str, *values: Any, **fields: Any) -> None:
    log.create_topic(topic, if_not_exists=True)
    stored = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in values]
    log.publish(topic, [Record(each, **fields) for each in stored])


# What has to be read at most, of each of the two partitions.
PUSHED = {
    "offset BETWEEN 100 AND 109": {0: range(100, 110), 1: range(100, 110)},
    "100 <= offset AND offset < 110 AND value <> 'x'": {0: range(100, 110), 1: range(100, 110)},
    "offset = 7 AND partition = 1": {1: range(7, 8)},
    "partition = 0 AND (offset = 7 OR offset = 9)": {0: range(7, 10)},
    "offset IN (3, 4, 5, 6, 7) AND partition IN (1)": {1: range(3, 8)},
    "partition = 0 AND offset < 10 AND offset NOT IN (3, 4, 5, 6, 7)": {0: range(10)},
    "offset < 5 OR offset < 3": {0: range(5), 1: range(5)},
    "offset < '5'": {0: range(5), 1: range(5)},
    "NOT (offset >= 5)": {0: range(5), 1: range(5)},
    "offset > 19990 AND offset < 100": {},
    "offset > 99999": {},
    "partition = 2": {},
    "ts >= '1970-01-01T05:33:15Z'": {0: range(19_995, RECORDS), 1: range(19_995, RECORDS)},
    "ts > to_timestamp_millis(19998999) AND partition = 0": {0: range(19_999, RECORDS)},
    "ts >= '1970-01-01T05:00:00Z' AND offset < 18003 AND partition = 0": {0: range(18_000, 18_003)},
    "offset < 3 AND offset = (SELECT max(offset) - 19999 FROM big)": {
        0: range(RECORDS),
        1: range(RECORDS),
    },
}


@pytest.mark.parametrize("condition", PUSHED)
def test_only_what_is_asked_for_is_read(shared: EmbeddedLog, condition: str) -> None:
    counting = CountingLog(shared)
    found = rows(counting, f"SELECT partition, offset FROM big WHERE {condition}")
    allowed = {(part, offset) for part, some in PUSHED[condition].items() for offset in some}
    assert set(counting.read) <= allowed
    whole = rows(shared, "SELECT partition, offset, ts, value FROM big")
    kept = f"SELECT partition, offset FROM (SELECT * FROM big LIMIT {3 * RECORDS}) big"
    assert len(whole) == 2 * RECORDS
    assert found == rows(shared, f"{kept} WHERE {condition}")


def test_joined_with_itself_a_topic_is_read_for_both(shared: EmbeddedLog) -> None:
    found = rows(
        shared,
        "SELECT a.offset, b.offset FROM big a JOIN big b ON a.offset = b.offset + 9 "
        "AND a.partition = b.partition WHERE a.offset < 12 AND b.offset > 1 AND a.partition = 0",
    )
    assert found == [{"offset": 11, "offset_2": 2}]


def test_a_limit_below_a_condition_stays_below_it(shared: EmbeddedLog) -> None:
    for limit in ("LIMIT 5", "LIMIT 5 OFFSET 2", "OFFSET 19995 LIMIT 5"):
        inner = f"(SELECT * FROM big {limit})"
        all_of_it = rows(shared, f"SELECT offset FROM {inner}")
        some = rows(shared, f"SELECT offset FROM {inner} WHERE offset > 3")
        assert some == [row for row in all_of_it if row["offset"] > 3]


def test_a_query_that_wants_few_rows_reads_few(shared: EmbeddedLog) -> None:
    counting = CountingLog(shared)
    assert len(rows(counting, "SELECT * FROM big LIMIT 10")) == 10
    assert len(counting.read) == FIRST_PAGE_RECORDS


def test_rows_are_made_while_they_are_read(shared: EmbeddedLog) -> None:
    counting = CountingLog(shared)
    result = run(cast("LogAccess", counting), "SELECT * FROM big")
    batches = result.batches()
    assert next(batches).num_rows
    assert 0 < len(counting.read) < RECORDS
    batches.close()  # type: ignore[attr-defined]
    result.close()
    assert len(counting.read) < RECORDS


def test_a_field_that_no_column_can_be_called_as_stays_in_the_value(log: EmbeddedLog) -> None:
    """DataFusion's names end at a NUL: one such record made the whole topic unreadable."""
    log.create_topic("orders")
    log.publish("orders", Record(b'{"a": 1, "n": {"b": 2}}'))
    log.publish("orders", Record(b'{"a\\u0000x": 3, "n": {"b\\u0000y": 4}}'))
    found = rows(log, 'SELECT a, n, value FROM orders ORDER BY "offset"')
    assert [row["a"] for row in found] == [1, None]
    assert json.loads(found[1]["value"]) == {"a\0x": 3, "n": {"b\0y": 4}}
    assert rows(log, "SELECT count(*) AS n FROM orders") == [{"n": 2}]


def test_the_columns_are_found_in_a_sample(log: EmbeddedLog) -> None:
    publish(log, "t", *({"n": number} for number in range(5000)))
    counting = CountingLog(log)
    assert rows(counting, "SELECT n FROM t WHERE offset = 2500") == [{"n": 2500}]
    assert len(counting.read) <= SAMPLE_RECORDS + 1


def test_a_topic_larger_than_the_memory(tmp_path: Path) -> None:
    program = """
import resource, sys
import duolog
from duolog.log.model import Format, TopicSettings
from duolog.log.options import LogOptions
from duolog.sql import run
from tests.support.records import BATCH, part_of

raw = TopicSettings(value_format=Format.RAW)
with duolog.open_log(sys.argv[1], options=LogOptions(cache_bytes=1 << 20)) as log:
    topic = log.create_topic("t", raw)
    for epoch in range(1, 31):
        log.append(BATCH, epoch, [part_of(topic, {0: [bytes([epoch]) * 10_000] * 1000},
                                          target_bytes=1 << 19)])
    run(log, "SELECT count(*) FROM t WHERE offset < 1000").table()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = run(log, "SELECT count(*), count(DISTINCT value) FROM t").table().to_pylist()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(list(found[0].values()), grown // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "log")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counted, grown_mib = done.stdout.split("]")
    assert counted == "[30000, 30"
    assert int(grown_mib) < 100  # of 300 MiB


def test_what_is_shown_of_a_record(log: EmbeddedLog) -> None:
    log.create_topic("t")
    value = b'{"id": 1, "op": "x", "value_op": 2}'
    headers = (("h", b"\x00"), ("h", None))
    log.publish("t", Record(value, b'"k"', headers, ts_ms=1500, op=Op.DELETE, table="s.t"))
    found = run(log, "SELECT * FROM t").table()
    assert found.column("ts").cast("int64").to_pylist() == [1500]
    assert found.drop_columns(["ts"]).to_pylist() == [
        {
            "partition": 0,
            "offset": 0,
            "op": "delete",
            "table": "s.t",
            "payload": None,
            "key": '"k"',
            "value": value.decode(),
            "headers": [{"name": "h", "value": b"\x00"}, {"name": "h", "value": None}],
            "topic_id": log.topic("t").id,
            "id": 1,
            "value_op": "x",  # the field `op`, as every record has an op
            "value_value_op": 2,
        }
    ]


def test_raw_topics_show_bytes(shared: EmbeddedLog) -> None:
    assert rows(shared, "SELECT key, value FROM big WHERE partition = 0 AND offset = 5") == [
        {"key": None, "value": b"5"}
    ]


def test_a_query_that_is_too_long_to_be_planned(shared: EmbeddedLog) -> None:
    with pytest.raises(InvalidSql, match=r"x IN \(1, 2, …\)"):
        rows(shared, "SELECT " + " + ".join(["offset"] * 600) + " FROM big")
    many = ", ".join(map(str, range(0, RECORDS, 4)))
    sql = f"SELECT count(*) AS n FROM big WHERE partition = 0 AND offset IN ({many})"
    assert rows(shared, sql) == [{"n": RECORDS // 4}]


def test_names_in_any_case(log: EmbeddedLog) -> None:
    for name in ("Orders", "shop.Orders", "system.own", "a-b", "X", "x"):
        publish(log, name, {"name": name})
    log.create_topic("aliased", TopicSettings(alias="Nick"))
    for name in ("Orders", "orders", '"Orders"', "ORDERS", "public.orders"):
        assert rows(log, f"SELECT name FROM {name}") == [{"name": "Orders"}]
    for name in ("shop.Orders", '"shop.Orders"', "Shop.ORDERS"):
        assert rows(log, f"SELECT name FROM {name}") == [{"name": "shop.Orders"}]
    assert rows(log, "SELECT name FROM system.own") == [{"name": "system.own"}]
    assert rows(log, 'SELECT name FROM "a-b"') == [{"name": "a-b"}]
    assert rows(log, 'SELECT name FROM "X"') == [{"name": "X"}]
    assert rows(log, "SELECT name FROM X") == [{"name": "x"}]  # DataFusion makes it lower case
    assert rows(log, "SELECT count(*) AS n FROM nick") == [{"n": 0}]
    topic_id = log.topic("Orders").id
    assert rows(log, f'SELECT name FROM "{topic_id}"') == [{"name": "Orders"}]


def test_nothing_is_there_yet(log: EmbeddedLog) -> None:
    for name in ("topics", "sources", "partitions", "topic_offsets", "mirror"):
        assert rows(log, f"SELECT * FROM system.{name}") == []
    log.create_topic("t", TopicSettings(partitions=3))
    assert rows(log, "SELECT * FROM t") == []
    assert rows(log, "SELECT count(*) AS n, max(offset) AS m FROM t") == [{"n": 0, "m": None}]


def test_lag_in_records_and_seconds(log: EmbeddedLog) -> None:
    publish(log, "t", *range(10), ts_ms=1_000_000)
    log.ack("g", "t", 3)
    clock = ManualClock(1_060_500)
    sql = "SELECT group_id, position, lag, lag_seconds, changed_by FROM system.topic_offsets"
    assert rows(log, sql, clock=clock) == [
        {"group_id": "g", "position": 4, "lag": 6, "lag_seconds": 60.5, "changed_by": "native"}
    ]
    log.ack("g", "t", 9)
    assert rows(log, sql, clock=clock)[0]["lag_seconds"] == 0


def test_what_retention_removes_meanwhile_is_passed_over(log: EmbeddedLog) -> None:
    topic = log.create_topic("t", RAW)
    for epoch in range(1, 21):
        values = [b"%d" % number for number in range(1000)]
        log.append(BATCH, epoch, [part_of(topic, {0: values})])

    class Shrinking(CountingLog):
        def fetch(self, *arguments: Any, **limits: Any) -> Any:
            if len(self.read) == FIRST_PAGE_RECORDS:
                log.set_retention("t", Retention(max_bytes=1))
                log.enforce_retention("t")
                log.set_retention("t", Retention())
                log.append(BATCH, 21, [part_of(topic, {0: [b"new"]})])
            return super().fetch(*arguments, **limits)

    found = rows(Shrinking(log), "SELECT offset FROM t")
    assert [row["offset"] for row in found] == list(range(FIRST_PAGE_RECORDS))


def test_one_record_that_is_no_text_does_not_hide_the_others(log: EmbeddedLog) -> None:
    publish(log, "t", {"a": 1}, b"\xff", {"a": 3})
    assert rows(log, "SELECT a FROM t") == [{"a": 1}, {"a": None}, {"a": 3}]
    with pytest.raises(Undecodable, match="Offset 1 of topic 't' partition 0: the value is not"):
        rows(log, "SELECT value FROM t")
    assert rows(log, "SELECT value FROM t WHERE offset > 1") == [{"value": '{"a": 3}'}]
    assert [row["value"] for row in rows(log, "CONSUME FROM t")] == [
        b'{"a": 1}',
        b"\xff",
        b'{"a": 3}',
    ]


def test_a_value_beyond_the_sample_that_does_not_fit(log: EmbeddedLog) -> None:
    values: list[Any] = [{"a": number} for number in range(3000)]
    values[1500] = {"a": "many"}
    publish(log, "t", *values)
    with pytest.raises(Undecodable, match=r'Offset 1500 of .*`a` is "many", while'):
        rows(log, "SELECT sum(a) FROM t")
    assert rows(log, "SELECT sum(a) AS s FROM t WHERE offset > 1500") == [
        {"s": sum(range(1501, 3000))}
    ]


WRITES = [
    "SELECT * INTO other FROM big",
    "WITH x AS (SELECT 1) INSERT INTO big SELECT * FROM x",
    "WITH x AS (SELECT 1) DELETE FROM big",
    "WITH x AS (SELECT 1) UPDATE big SET value = 'x'",
]
FILES = [
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM 'file:///etc/passwd'",
    "SELECT * FROM '{here}/data.csv'",
    "SELECT * FROM '{here}/data.parquet'",
    "SELECT * FROM read_parquet('{here}/data.parquet')",
    "SELECT * FROM read_csv('{here}/data.csv')",
    "SELECT * FROM parquet_metadata('{here}/data.parquet')",
    "SELECT * FROM information_schema.df_settings",
    "SELECT * FROM generate_series(1, 10)",
]
NO_SELECT = [
    "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE TABLE x AS SELECT 1",
    "COPY big TO '/tmp/x.csv'",
    "INSERT INTO big VALUES (1)",
    "SET datafusion.execution.batch_size = 1",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "PREPARE p AS SELECT 1",
    "DESCRIBE big",
]


@pytest.mark.parametrize("sql", WRITES + FILES + NO_SELECT)
def test_a_select_only_reads_what_is_in_the_log(
    shared: EmbeddedLog, tmp_path: Path, sql: str
) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    with pytest.raises((InvalidSql, UnknownTopic)):
        rows(shared, sql.format(here=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]


MISTAKES = {
    "SELECT nam FROM t WHERE a = 1": ("No field named nam", 7),
    "SELECT a FROM t WHERE qtty > 1": ("No field named qtty", 22),
    "SELECT summ(a) FROM t": ("Invalid function 'summ'", 7),
    "SELECT a\nFROM t WERE a = 1": ("Expected: end of statement", 21),
    "SELECT a FROM t WHERE": ("Expected: an expression", 21),
    "SELECT repeat('x', 1000000000)": ("Invalid function 'repeat'", 7),
    "SELECT ts > 5 FROM t": ("Cannot infer common argument type", 0),
    "SELECT $1": ("Placeholder '$1'", 0),
    "WITH a AS (SELECT 1)": ("Expected", 20),
}


@pytest.mark.parametrize("sql", MISTAKES)
def test_a_mistake_in_a_query_is_pointed_at(log: EmbeddedLog, sql: str) -> None:
    publish(log, "t", {"name": "x", "a": 1})
    reason, position = MISTAKES[sql]
    with pytest.raises(InvalidSql) as raised:
        rows(log, sql)
    assert reason in raised.value.reason
    assert raised.value.position == position
    assert "DataFusion" not in raised.value.reason


def test_unknown_tables_are_named(log: EmbeddedLog) -> None:
    publish(log, "orders", {"a": 1})
    with pytest.raises(UnknownTopic, match=r"no topic 'order'\. There are: orders"):
        rows(log, 'SELECT * FROM orders a, "order" b')
    with pytest.raises(UnknownTopic, match=r"no table system.topic. There are: system.topics"):
        rows(log, "SELECT * FROM system.topic")


def test_a_value_that_cannot_be_calculated_with(log: EmbeddedLog) -> None:
    publish(log, "t", {"a": 0, "b": "x"})
    with pytest.raises(QueryFailed, match="Divide by zero"):
        rows(log, "SELECT 1 / a FROM t")
    with pytest.raises(QueryFailed, match="Cannot cast string 'x'"):
        rows(log, "SELECT CAST(b AS INT) FROM t")


@pytest.mark.parametrize(
    "sql", [ENDLESS, "SELECT count(*) FROM big a, big b, big c WHERE a.value <> b.value"]
)
def test_a_query_that_takes_too_long_is_stopped(shared: EmbeddedLog, sql: str) -> None:
    limits = QueryLimits(timeout_seconds=0.2)
    with pytest.raises(QueryTimedOut, match=r"longer than the 0.2 s"):
        rows(shared, sql, limits=limits)
    assert len(rows(shared, "SELECT * FROM big", limits=QueryLimits(timeout_seconds=60))) == (
        2 * RECORDS
    )


def test_reading_takes_time_too(shared: EmbeddedLog) -> None:
    class Slow(ManualClock):
        def __init__(self) -> None:
            super().__init__()
            self.seconds = 0.0

        def monotonic(self) -> float:
            self.seconds += 1
            return self.seconds

    with pytest.raises(QueryTimedOut):
        rows(shared, "SELECT * FROM big", clock=Slow(), limits=QueryLimits(timeout_seconds=5))


def test_a_query_that_needs_too_much_memory_is_stopped(shared: EmbeddedLog) -> None:
    limits = QueryLimits(memory_bytes=1 << 20)
    with pytest.raises(QueryTooLarge, match="more than the 1 MiB"):
        rows(shared, "SELECT * FROM big ORDER BY value DESC, offset", limits=limits)
    top = rows(shared, "SELECT offset FROM big ORDER BY ts DESC LIMIT 2", limits=limits)
    assert [row["offset"] for row in top] == [RECORDS - 1] * 2


@pytest.mark.parametrize("limits", [{"timeout_seconds": 0}, {"memory_bytes": 5}])
def test_limits_that_allow_nothing(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting):
        QueryLimits(**limits)


def test_an_error_of_the_log_comes_as_it_is(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        publish(log, "t", {"a": 1})
        result = run(log, "SELECT * FROM t")
        log.drop_topic("t")
        with pytest.raises(UnknownTopic):
            result.table()


def test_queries_side_by_side(shared: EmbeddedLog) -> None:
    counts: list[int] = []

    def count(partition: int) -> None:
        sql = f"SELECT count(*) AS n FROM big WHERE partition = {partition}"
        counts.append(rows(shared, sql)[0]["n"])

    threads = [threading.Thread(target=count, args=(number % 2,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [RECORDS] * 6


def test_without_datafusion(shared: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafusion", None)
    monkeypatch.delitem(sys.modules, "duolog.sql.select.session", raising=False)
    with pytest.raises(DataFusionNotFound, match=r"pip install 'duolog\[sql\]'"):
        run(shared, "SELECT 1")
    assert len(rows(shared, "CONSUME FROM big LIMIT 2")) == 2


class _CallsCounted(CountingLog):
    """Counts all calls by name."""

    def __init__(self, log: Any) -> None:
        super().__init__(log)
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return super().__getattr__(name)


@pytest.mark.parametrize(
    ("sql", "times_asked"),
    [
        ("SELECT count(*) FROM system.topic_offsets", 0),
        ("SELECT group_id, lag FROM system.topic_offsets", 0),
        ("SELECT sum(lag_seconds) FROM system.topic_offsets", 1),
        ("SELECT * FROM system.topic_offsets LIMIT 3", 1),
        ("SELECT * FROM system.topics", 0),
        ("SELECT * FROM system.partitions", 0),
        ("SELECT * FROM system.mirror", 0),
    ],
)
def test_what_a_system_table_asks_does_not_grow_with_groups_and_topics(
    log: EmbeddedLog, sql: str, times_asked: int
) -> None:
    for topic in ("a", "b", "c"):
        publish(log, topic, 1, 2, 3)
    for number in range(300):
        log.ack(f"g{number}", "abc"[number % 3], number % 2)
    counted = _CallsCounted(log)
    rows(counted, sql)
    assert counted.read == []  # no record is fetched
    assert counted.calls["record_times"] == times_asked
    assert max(counted.calls[each] for each in counted.calls if each != "record_times") == 1
    assert counted.calls["offsets"] == 0


def test_a_system_table_is_the_same_wherever_a_query_reads_it(log: EmbeddedLog) -> None:
    publish(log, "a", 1, 2, 3)
    log.ack("g", "a", 0)
    sql = (
        "SELECT one.position, other.lag FROM system.topic_offsets AS one "
        "JOIN system.topic_offsets AS other USING (group_id)"
    )
    assert rows(log, sql) == [{"position": 1, "lag": 2}]
    assert rows(log, "SELECT (SELECT max(lag) FROM system.topic_offsets) AS lag") == [{"lag": 2}]


def test_what_fails_while_a_system_table_is_read_is_told_by_name(log: EmbeddedLog) -> None:
    class Closed(CountingLog):
        def group_positions(self) -> Any:
            raise LogClosed("The log is closed.")

    with pytest.raises(LogClosed, match="The log is closed"):
        rows(Closed(log), "SELECT * FROM system.topic_offsets")
