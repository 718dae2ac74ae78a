"""A log back into Spark: a topic's records into Parquet files, and how far they were taken.

    spark-submit --py-files dist/duolog.zip examples/orders_to_parquet.py FOLDER

FOLDER/shop.log is a log with a topic orders. Start it again whenever there is more; then
`duolog group describe parquet` says how far it is.
"""

import sys

from pyspark.sql import SparkSession

from duolog.connector import run_available

folder = sys.argv[1]
spark = SparkSession.builder.appName("orders to Parquet").getOrCreate()
orders = (
    spark.readStream.format("duolog")
    .option("path", f"{folder}/shop.log")
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 100_000)
    .option("availableNow", "true")
    .option("group", "parquet")
    .load()
)
values = orders.selectExpr("CAST(value AS STRING) AS value", "partition", "offset", "timestamp")
run_available(
    values.writeStream.format("parquet")
    .option("path", f"{folder}/orders.parquet")
    .option("checkpointLocation", f"{folder}/parquet.checkpoint")
)
