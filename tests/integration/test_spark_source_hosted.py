"""Reading a log that a host owns: over its folder, and over its url."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText
from duolog.connector import run_available
from duolog.log.model import Record, TopicSettings
from tests.support.host_server import TOKEN, Host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Topic orders with the ids 0 to 9."""
    with Host(tmp_path / "log") as host:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        number = registry_of(host.log).register("orders-value", SchemaText(json.dumps(SCHEMA)))
        for id_ in range(10):
            body = b"\0" + number.to_bytes(4, "big") + bytes([2 * id_])
            host.log.publish("orders", Record(body, partition=id_ % 2))
        yield host


@pytest.fixture(params=["path", "url"])
def options(request: pytest.FixtureRequest, host: Host) -> dict[str, str]:
    common = {"subscribe": "orders", "decode": "true"}
    if request.param == "path":
        return {**common, "path": str(host.log.folder)}
    return {**common, "url": host.url, "token": TOKEN}


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("value.id").collect())


def test_a_hosted_log_is_read(spark: SparkSession, options: dict[str, str]) -> None:
    assert ids(spark.read.format("duolog").options(**options).load()) == list(range(10))


def test_a_hosted_log_is_streamed(
    spark: SparkSession, options: dict[str, str], host: Host, tmp_path: Path
) -> None:
    found: list[list[int]] = []
    more = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "6", "availableNow": "true"}
    df = spark.readStream.format("duolog").options(**options, **more, group="g").load()
    writer = df.writeStream.foreachBatch(lambda batch, _: found.append(ids(batch)))
    run_available(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    assert [len(batch) for batch in found] == [6, 4]
    assert sorted(id_ for batch in found for id_ in batch) == list(range(10))
    assert [position.position for position in host.log.group_positions("g")] == [5, 5]


def test_a_wrong_token_is_named_and_not_shown(spark: SparkSession, host: Host) -> None:
    reader = spark.read.format("duolog").options(url=host.url, subscribe="orders")
    with pytest.raises(Exception, match="HostRefused") as caught:
        reader.option("token", "not-the-one").load().count()
    assert "not-the-one" not in str(caught.value)
