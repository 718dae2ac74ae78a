"""Rows of a table in topics in Avro: through routes, a real log and a registry, and back."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.parse import parse_schema
from duolog.avro.registry.app import registry_app
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.service import RegistryService
from duolog.avro.text import schema_text
from duolog.errors import IncompatibleSchema, InvalidRows, RegistryUnreachable, UnknownSchema
from duolog.log import EmbeddedLog
from duolog.log.model import Envelope, Format, Op, PayloadMode, Route, TopicSettings
from tests.support.registry_server import serving

AVRO: dict[str, Any] = {"key_format": Format.AVRO, "value_format": Format.AVRO}
ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("item", pa.string()),
        pa.field("price", pa.decimal128(9, 2)),
    ]
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as opened:
        yield opened


def table(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": id_, "item": item} for id_, item in rows], COLUMNS)


def read(log: EmbeddedLog, topic: str, column: str = "value") -> list[Any]:
    """What fastavro makes of a topic's records, with the log's own registry."""
    registry = registry_of(log)
    found: list[Any] = []
    for record in log.fetch(topic, 0, 0):
        content = getattr(record, column)
        if content is None:
            found.append(None)
            continue
        assert content[0] == 0
        text = registry.schema_by_id(int.from_bytes(content[1:5], "big")).text
        schema = fastavro.parse_schema(json.loads(text))
        found.append(fastavro.schemaless_reader(io.BytesIO(content[5:]), schema, None))
    return found


def test_a_flat_value_is_the_row_with_its_table(log: EmbeddedLog) -> None:
    log.create_topic("orders", TopicSettings(**AVRO))
    log.add_route("orders", Route("shop.orders", ALL))
    log.publish_rows("shop.orders", Op.INSERT, table((1, "tea"), (2, None)), ["id"])
    assert read(log, "orders") == [
        {"_table": "shop.orders", "id": 1, "item": "tea", "price": None},
        {"_table": "shop.orders", "id": 2, "item": None, "price": None},
    ]
    assert read(log, "orders", "key") == [{"id": 1}, {"id": 2}]
    assert registry_of(log).latest("orders-value").version == 1
    assert registry_of(log).latest("orders-key").version == 1


def test_debeziums_envelope_is_in_avro_too_and_a_delete_has_its_tombstone(log: EmbeddedLog) -> None:
    log.create_topic("orders", TopicSettings(envelope=Envelope.DEBEZIUM, **AVRO))
    log.add_route("orders", Route("shop.orders", ALL))
    log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"], ts_ms=5)
    log.publish_rows("shop.orders", Op.DELETE, table((1, "tea")), ["id"], ts_ms=6)
    row = {"id": 1, "item": "tea", "price": None}
    source = {"connector": "duolog", "table": "shop.orders"}
    assert read(log, "orders") == [
        {"before": None, "after": row, "source": source, "op": "c", "ts_ms": 5},
        {"before": row, "after": None, "source": source, "op": "d", "ts_ms": 6},
        None,
    ]


@pytest.mark.parametrize("envelope", Envelope)
def test_a_diff_says_what_its_images_hold(log: EmbeddedLog, envelope: Envelope) -> None:
    log.create_topic("orders", TopicSettings(envelope=envelope, **AVRO))
    log.add_route("orders", Route("shop.orders", ALL, payload=PayloadMode.DIFF))
    log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
    (value,) = read(log, "orders")
    assert value["before"] is None
    assert value["after"] == {"id": 1, "item": "tea", "price": None}
    assert value["_changed"] == ["id", "item", "price"]


def test_a_schema_that_breaks_readers_is_refused_before_anything_is_written(
    log: EmbeddedLog,
) -> None:
    log.create_topic("orders", TopicSettings(**AVRO))
    log.create_topic("copy")
    for topic in ("orders", "copy"):
        log.add_route(topic, Route("shop.orders", frozenset({Op.INSERT, Op.UPDATE})))
    log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
    wider = COLUMNS.append(pa.field("currency", pa.string(), nullable=False))
    rows = pa.Table.from_pylist([{"id": 2, "currency": "EUR"}], wider)
    with pytest.raises(IncompatibleSchema, match=r"currency(.|\n)*1(.|\n)*2"):
        log.publish_rows("shop.orders", Op.INSERT, rows, ["id"])
    assert [log.offsets(topic)[0].next_offset for topic in ("orders", "copy")] == [1, 1]
    nullable = COLUMNS.append(pa.field("currency", pa.string()))
    rows = pa.Table.from_pylist([{"id": 2, "currency": "EUR"}], nullable)
    log.publish_rows("shop.orders", Op.INSERT, rows, ["id"])
    assert read(log, "orders")[-1]["currency"] == "EUR"


def test_two_tables_in_one_topic_want_subjects_of_their_own(tmp_path: Path) -> None:
    options = {
        "value.subject.name.strategy": "TopicRecordNameStrategy",
        "key.subject.name.strategy": (
            "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
        ),
    }
    with duolog.open_log(tmp_path / "log", avro=options) as log:
        log.create_topic("all", TopicSettings(**AVRO))
        for name in ("shop.orders", "shop.people"):
            log.add_route("all", Route(name, ALL))
        log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
        log.publish_rows("shop.people", Op.INSERT, [{"name": "a", "age": 3}], ["name"])
        assert [value["_table"] for value in read(log, "all")] == ["shop.orders", "shop.people"]
        assert registry_of(log).latest("all-shop.people").version == 1
        assert registry_of(log).latest("all-shop.people.Key").version == 1


def test_partition_columns_place_rows_whatever_the_schemas_id_is(log: EmbeddedLog) -> None:
    log.create_topic("orders", TopicSettings(partitions=4, **AVRO))
    log.add_route("orders", Route("shop.orders", ALL, partition_by=("item",)))
    for number in range(8):
        log.publish_rows("shop.orders", Op.INSERT, table((number, "tea")), ["id"])
    counts = sorted(offsets.next_offset for offsets in log.offsets("orders"))
    assert counts == [0, 0, 0, 8]


def test_nan_is_no_key(log: EmbeddedLog) -> None:
    log.create_topic("points", TopicSettings(**AVRO))
    log.add_route("points", Route("points", ALL))
    with pytest.raises(InvalidRows, match="'x' holds NaN"):
        log.publish_rows("points", Op.INSERT, [{"x": float("nan"), "y": 1}], ["x"])
    assert log.offsets("points")[0].next_offset == 0


def test_another_registry_may_give_the_ids(tmp_path: Path) -> None:
    service = RegistryService(MemoryDocuments())
    with (
        serving(registry_app(service)) as url,
        duolog.open_log(tmp_path / "log", avro={"schema.registry.url": url}) as log,
    ):
        log.create_topic("orders", TopicSettings(**AVRO))
        log.add_route("orders", Route("shop.orders", ALL))
        log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
        assert log.schema_documents.load() == {}
    written = parse_schema(service.latest("orders-value").schema.text)
    assert '"name":"orders","namespace":"shop"' in schema_text(written)


def test_the_latest_schema_may_be_wider_than_the_rows(log: EmbeddedLog, tmp_path: Path) -> None:
    log.create_topic("orders", TopicSettings(value_format=Format.AVRO))
    log.add_route("orders", Route("shop.orders", ALL))
    wider = COLUMNS.append(pa.field("note", pa.string()))
    log.publish_rows("shop.orders", Op.INSERT, pa.Table.from_pylist([{"id": 1}], wider), ["id"])
    log.close()
    options = {"use.latest.version": "true", "auto.register.schemas": "false"}
    with duolog.open_log(tmp_path / "log", avro=options) as again:
        again.publish_rows("shop.orders", Op.INSERT, table((2, "tea")), ["id"])
        last = read(again, "orders")[-1]
        assert last == {
            "_table": "shop.orders",
            "id": 2,
            "item": "tea",
            "price": None,
            "note": None,
        }
        assert registry_of(again).latest("orders-value").version == 1


def test_without_registering_an_unknown_schema_is_refused_with_its_text(tmp_path: Path) -> None:
    options = {"auto.register.schemas": "false"}
    with duolog.open_log(tmp_path / "log", avro=options) as log:
        log.create_topic("orders", TopicSettings(**AVRO))
        log.add_route("orders", Route("shop.orders", ALL))
        with pytest.raises(UnknownSchema, match=r"auto\.register\.schemas"):
            log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
        assert log.offsets("orders")[0].next_offset == 0


def test_a_registry_that_is_not_there_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    options = {"schema.registry.url": "http://127.0.0.1:9", "max.retries": "0"}
    with duolog.open_log(tmp_path / "log", avro=options) as log:
        log.create_topic("orders", TopicSettings(**AVRO))
        log.add_route("orders", Route("shop.orders", ALL))
        with pytest.raises(RegistryUnreachable, match=r"127\.0\.0\.1:9"):
            log.publish_rows("shop.orders", Op.INSERT, table((1, "tea")), ["id"])
        assert log.offsets("orders")[0].next_offset == 0
