"""The example of a Java consumer: rows in Avro, from Kafka, through the registry of the log."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark

import duolog
from duolog.avro.embedded import registry_of
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from duolog.bridge.kafka.local import kafka_jars
from duolog.connector import write_batch
from duolog.jars import find_java
from duolog.log.model import Format, Op, Route, TopicSettings
from duolog.reach import reach
from tests.integration.client_host import serving
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "java" / "AvroRows.java"
TABLE = "shop.orders"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("item", pa.string()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
IN_SPARK = "id BIGINT NOT NULL, item STRING, price DECIMAL(9,2), day DATE, at TIMESTAMP"
AT = dt.datetime(2026, 1, 2, 12, 0, 0, 123456, dt.UTC)


def order(number: int) -> Row:
    if number % 5 == 0:
        return {**dict.fromkeys(COLUMNS.names), "id": number}
    day, at = dt.date(1969, 12, 30) + dt.timedelta(number), AT + dt.timedelta(hours=number)
    price = Decimal(number - 50) / 4
    return {"id": number, "item": f'té "{number}"', "price": price, "day": day, "at": at}


def test_java_reads_every_row_and_goes_on_when_the_schema_changes(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, group = kafka.new_group().replace("group", "orders"), kafka.new_group()
    path = tmp_path / "log"
    with duolog.open_log(path) as made:
        avro = TopicSettings(partitions=2, key_format=Format.AVRO, value_format=Format.AVRO)
        made.create_topic(topic, avro)
        made.add_route(topic, Route(TABLE, frozenset({Op.INSERT})))
    token = add_token(tmp_path / "tokens", Caller("java", Role.SERVICE, None))
    serve = ("--bootstrap-servers", kafka.bootstrap_servers, "--tokens", "tokens")
    said = tmp_path / "rows"

    def read() -> list[Row]:
        *lines, _ = said.read_bytes().split(b"\n")
        return [json.loads(line, parse_float=Decimal) for line in lines]

    first = [order(number) for number in range(60)]
    more = [{**order(number), "note": None if number % 2 else "new"} for number in range(60, 100)]
    with (
        serving(tmp_path, *serve) as url,
        reach(path) as log,
        avro_rows(said, token, kafka.bootstrap_servers, f"{url}/registry", topic, group) as java,
    ):

        def wait_for(done: Callable[[], bool]) -> None:
            until(lambda: done() or java.poll() is not None)

        log.publish_rows(TABLE, Op.INSERT, pa.Table.from_pylist(first, COLUMNS), ["id"])
        wait_for(lambda: len(read()) >= 60)
        wider = spark.createDataFrame(
            [tuple(row.values()) for row in more], f"{IN_SPARK}, note STRING"
        )
        write_batch(wider, path=str(path), table=TABLE, keyColumns="id")
        wait_for(lambda: len(read()) >= 100)
        wait_for(lambda: sum(at.position for at in log.group_positions(group, topic)) == 100)
        heads = {head.partition: head.next_offset for head in log.offsets(topic)}
    found = read()
    assert {each["key"]["id"]: each["value"] for each in found} == {
        row["id"]: shown(row) for row in (*first, *more)
    }
    for partition, head in heads.items():
        offsets = [each["offset"] for each in found if each["partition"] == partition]
        assert offsets == list(range(head))
    with duolog.open_log(path) as ended:
        assert registry_of(ended).latest(f"{topic}-value").version == 2


def shown(row: Row) -> Row:
    """A row as JSON has it."""
    texts = {
        name: value.isoformat().replace("+00:00", "Z") if isinstance(value, dt.date) else value
        for name, value in row.items()
    }
    return {"_table": TABLE, **texts}


@contextmanager
def avro_rows(said: Path, token: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The example, run as its first lines say, and ended as by Ctrl-C."""
    (avro,) = (Path(pyspark.__file__).parent / "jars").glob("avro-[0-9]*.jar")
    jars = f"{kafka_jars()[0].parent / '*'}:{avro}"
    with said.open("wb") as rows, said.with_suffix(".log").open("wb") as log:
        java = subprocess.Popen(
            [find_java(), "-Xmx256m", "-cp", jars, str(EXAMPLE), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=rows,
            stderr=log,
            env={**os.environ, "DUOLOG_TOKEN": token},
        )
    try:
        yield java
        assert java.poll() is None, said.with_suffix(".log").read_text()
    finally:
        java.terminate()
        java.wait(DEADLINE_SECONDS)
