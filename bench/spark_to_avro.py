"""Spark in a process of its own, with one core: what its `to_avro` does in the same run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from bench.spark_session import spark_session
from duolog.jars import fetch_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    with spark_session(folder, [jar], cores=1) as session:
        _answer(pipe, session, columns, rows)


def _answer(
    pipe: Connection, session: SparkSession, columns: Mapping[str, Sequence[str]], rows: int
) -> None:
    from pyspark.sql.avro.functions import to_avro
    from pyspark.sql.functions import struct

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
