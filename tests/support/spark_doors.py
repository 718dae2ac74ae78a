"""The ways in which Spark writes into a log; the contract suite runs on each of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import duolog
from duolog.connector import write_batch, write_stream
from duolog.log.fetched import ReadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_SECONDS = 120


class Door(Protocol):
    """One way to write."""

    def batch(self, df: DataFrame, **options: object) -> None: ...

    def start(self, df: DataFrame, checkpoint: Path, **options: object) -> StreamingQuery:
        """A query that takes what is there, a file at a time, and ends."""


class DataSourceDoor:
    """`format("duolog")`."""

    def batch(self, df: DataFrame, **options: object) -> None:
        df.write.format("duolog").mode("append").options(**_texts(options)).save()

    def start(self, df: DataFrame, checkpoint: Path, **options: object) -> StreamingQuery:
        writer = df.writeStream.format("duolog").option("checkpointLocation", str(checkpoint))
        if "queryName" in options:
            writer = writer.queryName(str(options.pop("queryName")))
        return writer.options(**_texts(options)).trigger(availableNow=True).start()


class FunctionDoor:
    """`write_batch` and `write_stream`."""

    def batch(self, df: DataFrame, **options: object) -> None:
        write_batch(df, options)

    def start(self, df: DataFrame, checkpoint: Path, **options: object) -> StreamingQuery:
        writer = write_stream(df, options).option("checkpointLocation", str(checkpoint))
        return writer.trigger(availableNow=True).start()


def finish(query: StreamingQuery) -> None:
    """Wait until a query is through; what failed in it is raised."""
    assert query.awaitTermination(PATIENCE_SECONDS), "the query did not end"


class Folder:
    """Files that a stream reads, one a batch."""

    def __init__(self, spark: SparkSession, path: Path, schema: str) -> None:
        self._spark, self._path, self._schema = spark, path, schema
        self._files = 0
        path.mkdir()

    def add(self, *lines: str) -> None:
        """One more file."""
        file = self._path / f"{self._files:04}.json"
        file.write_text("".join(f"{line}\n" for line in lines))
        os.utime(file, (1_700_000_000 + self._files,) * 2)  # files are taken in this order
        self._files += 1

    def replace(self, number: int, *lines: str) -> None:
        """Change a file that was read already, as nobody should."""
        (self._path / f"{number:04}.json").write_text("".join(f"{line}\n" for line in lines))

    def stream(self) -> DataFrame:
        reader = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self._path))


def records_in(path: str, topic: str) -> list[tuple[int, ReadRecord]]:
    """All records of a topic with their partitions, in the order of each partition."""
    found: list[tuple[int, ReadRecord]] = []
    with duolog.open_log(path, create=False) as log:
        for offsets in log.offsets(topic):
            position = offsets.start
            while position < offsets.next_offset:
                fetched = log.fetch(topic, offsets.partition, position)
                found.extend((offsets.partition, record) for record in fetched)
                position = fetched.next_offset
    return found


def values_in(path: str, topic: str) -> list[str | None]:
    """The values of all records, sorted."""
    values = [record.value for _, record in records_in(path, topic)]
    return sorted((None if value is None else value.decode() for value in values), key=str)


def _texts(options: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: ",".join(value) if isinstance(value, list | tuple) else value
        for name, value in options.items()
    }
