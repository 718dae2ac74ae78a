"""The story of each row: as Delta itself tells it, and as a Kafka consumer reads it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.support.mirror_runner import Read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Story = list[tuple[str, Row | None, Row | None]]
"""What happened to a row, in order: op, old row, new row."""

_OPS = {"insert": "c", "update_postimage": "u", "delete": "d"}


def told_by_delta(spark: SparkSession, folder: str, followed_from: int) -> dict[int, Story]:
    """The rows of one version as they stood (op r), then every later change in Delta's own feed."""
    told: dict[int, Story] = defaultdict(list)
    rows = spark.read.format("delta").option("versionAsOf", followed_from).load(folder)
    for row in rows.collect():
        told[row["id"]].append(("r", None, row.asDict()))
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    changes = feed.option("startingVersion", followed_from + 1).load(folder)
    changes = changes.where("_change_type <> 'update_preimage'").orderBy("_commit_version")
    for change in changes.collect():
        op = _OPS[change["_change_type"]]
        new = {name: value for name, value in change.asDict().items() if name[0] != "_"}
        story = told[new["id"]]
        old = None if op == "c" else story[-1][2]
        story.append((op, old, None if op == "d" else new))
    return dict(told)


def told_in_kafka(partitions: Iterable[list[Read]]) -> dict[int, Story]:
    """What records in Debezium's envelope say, in the order in which they were read."""
    told: dict[int, Story] = defaultdict(list)
    for records in partitions:
        for record in records:
            assert record.key is not None
            assert record.value is not None
            event = json.loads(record.value)
            story = told[json.loads(record.key)["id"]]
            story.append((event["op"], event["before"], event["after"]))
    return dict(told)
