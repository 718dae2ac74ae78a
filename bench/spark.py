"""Spark in a process of its own, with one core: what its `to_avro` does in the same run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from duolog.jars import fetch_jars

WARM_UP_ROWS = 2_000_000


def spark_avro_jar() -> Path:
    """The spark-avro of the installed Spark: fetched once, then from Duolog's cache of jars."""
    import pyspark

    version = pyspark.__version__
    (jar,) = fetch_jars("org.apache.spark", "spark-avro_2.13", version, transitive=False)
    return jar


def to_avro_rates(
    pipe: Connection, folder: Path, jar: Path, columns: Mapping[str, Sequence[str]], rows: int
) -> None:
    """In the child: for each name that is heard, say how many rows a second become Avro.

    `columns` has SQL expressions over `id`, a number from 0. The rows go nowhere ("noop").
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession
    from pyspark.sql.avro.functions import to_avro
    from pyspark.sql.functions import struct

    builder = SparkSession.builder.master("local[1]").appName("duolog-bench")
    settings = {
        "spark.jars": str(jar),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    def seconds(name: str, count: int) -> float:
        frame = session.range(0, count, 1, 1).selectExpr(*columns[name])
        bodies = frame.select(to_avro(struct("*")).alias("body"))
        began = time.perf_counter()
        bodies.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    try:
        for name in columns:
            seconds(name, min(rows, WARM_UP_ROWS))
        pipe.send("warm")
        while True:
            name = pipe.recv()
            pipe.send(rows / seconds(name, rows))
    except EOFError:  # nobody asks any more
        pass
    finally:
        session.stop()
