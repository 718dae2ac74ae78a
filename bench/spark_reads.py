"""In the child: the same records out of a log and out of Kafka, a name at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from bench.spark_session import PARTITIONS, spark_session
from bench.spark_writes import KEY_VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOPIC = "orders"


def spark_reads(
    pipe: Connection, folder: Path, jars: list[Path], bootstrap_servers: str, rows: int
) -> None:
    """For each name that is heard, say its rate in rows a second."""
    with spark_session(folder, jars) as session:
        reads = _loaded(session, folder, bootstrap_servers, rows)
        for read in reads.values():
            _drain(read())
        pipe.send("warm")
        try:
            while True:
                name = pipe.recv()
                began = time.perf_counter()
                _drain(reads[name]())
                pipe.send(rows / (time.perf_counter() - began))
        except EOFError:  # nobody asks any more
            pass


def _loaded(
    session: SparkSession, folder: Path, bootstrap_servers: str, rows: int
) -> Mapping[str, Callable[[], DataFrame]]:
    """Write the records into both, and say how to read them."""
    import duolog
    from duolog.connector import write_batch
    from duolog.log.model import TopicSettings

    path = str(folder / "log")
    with duolog.open_log(path) as log:
        log.create_topic(_TOPIC, TopicSettings(partitions=PARTITIONS))
    made = session.range(0, rows, 1, PARTITIONS).selectExpr(*KEY_VALUE)
    write_batch(made, path=path, topic=_TOPIC)
    to_kafka = {"kafka.bootstrap.servers": bootstrap_servers, "kafka.compression.type": "lz4"}
    made.write.format("kafka").options(**to_kafka).option("topic", _TOPIC).save()

    def reader(name: str, place: str, where: str) -> Callable[[], DataFrame]:
        return lambda: (
            session.read.format(name).option(place, where).option("subscribe", _TOPIC).load()
        )

    return {
        "duolog": reader("duolog", "path", path),
        "kafka": reader("kafka", "kafka.bootstrap.servers", bootstrap_servers),
    }


def _drain(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()
