"""The sink into a log that another process owns: on this machine, and behind a url."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duolog
from duolog.connector import write_batch
from duolog.connector.stage import StagePlan
from duolog.errors import HostRefused
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Envelope, Op, Route, TopicSettings
from duolog.log.staging import LocalStaging, StagingPlace
from duolog.reach.upload import UploadStaging
from tests.support.host_server import TOKEN, Host
from tests.support.spark_doors import DataSourceDoor, Door, Folder, FunctionDoor, finish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
LARGE = 6000  # rows of 100 bytes: more than travels inside a message


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A log with a host, which keeps it open."""
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        settings = TopicSettings(envelope=Envelope.DEBEZIUM, tombstones_on_delete=False)
        log.create_topic("items", settings)
        log.add_route("items", Route("shop.items", ALL))
    with Host(folder) as running:
        yield running


@pytest.fixture(params=["hosted", "remote"])
def place(request: pytest.FixtureRequest, host: Host) -> dict[str, object]:
    """The options that say where the log is."""
    if request.param == "hosted":
        return {"path": str(host.log.folder)}
    return {"url": host.url, "token": TOKEN}


@pytest.fixture(params=["data source", "on the driver", "in tasks"])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Door:
    if request.param == "data source":
        return DataSourceDoor()
    rows = 10**6 if request.param == "on the driver" else 0
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: rows)
    return FunctionDoor()


def values_in(log: EmbeddedLog, topic: str) -> list[str]:
    return [
        (record.value or b"").decode()
        for offsets in log.offsets(topic)
        for record in log.fetch(topic, offsets.partition, 0)
    ]


def staged_files(log: EmbeddedLog) -> list[Path]:
    return sorted(log.folder.glob("staging/**/*.part"))


def test_small_and_large_batches(
    spark: SparkSession, door: Door, host: Host, place: dict[str, object]
) -> None:
    for version, count in enumerate((20, LARGE)):
        df = spark.range(0, count, numPartitions=2).selectExpr(
            "CAST(id AS STRING) AS key", f"concat({version}, '-', id, repeat('x', 100)) AS value"
        )
        job = {**place, "topic": "orders", "txnAppId": "job", "txnVersion": version}
        door.batch(df, **job)
        door.batch(df.repartition(3), **job)
    assert len(set(values_in(host.log, "orders"))) == 20 + LARGE
    assert len(values_in(host.log, "orders")) == 20 + LARGE
    assert staged_files(host.log) == []


def test_a_stream_goes_on_over_a_restart_of_the_host(
    spark: SparkSession, door: Door, host: Host, place: dict[str, object], tmp_path: Path
) -> None:
    folder = Folder(spark, tmp_path / "files", "key string, value string")
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        options = {**place, "topic": "orders", "queryName": "orders"}
        finish(door.start(folder.stream(), checkpoint, **options))

    folder.add('{"key":"k","value":"a"}', '{"key":"k","value":"b"}')
    run()
    for lost in (checkpoint / "commits").glob("*0*"):
        lost.unlink()
    folder.add('{"key":"k","value":"c"}')
    host.stop()
    with Host(host.log.folder, port=host.port) as again:
        run()
        assert values_in(again.log, "orders") == ["a", "b", "c"]


def test_images_that_are_left_over_find_their_way(
    spark: SparkSession, host: Host, place: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old images in one task, new ones in another: the driver reads what they staged."""
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: 0)
    images = spark.range(0, 2 * LARGE, numPartitions=2).selectExpr(
        f"id % {LARGE} AS id",
        f"concat(id DIV {LARGE}, repeat('x', 100)) AS note",
        f"IF(id < {LARGE}, 'update_preimage', 'update_postimage') AS _change_type",
        "1L AS _commit_version",
        "TIMESTAMP '2026-01-01' AS _commit_timestamp",
    )
    write_batch(images, {**place}, table="shop.items", keyColumns="id")
    events = [json.loads(value) for value in values_in(host.log, "items")]
    assert len(events) == LARGE
    assert {event["op"] for event in events} == {"u"}
    assert {event["before"]["note"][0] + event["after"]["note"][0] for event in events} == {"01"}
    assert staged_files(host.log) == []


def test_where_parts_are_staged(
    spark: SparkSession, host: Host, place: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosted on the disk that both see; remote they are uploaded."""
    places: list[StagingPlace] = []
    original = StagePlan.stage

    def noted(plan: StagePlan, *arguments: object, **more: object) -> object:
        places.append(plan.place)
        return original(plan, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(StagePlan, "stage", noted)
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: 100)
    write_batch(spark.sql("SELECT 'a' AS value"), {**place}, topic="orders")
    (used,) = places
    assert isinstance(used, UploadStaging if "url" in place else LocalStaging)


def test_a_wrong_token_is_named_and_not_shown(spark: SparkSession, host: Host) -> None:
    df = spark.sql("SELECT 'a' AS value")
    with pytest.raises(HostRefused) as refused:
        write_batch(df, url=host.url, token="not-this-one", topic="orders")
    assert "not-this-one" not in str(refused.value)
    with pytest.raises(Exception, match="HostRefused") as refused_by_source:
        DataSourceDoor().batch(df, url=host.url, token="not-this-one", topic="orders")
    assert "not-this-one" not in str(refused_by_source.value)
    assert values_in(host.log, "orders") == []


def test_the_token_may_be_in_a_variable(
    spark: SparkSession, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOG_TOKEN", TOKEN)
    write_batch(spark.sql("SELECT 'a' AS value"), url=host.url, topic="orders")
    assert values_in(host.log, "orders") == ["a"]
