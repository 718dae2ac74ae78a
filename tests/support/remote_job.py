"""A job on a cluster that shares no disk with the log: arguments are the host's url and a token."""

import json
import sys

from pyspark.sql import SparkSession

from duolog.connector import write_batch

url, token = sys.argv[1:]
spark = SparkSession.builder.appName("remote").getOrCreate()
at = {"url": url, "token": token}

# More than fits into a task's message, so that parts are uploaded.
long = spark.range(20_000).selectExpr(
    "CAST(id AS STRING) AS key", "sha2(CAST(id AS STRING), 512) AS value"
)
long.write.format("duolog").mode("append").options(**at, topic="orders").save()

items = spark.range(100).selectExpr("id", "CONCAT('item ', id) AS name")
for _ in range(2):
    write_batch(items, {**at, "table": "shop.items"}, keyColumns="id", txnAppId="job", txnVersion=1)

source = spark.read.format("duolog").options(**at)
orders = source.option("subscribe", "orders").load()
names = source.option("subscribe", "items").option("decode", "true").load().select("value.*")
found = {
    "orders": orders.select("key").distinct().count(),
    "names": sorted(row["name"] for row in names.collect())[:2],
    "items": names.count(),
}
sys.stdout.write(f"found {json.dumps(found)}\n")
