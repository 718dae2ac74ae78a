"""Option decode: values of several schemas as one column, on a real log and its registry."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText
from duolog.connector.place import LogPlace
from duolog.connector.source.choice import Place
from duolog.connector.source.decoding import ValueColumns, WrittenSchemas, settle_value_columns
from duolog.connector.source.options import SourceOptions
from duolog.connector.source.ranges import Range
from duolog.connector.source.reading import read_range
from duolog.connector.source.spark_types import as_spark, spark_type
from duolog.errors import InvalidSchema, InvalidSetting, Undecodable, UnknownSchema
from duolog.log.model import Format, Op, Record, Route, TopicSettings

FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
SECOND = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
PLACE = Place("orders", 1, 0)


def text(schema: object) -> SchemaText:
    return SchemaText(json.dumps(schema))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A topic with values of two schemas, and a null between them."""
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        first = registry_of(log).register("orders-value", text(FIRST))
        second = registry_of(log).register("orders-value", text(SECOND))
        log.publish(
            "orders",
            [
                Record(framed(first, b"\x02"), key=b"a"),
                Record(None, key=b"a"),
                Record(framed(second, b"\x04\x02\x06tea")),
                Record(framed(first, b"\x06")),
            ],
        )
    return tmp_path / "log"


def framed(schema: int, body: bytes) -> bytes:
    return b"\0" + schema.to_bytes(4, "big") + body


def settled(path: Path, **more: str) -> ValueColumns:
    given = {"path": str(path), "subscribe": "orders", "decode": "true", **more}
    return settle_value_columns(SourceOptions.of(given))


def decoded(path: Path, columns: ValueColumns, written: WrittenSchemas | None = None) -> list[Any]:
    place = LogPlace(str(path))
    with duolog.open_log(path) as log:
        end = log.offsets("orders")[0].next_offset
    # As they travel to tasks.
    columns, written = pickle.loads(pickle.dumps((columns, written or columns.written(place, {}))))
    decoder = columns.decoder(written, place)
    found = []
    for batch in read_range(place, Range(PLACE, 0, end), fail_on_data_loss=True):
        values = decoder.decode(PLACE, batch)
        values.validate(full=True)
        assert values.type == columns.arrow
        found += values.to_pylist()
    return found


def test_older_records_are_read_as_the_newest_schema_says(path: Path) -> None:
    columns = settled(path)
    assert columns.sql == "STRUCT<`id`: BIGINT, `note`: STRING>"
    assert decoded(path, columns) == [
        {"id": 1, "note": None},
        None,
        {"id": 2, "note": "tea"},
        {"id": 3, "note": None},
    ]


def test_columns_stay_when_a_newer_schema_comes(path: Path) -> None:
    columns = settled(path)
    third = {**SECOND, "fields": [*SECOND["fields"], {"name": "x", "type": "int", "default": 0}]}
    before = columns.written(LogPlace(str(path)), {})
    with duolog.open_log(path) as log:
        schema = registry_of(log).register("orders-value", text(third))
        log.publish("orders", Record(framed(schema, b"\x0a\x00\x02")))
    assert decoded(path, columns)[-1] == {"id": 5, "note": None}
    # A task that was told of none finds it in the log's own registry.
    assert decoded(path, columns, before)[-1] == {"id": 5, "note": None}


def test_schemas_may_be_named_by_guid(path: Path) -> None:
    with duolog.open_log(path) as log:
        guid = registry_of(log).find_by_id(1).content.guid
        log.publish("orders", Record(b"\x01" + guid.bytes + b"\x0e"))
    assert decoded(path, settled(path))[-1] == {"id": 7, "note": None}


def test_with_a_registry_elsewhere_tasks_ask_nobody(path: Path) -> None:
    columns = settled(path)
    with pytest.raises(UnknownSchema, match=re.escape("Schema 1 is not one of subject orders-")):
        decoded(path, columns, WrittenSchemas({}, are_all=True))


def test_a_value_that_is_not_in_the_format_is_named_with_its_place(path: Path) -> None:
    with duolog.open_log(path) as log:
        log.publish("orders", [Record(framed(1, b"\x02")), Record(b"plain")])
    told = r"The values of topic 'orders' partition 0, in the batch from offset 4: Row 1"
    with pytest.raises(Undecodable, match=told):
        decoded(path, settled(path))


