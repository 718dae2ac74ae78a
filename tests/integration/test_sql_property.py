"""SELECT over a topic answers what DataFusion answers over the same rows in memory."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import duolog
from duolog.errors import InvalidSql, QueryFailed
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Op, Record, TopicSettings
from duolog.sql import QueryLimits, run

numbers = itertools.count()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path_factory.mktemp("property") / "log") as log:
        yield log


Row = dict[str, Any]
rows_of_topics = st.lists(
    st.fixed_dictionaries(
        {
            "partition": st.integers(0, 2),
            "ts": st.integers(0, 9),
            "op": st.sampled_from(Op),
            "key": st.sampled_from([None, "a", "b"]),
            "qty": st.sampled_from([None, 0.0, -0.0, 1.5, 3.0, 1e300]),
            "n": st.none() | st.integers(-2, 2) | st.just(2**62),
            "name": st.sampled_from([None, "", "x", "y'z", "ß"]),
            "tags": st.none() | st.lists(st.sampled_from("pq"), max_size=2),
        }
    ),
    max_size=25,
)

ops = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
small = st.integers(-1, 10)
moments = small.map(lambda ms: f"to_timestamp_millis({ms})")
halves = st.sampled_from(["0", "-0.0", "1.5", "2", "NULL"])
texts = st.sampled_from(["'x'", "'y''z'", "''", "NULL"])
comparisons = st.one_of(
    st.builds("offset {} {}".format, ops, small),
    st.builds("{1} {0} offset".format, ops, small),
    st.builds("partition {} {}".format, ops, st.integers(-1, 3)),
    st.builds("ts {} {}".format, ops, moments),
    st.builds("qty {} {}".format, ops, halves),
    st.builds("n {} {}".format, ops, halves),
    st.builds("name {} {}".format, ops, texts),
    st.builds("offset IN ({}, {}, {}, {}, {})".format, *[small] * 5),
    st.builds("offset NOT IN ({}, {}, {}, {}, {})".format, *[small] * 5),
    st.builds("n NOT IN ({}, {}, {}, {}, {})".format, *[halves] * 5),
    st.builds("offset BETWEEN {} AND {}".format, small, small),
    st.builds("{} IS {}NULL".format, st.sampled_from(["qty", "name", "offset", "op"]),
              st.sampled_from(["", "NOT "])),
    st.just("op IN ('insert', 'delete')"),
    st.just("offset = (SELECT max(offset) FROM {t})"),
    st.just("offset IN (SELECT n FROM {t} WHERE offset > 2)"),
    st.just("offset + partition > 3"),
)  # fmt: skip
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)
shapes = st.sampled_from(
    [
        "SELECT * FROM {t} WHERE {c}",
        "SELECT partition, offset FROM {t} WHERE {c} ORDER BY ts DESC, partition, offset LIMIT 4",
        "SELECT count(*) AS c FROM {t} WHERE {c}",
        "SELECT op, count(*) AS c, sum(n % 7) AS s, max(qty) AS m FROM {t} WHERE {c} GROUP BY op",
        "SELECT a.offset, b.name FROM {t} a JOIN {t} b ON a.offset = b.n WHERE a.qty > 0",
        "SELECT a.offset FROM {t} a LEFT JOIN {t} b ON a.offset = b.offset + 1 AND b.offset > 3 "
        "WHERE a.partition <> 1",
        "WITH x AS (SELECT * FROM {t} WHERE {c}) SELECT x.offset FROM x, {t} y "
        "WHERE x.offset = y.offset AND y.partition = 0",
        "SELECT partition, offset FROM {t} WHERE {c} UNION ALL SELECT partition, offset FROM {t} "
        "WHERE offset < 2",
        "SELECT * FROM (SELECT partition, offset, qty FROM {t} OFFSET 3) WHERE offset > 2",
        "SELECT * FROM (SELECT partition, offset, qty FROM {t} LIMIT 7) WHERE offset > 2",
    ]
)


def in_log(log: EmbeddedLog, rows: list[Row]) -> str:
    topic = f"t{next(numbers)}"
    log.create_topic(topic, TopicSettings(partitions=3))
    if rows:
        fields = ("qty", "n", "name", "tags")
        log.publish(
            topic,
            [
                Record(
                    json.dumps({name: row[name] for name in fields}).encode(),
                    None if row["key"] is None else row["key"].encode(),
                    partition=row["partition"],
                    ts_ms=row["ts"],
                    op=row["op"],
                )
                for row in rows
            ],
        )
    return topic


def in_memory(rows: list[Row], schema: pa.Schema, topic_id: int) -> SessionContext:
    """The same rows, made without anything of ours."""
    offsets = {partition: itertools.count() for partition in range(3)}
    placed = [
        {**row, "op": row["op"].word, "offset": next(offsets[row["partition"]])} for row in rows
    ]
    placed.sort(key=lambda row: (row["partition"], row["offset"]))
    for row in placed:
        fields = ("qty", "n", "name", "tags")
        row["value"] = json.dumps({name: row[name] for name in fields})
        row["topic_id"] = topic_id
    context = SessionContext(SessionConfig().with_target_partitions(1))
    table = pa.Table.from_pylist(placed, schema=schema)
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
    context.register_record_batches("t", [batches])
    return context


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows_of_topics, shapes, conditions)
def test_answers_are_those_of_datafusion(
    log: EmbeddedLog, rows: list[Row], shape: str, condition: str
) -> None:
    topic = in_log(log, rows)
    try:
        schema = run(log, f"SELECT * FROM {topic}").schema
        if not {"qty", "n", "name"} <= set(schema.names):  # there is no value to know them from
            return
        sql = shape.replace("{c}", condition)
        note(sql)
        context = in_memory(rows, schema, log.topic(topic).id)
        try:
            quoted = re.sub(r"\boffset\b", '"offset"', sql.replace("{t}", "t"))
            found = context.sql(quoted).collect()
            answer: Any = [row for batch in found for row in batch.to_pylist()]
        except Exception as error:
            note(f"DataFusion: {error}")
            answer = None
        ours: Any
        try:
            limits = QueryLimits(timeout_seconds=60)
            ours = run(log, sql.replace("{t}", topic), limits=limits).table().to_pylist()
        except (InvalidSql, QueryFailed) as error:
            note(f"ours: {error}")
            ours = None
        assert as_bag(ours) == as_bag(answer)
    finally:
        log.drop_topic(topic)


def as_bag(rows: list[Row] | None) -> list[str] | None:
    return None if rows is None else sorted(repr(list(row.values())) for row in rows)
