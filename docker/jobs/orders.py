"""An endless stream of orders into a log behind a url, exactly once.

DUOLOG_URL           where the host is
DUOLOG_TOKEN_PATH    a file that holds the token; waited for, since the host makes it
CHECKPOINTS          a folder that outlives this container
ORDERS_PER_SECOND    how many
STOP_AFTER_ORDERS    end when so many are written; without it, never
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

WAIT_SECONDS = 60


def token_in(path: Path) -> str:
    """The token, as soon as the host has written it."""
    until = time.monotonic() + WAIT_SECONDS
    while not path.exists():
        if time.monotonic() > until:
            sys.exit(f"There is no token in {path} after {WAIT_SECONDS} s: does the host run?")
        time.sleep(0.2)
    return path.read_text(encoding="ascii").strip()


def stream(per_second: int) -> StreamingQuery:
    spark = (
        SparkSession.builder.appName("orders")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    numbers = spark.readStream.format("rate").option("rowsPerSecond", per_second).load()
    orders = numbers.selectExpr(
        "value AS id", "concat('c', value % 100) AS customer", "value % 997 / 10 AS amount"
    )
    return (
        orders.selectExpr("customer AS key", "to_json(struct(*)) AS value")
        .writeStream.format("duolog")
        .option("url", os.environ["DUOLOG_URL"])
        .option("token", token_in(Path(os.environ["DUOLOG_TOKEN_PATH"])))
        # The network of the containers is their own; beyond one machine the host takes TLS.
        .option("allowPlainHttp", "true")
        .option("topic", os.environ["TOPIC"])
        .option("checkpointLocation", os.environ["CHECKPOINTS"])
        .queryName("orders")
        .trigger(processingTime="1 second")
        .start()
    )


def main() -> None:
    query = stream(int(os.environ.get("ORDERS_PER_SECOND", "100")))
    enough = int(os.environ.get("STOP_AFTER_ORDERS", "0"))
    written = 0
    seen = -1
    while query.isActive and not (enough and written >= enough):
        query.awaitTermination(1)
        for progress in query.recentProgress:
            if progress.batchId > seen:
                seen = progress.batchId
                written += progress.numInputRows
                print(f"{written:,} orders written", flush=True)  # noqa: T201 - what the job says
    if query.exception() is not None:
        raise query.exception()  # type: ignore[misc] - not None
    query.stop()


if __name__ == "__main__":
    main()
