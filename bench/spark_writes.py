"""In the child: the same rows into a log and into Kafka, a name at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.spark_session import PARTITIONS, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STRINGS = "strings"
COLUMNS = "columns"
KEY_VALUE = [
    "concat('customer-', id % 200000) as key",
    # 100 bytes with the key's, about half of them without a pattern
    'concat(\'{"order":\', id, \',"customer":"\', hex(xxhash64(id)), \'","item":"\','
    ' hex(xxhash64(id, 7)), \'","state":"new"}\') as value',
]
_TYPED = [
    "id + 10000000 as id",
    "concat('customer-', 10000000 + id) as customer",
    "id / 8d as price",
    "timestamp_micros(1700000000000000 + id * 977) as ordered",
    "cast(id % 100000 as int) as quantity",
]
_TUNED = {
    "kafka.linger.ms": "5",
    "kafka.batch.size": "262144",
    "kafka.compression.type": "lz4",
}
_WARM_UP_TRIGGERS = 4
_TRIGGER_PATIENCE_SECONDS = 240


def spark_writes(
    pipe: Connection,
    folder: Path,
    jars: list[Path],
    bootstrap_servers: str,
    rows: int,
    small_rows: int,
    triggers: int,
) -> None:
    """For each name that is heard, say its rate in rows a second, or its trigger in milliseconds.

    The rows lie in Parquet files, which Spark reads for each of them. A stream is measured over so
    many triggers. A number is so many rows in one batch, for the memory that this process takes.
    """
    with spark_session(folder, jars) as session:
        for name, columns in ((STRINGS, KEY_VALUE), (COLUMNS, _TYPED)):
            made = session.range(0, rows, 1, PARTITIONS).selectExpr(*columns)
            made.write.parquet(str(folder / name))
        writes = _Writes(session, folder, bootstrap_servers, small_rows)
        rates, streams = writes.rates(), writes.streams()
        for write in rates.values():
            write()
        pipe.send("warm")
        try:
            while True:
                name = pipe.recv()
                if isinstance(name, int):
                    writes.one_batch(name)
                    pipe.send(None)
                elif name in streams:
                    pipe.send(writes.trigger_milliseconds(name, streams[name](), triggers))
                else:
                    began = time.perf_counter()
                    rates[name]()
                    pipe.send(rows / (time.perf_counter() - began))
        except EOFError:  # nobody asks any more
            pass


class _Writes:
    """Every way to write."""

    def __init__(self, session: SparkSession, folder: Path, kafka: str, small: int) -> None:
        self._session = session
        self._folder = folder
        self._log = str(folder / "log")
        self._kafka = kafka
        self._small = small
        self._number = 0
        self._make_log()

    def _make_log(self) -> None:
        import duolog
        from duolog.log.model import Format, Op, Route, TopicSettings

        with duolog.open_log(self._log) as log:
            for topic in ("strings", "small"):
                log.create_topic(topic, TopicSettings(partitions=PARTITIONS))
            log.create_topic(
                "orders", TopicSettings(partitions=PARTITIONS, value_format=Format.AVRO)
            )
            log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))

    def rates(self) -> Mapping[str, Callable[[], None]]:
        from pyspark.sql.avro.functions import to_avro
        from pyspark.sql.functions import struct

        from duolog.connector import write_batch

        strings = self._session.read.parquet(str(self._folder / STRINGS))
        typed = self._session.read.parquet(str(self._folder / COLUMNS))
        as_avro = typed.select(to_avro(struct("*")).alias("value"))
        to_strings = {"path": self._log, "topic": "strings"}
        to_orders = {"path": self._log, "table": "shop.orders"}
        return {
            "strings drained": lambda: _drain(strings),
            "strings function": lambda: _done(write_batch(strings, to_strings)),
            "strings data source": lambda: _data_source(strings, to_strings),
            "strings kafka": lambda: self._to_kafka(strings, "strings"),
            "columns drained": lambda: _drain(typed),
            "columns function": lambda: _done(write_batch(typed, to_orders)),
            "columns data source": lambda: _data_source(typed, to_orders),
            "columns kafka": lambda: self._to_kafka(as_avro, "orders"),
        }

    def one_batch(self, rows: int) -> None:
        """Rows that Spark makes, each of 100 bytes."""
        from duolog.connector import write_batch

        made = self._session.range(0, rows, 1, PARTITIONS).selectExpr(*KEY_VALUE)
        write_batch(made, path=self._log, topic="strings")

    def streams(self) -> Mapping[str, Callable[[], Any]]:
        from duolog.connector import write_stream

        def to_log(name: str) -> dict[str, str]:
            return {"path": self._log, "topic": "small", "queryName": name}

        return {
            "trigger noop": lambda: self._stream().writeStream.format("noop"),
            "trigger function": lambda: write_stream(self._stream(), to_log(self._name())),
            "trigger data source": lambda: (
                self._stream()
                .writeStream.format("duolog")
                .options(path=self._log, topic="small")
                .queryName(self._name())
            ),
            "trigger kafka": lambda: (
                self._stream().writeStream.format("kafka").options(**self._kafka_options("small"))
            ),
        }

    def trigger_milliseconds(self, name: str, writer: Any, count: int) -> float:
        """The median of what a trigger takes."""
        checkpoint = str(self._folder / "checkpoints" / self._name())
        query = (
            writer.option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        until = time.monotonic() + _TRIGGER_PATIENCE_SECONDS
        while len(query.recentProgress) < _WARM_UP_TRIGGERS + count:
            if query.exception() is not None or time.monotonic() > until:
                raise RuntimeError(f"{name} does not go on: {query.exception()}")
            time.sleep(0.1)
        query.stop()
        told = query.recentProgress[_WARM_UP_TRIGGERS:]
        return float(statistics.median(one["durationMs"]["triggerExecution"] for one in told))

    def _stream(self) -> DataFrame:
        source = self._session.readStream.format("rate-micro-batch")
        rows = source.option("rowsPerBatch", self._small).option("numPartitions", 2).load()
        return rows.withColumnRenamed("value", "id").selectExpr(*KEY_VALUE)

    def _name(self) -> str:
        self._number += 1
        return f"stream-{self._number}"

    def _kafka_options(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._kafka, "topic": topic, **_TUNED}

    def _to_kafka(self, rows: DataFrame, topic: str) -> None:
        rows.write.format("kafka").options(**self._kafka_options(topic)).save()


def _drain(rows: DataFrame) -> None:
    """What it takes to hand the rows to Python, which does nothing with them."""
    handed = rows.mapInArrow(lambda batches: (batch.slice(0, 0) for batch in batches), rows.schema)
    handed.write.format("noop").mode("overwrite").save()


def _data_source(rows: DataFrame, options: Mapping[str, str]) -> None:
    rows.write.format("duolog").mode("append").options(**options).save()


def _done(_: object) -> None:
    """A write that has returned is durable."""
