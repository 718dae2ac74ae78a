"""Values in Avro, by the registry of the host or another one; what cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from duolog.client import Consumer
from duolog.errors import RegistryUnreachable, Undecodable, UnknownSchema
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from tests.integration.serve_host import ServedLog, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        yield running


@pytest.fixture
def topic(host: ServedLog, request: pytest.FixtureRequest) -> str:
    """Two rows of one schema, a delete without a value, and a row of a later schema."""
    name = str(request.node.originalname)[:200]
    table = f"shop.{name}"
    host.log.create_topic(name, TopicSettings(value_format=Format.AVRO))
    host.log.add_route(name, Route(table, frozenset({Op.INSERT})))
    price = pa.array([Decimal("1.50"), None], pa.decimal128(9, 2))
    rows = pa.table({"id": [1, 2], "item": ["tea", "jam"], "price": price})
    host.log.publish_rows(table, Op.INSERT, rows, ["id"])
    host.log.publish(name, Record(None))
    later = rows.slice(1).append_column("note", pa.array(["late"]))
    host.log.publish_rows(table, Op.INSERT, later, ["id"])
    return name


def consumer(host: ServedLog, topic: str, **options: Any) -> Consumer:
    return Consumer(topic, url=host.url, group="g", start="earliest", **options)


def test_records_are_decoded_by_the_hosts_registry(host: ServedLog, topic: str) -> None:
    with consumer(host, topic) as reading:
        tea, jam, none, late = reading.poll()
    assert tea.value["item"] == "tea"
    assert tea.value["price"] == Decimal("1.50")
    assert (jam.value["price"], none.value) == (None, None)
    assert late.value["note"] == "late"
    assert tea.payload is not None
    assert tea.payload[:1] == b"\x00"


@dataclass
class Item:
    id: int
    item: str
    price: Decimal | None
    note: str = "none"


def test_records_become_what_is_wished(host: ServedLog, topic: str) -> None:
    with consumer(host, topic, value_type=Item) as reading:
        values = [record.value for record in reading.poll()]
    assert values == [
        Item(1, "tea", Decimal("1.50")),
        Item(2, "jam", None),
        None,
        Item(2, "jam", None, "late"),
    ]


def test_a_table_has_the_fields_of_all_schemas(host: ServedLog, topic: str) -> None:
    with consumer(host, topic) as reading:
        (found,) = reading.poll_tables()
    values = found.table.column("value").to_pylist()
    assert [value and value["item"] for value in values] == ["tea", "jam", None, "jam"]
    assert [value and value["note"] for value in values] == [None, None, None, "late"]
    assert found.table.column("offset").to_pylist() == [0, 1, 2, 3]


def test_one_that_is_no_avro_does_not_hold_up_the_others(host: ServedLog, topic: str) -> None:
    host.log.publish(topic, [Record(b"{}"), Record(b"\x00\x00\x00\x03\xe8x")])
    with consumer(host, topic) as reading:
        *good, text, strange = reading.poll()
    assert [record.value and record.value["id"] for record in good] == [1, 2, None, 2]
    with pytest.raises(Undecodable, match=rf"The value of {topic}:0:4: .*"):
        print(text.value)
    with pytest.raises(UnknownSchema, match=rf"The value of {topic}:0:5: .*1000"):
        print(strange.value)


def test_a_registry_that_cannot_be_asked_costs_no_record(host: ServedLog, topic: str) -> None:
    elsewhere: Any = {
        "schema.registry.url": "http://127.0.0.1:1",
        "retries.deadline.ms": "50",
        "value_format": "avro",
    }
    with consumer(host, topic, **elsewhere) as reading:
        for _ in range(2):
            with pytest.raises(RegistryUnreachable, match=r"http://127\.0\.0\.1:1"):
                reading.poll()
        assert reading.position(topic) == 0
    named: Any = {"schema.registry.url": f"{host.url}/registry"}
    with consumer(host, topic, **named) as reading:
        assert len(reading.poll()) == 4