def test_only_nulls_are_nulls(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        registry_of(log).register("orders-value", text(FIRST))
        log.publish("orders", [Record(None), Record(None)])
    assert decoded(tmp_path / "log", settled(tmp_path / "log")) == [None, None]


def test_values_need_not_be_records(tmp_path: Path) -> None:
    for number, (schema, body, sql, value) in enumerate(
        [("string", b"\x06tea", "STRING", "tea"), ("bytes", b"tea", "BINARY", b"tea")]
    ):
        path = tmp_path / str(number)
        with duolog.open_log(path) as log:
            log.create_topic("orders")
            log.publish(
                "orders",
                Record(framed(registry_of(log).register("orders-value", text(schema)), body)),
            )
        columns = settled(path)
        assert columns.sql == sql
        assert decoded(path, columns) == [value]


def test_what_routes_write_comes_back(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(value_format=Format.AVRO))
        log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
        rows = pa.table({"id": [1, 2], "day": pa.array([0, 1], pa.date32())})
        log.publish_rows("shop.orders", Op.INSERT, rows, ["id"])
    found = decoded(tmp_path / "log", settled(tmp_path / "log"))
    assert [(row["id"], row["day"].isoformat()) for row in found] == [
        (1, "1970-01-01"),
        (2, "1970-01-02"),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"subscribe": "plain"}, "topic 'plain' has no Avro schema (subject 'plain-value')"),
        ({"subscribe": "orders,items"}, "items-value and orders-value have different schemas"),
        ({"subscribePattern": "none.*", "subscribe": None}, "there is no topic yet"),
        ({"value.subject.name.strategy": "Record"}, "RecordNameStrategy allows several"),
    ],
)
def test_what_cannot_be_decoded_is_told_when_the_read_is_defined(
    path: Path, given: Mapping[str, str | None], told: str
) -> None:
    with duolog.open_log(path) as log:
        log.create_topic("plain")
        log.create_topic("items")
        registry_of(log).register("items-value", text(FIRST))
    asked = {"path": str(path), "subscribe": "orders", "decode": "true", **given}
    options = SourceOptions.of({name: value for name, value in asked.items() if value is not None})
    with pytest.raises(InvalidSetting, match=re.escape(told)):
        settle_value_columns(options)


def test_topics_of_one_schema_are_read_together(path: Path) -> None:
    with duolog.open_log(path) as log:
        log.create_topic("more")
        registry_of(log).register("more-value", text(SECOND))
    assert settled(path, subscribe="orders,more").subjects == ("more-value", "orders-value")


# -- types

UTC, NO_ZONE = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "sql", "arrow"),
    [
        (pa.int32(), "INT", pa.int32()),
        (pa.null(), "STRING", pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), "STRING", pa.string()),
        (pa.binary(16), "BINARY", pa.binary()),
        (pa.decimal128(9, 2), "DECIMAL(9, 2)", pa.decimal128(9, 2)),
        (pa.time32("ms"), "INT", pa.int32()),
        (pa.time64("us"), "BIGINT", pa.int64()),
        (pa.timestamp("ms", "UTC"), "TIMESTAMP", UTC),
        (pa.timestamp("ns"), "TIMESTAMP_NTZ", NO_ZONE),
        (pa.list_(pa.timestamp("ms", "UTC")), "ARRAY<TIMESTAMP>", pa.list_(UTC)),
        (pa.map_(pa.string(), pa.binary(2)), "MAP<STRING, BINARY>", None),
        (
            pa.struct([("a`b", pa.int64()), ("c", pa.struct([("d", pa.bool_())]))]),
            "STRUCT<`a``b`: BIGINT, `c`: STRUCT<`d`: BOOLEAN>>",
            None,
        ),
    ],
)
def test_types_of_arrow_as_those_of_spark(
    kind: pa.DataType, sql: str, arrow: pa.DataType | None
) -> None:
    found = spark_type(kind)
    assert found.sql == sql
    assert arrow is None or found.arrow == arrow


def test_what_spark_has_no_type_for_is_named_with_its_path() -> None:
    kind = pa.struct([("a", pa.list_(pa.struct([("b", pa.decimal256(50, 1))])))])
    with pytest.raises(InvalidSchema, match=re.escape("'value.a[].b', which is decimal256")):
        spark_type(kind)


ODD = pa.struct(
    [
        ("word", pa.dictionary(pa.int32(), pa.string())),
        ("at", pa.list_(pa.timestamp("ms", "UTC"))),
        ("by_name", pa.map_(pa.string(), pa.struct([("id", pa.binary(2))]))),
        ("time", pa.time32("ms")),
    ]
)


@given(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=20))
def test_nested_values_keep_their_places(picked: list[int]) -> None:
    known = [
        None,
        {"word": "x", "at": [1000, None], "by_name": [("k", {"id": b"12"})], "time": 5},
        {"word": None, "at": None, "by_name": None, "time": None},
        {"word": "y", "at": [], "by_name": [("k", None), ("l", {"id": None})], "time": 0},
    ]
    rows = [known[number] for number in picked]
    times = pa.struct([*list(ODD)[:3], pa.field("time", pa.int32())])
    plain = pa.array(
        rows, pa.struct([f if f.name != "word" else pa.field("word", pa.string()) for f in times])
    )
    words = plain.field(0).dictionary_encode().cast(ODD[0].type)
    children = [words, plain.field(1), plain.field(2), plain.field(3).cast(pa.time32("ms"))]
    values = pa.StructArray.from_arrays(children, fields=list(ODD), mask=plain.is_null())
    found = as_spark(values, spark_type(ODD).arrow)
    assert found.type == spark_type(ODD).arrow
    expected = plain.cast(spark_type(plain.type).arrow)
    assert found.to_pylist() == expected.to_pylist()
