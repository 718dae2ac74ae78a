"""In place of Spark's Kafka sink: only the format and its options are others.

    spark-submit --py-files dist/duolog.zip examples/orders_to_log.py FOLDER

FOLDER/orders has the orders, one JSON object a line; FOLDER/shop.log is a log with a topic orders.
Start it again whenever there are more: each order is written once.
"""

import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("orders to log").getOrCreate()
orders = spark.readStream.schema("id BIGINT, customer STRING, amount DOUBLE").json(
    f"{folder}/orders"
)
records = orders.selectExpr("customer AS key", "to_json(struct(*)) AS value")
query = (
    records.writeStream.format("duolog")
    .option("path", f"{folder}/shop.log")
    .option("topic", "orders")
    .option("checkpointLocation", f"{folder}/orders.checkpoint")
    .queryName("orders")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
