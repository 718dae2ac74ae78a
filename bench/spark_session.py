"""Spark in a process of its own, and what its Kafka sink and source need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from duolog.jars import fetch_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.1"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.spark", "spark-avro_2.13", "4.1.1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


def kafka_jars() -> list[Path]:
    """Fetched once, then from Duolog's cache of jars."""
    return [jar for named in _JARS for jar in fetch_jars(*named, transitive=False)]


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A real broker whose new topics have four partitions; where it listens."""
    from duolog.bridge.kafka.local import LocalKafka

    with LocalKafka(folder / "kafka", properties={"num.partitions": str(PARTITIONS)}) as kafka:
        yield kafka.bootstrap_servers


@contextmanager
def spark_session(folder: Path, jars: Sequence[Path], *, cores: int = 2) -> Iterator[SparkSession]:
    """A session with so many cores and 1 GB for the driver; its files go into the folder.

    Rows go to Python as docs/guide/spark.md advises for large batches of short rows. Spark would
    else ask after each row how many bytes a batch has by now, for a quarter of the whole transfer.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # exactly this is no limit
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("duolog-bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.sparkContext.setLogLevel("OFF")  # tasks of a stopped stream are still ending
        session.stop()
