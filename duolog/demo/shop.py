"""A shop: a Delta table of orders that changes all the time, and a stream of its changes.

    python -m duolog.demo.shop FOLDER JARS

The stream is what a user would write: `follow_delta` with the log's path. On SIGTERM the shop
closes: what has changed is written to its end, and the table's rows are noted down.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.demo.places import TABLE, Places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_ORDERS: Final = 2_000
_NEW_ORDERS: Final = 1_000
_COLUMNS: Final = "id BIGINT, customer STRING, qty INT, status STRING"
_ROWS: Final = (
    "SELECT id, concat('customer ', id % 97) AS customer, CAST(1 + id % 9 AS INT) AS qty,"
    " 'new' AS status FROM range({first}, {end})"
)
_CONFIGURATION: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
}


def main(places: Places, jars: str) -> None:
    """Open the shop, and keep it open until SIGTERM."""
    from duolog.connector.lakes import follow_delta

    closing = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: closing.set())
    spark = _spark(places, jars)
    table = f"delta.`{places.table}`"
    spark.sql(f"CREATE TABLE {table} ({_COLUMNS}) USING delta")
    spark.sql(f"INSERT INTO {table} {_ROWS.format(first=0, end=_FIRST_ORDERS)}")
    options = {"path": str(places.log), "table": TABLE, "keyColumns": "id", "queryName": "orders"}
    changes = follow_delta(spark, str(places.table), options)
    query = (
        changes.option("checkpointLocation", str(places.checkpoint))
        .trigger(processingTime="1 second")
        .start()
    )
    with places.progress.open("w") as progress:
        for version, changed in enumerate(_statements(spark, table, closing), 1):
            progress.write(json.dumps({"version": version, "changed": changed}) + "\n")
            progress.flush()
            failure = query.exception()
            if failure is not None:
                raise failure
    query.processAllAvailable()
    query.stop()
    rows = spark.read.format("delta").load(str(places.table)).orderBy("id").collect()
    lines = "".join(json.dumps(row.asDict()) + "\n" for row in rows)
    unfinished = places.final_rows.with_suffix(".unfinished")
    unfinished.write_text(lines)
    unfinished.rename(places.final_rows)
    spark.stop()


def _statements(spark: SparkSession, table: str, closing: threading.Event) -> Iterator[int]:
    """How many rows each change of the table has changed, while the shop is open."""
    yield _FIRST_ORDERS
    for day in itertools.count():
        first = _FIRST_ORDERS + day * _NEW_ORDERS
        end = first + _NEW_ORDERS
        recent = f"id >= {first - _NEW_ORDERS // 2} AND id < {end}"
        old = f"id >= {first - _NEW_ORDERS} AND id < {first}"
        for statement in (
            f"INSERT INTO {table} {_ROWS.format(first=first, end=end)}",
            f"UPDATE {table} SET status = 'paid', qty = qty + 1 WHERE {recent} AND id % 3 > 0",  # noqa: S608
            f"DELETE FROM {table} WHERE {old} AND id % 5 = 0",  # noqa: S608 - all of it is ours
        ):
            if closing.is_set():
                return
            answer = spark.sql(statement).collect()  # Delta counts what was there before
            yield answer[0]["num_affected_rows"] if answer else _NEW_ORDERS


def _spark(places: Places, jars: str) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("SPARK_HOME", None)  # it may name another Spark than the one that was checked
    os.environ["PYTHONSAFEPATH"] = "1"  # its workers too import nothing from the folder they are in
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    own = {
        "spark.jars": jars,
        "spark.local.dir": str(places.spark / "local"),
        "spark.sql.warehouse.dir": str(places.spark / "warehouse"),
    }
    builder = SparkSession.builder.master("local[2]").appName("the shop")
    for name, value in {**_CONFIGURATION, **own}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main(Places(Path(sys.argv[1])), sys.argv[2])
