"""A Delta table into a log: the table as it stands, then its changes, with no gap between.

    spark-submit --packages io.delta:delta-spark_4.1_2.13:4.1.0 \\
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \\
        --py-files dist/duolog.zip examples/delta_to_log.py FOLDER [URL]

FOLDER/items is the table, made with delta.enableChangeDataFeed=true; FOLDER/shop.log is a log with
a route for the table shop.items. Start it again whenever the table has changed, and whenever it was
killed: each change is written once.

With URL the log is written where `duolog serve` answers for it. Where that mirrors into Kafka
(--bootstrap-servers), each change comes to Kafka once, and those of a key in their order.
"""

import sys

from pyspark.sql import SparkSession

from duolog.connector.lakes import follow_delta

folder, *url = sys.argv[1:]
log = {"url": url[0]} if url else {"path": f"{folder}/shop.log"}
spark = SparkSession.builder.appName("items to log").getOrCreate()
changes = follow_delta(
    spark,
    f"{folder}/items",
    log,
    table="shop.items",
    keyColumns="id",
    queryName="items",
)
query = (
    changes.option("checkpointLocation", f"{folder}/items.checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
