"""A Delta table into a log: the table as it stands first, then its changes, with no gap between.

The version that is read as a whole is pinned and remembered in the log, as the only epoch of a
writer of its own; the stream begins behind it. So a start that was cut short at any place goes on
where it stopped, and of two that start at once the log takes one, behind which both go on.

Delta's own limits on a trigger (1000 files unless told otherwise) may cut a version in two when an
overwrite or a delete made it without files of changes: then one batch had the inserts and the next
the deletes of the same keys. So the stream takes versions whole, and its first batch all there are.
A stream that somebody makes without that is stopped when it happens (`versions.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duolog.connector.arrow_rows import arrow_schema
from duolog.connector.frames import run, write_stream
from duolog.connector.identity import stream_name, target_of
from duolog.connector.options import SinkOptions
from duolog.connector.sink import opened, plan_snapshot
from duolog.errors import EpochGap, EpochTooOld, InvalidSetting
from duolog.log.model import Mode, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SWITCH = "delta.enableChangeDataFeed"
_NO_LIMIT = 2**31 - 1
_APART = 2


def follow_delta(
    spark: SparkSession, source: str, options: Mapping[str, str] | None = None, **more: object
) -> DataStreamWriter:
    """A stream's writer that carries a Delta table's changes on; start it as from `write_stream`.

    `source` is a table's name, or the folder of one. Option `table`, the name in routes, is the
    source's unless it is given. The rows as they stand (op r) are written before this returns,
    unless they have been under this stream's name.
    """
    given: dict[str, object] = {**(options or {}), **more}
    names = {name.lower() for name in given}
    if not names.isdisjoint({"changes", "topic"}):
        raise InvalidSetting(
            "A Delta table is followed by its change data feed, for the routes of a table. Leave "
            "options 'changes' and 'topic' out."
        )
    if "table" not in names:
        given["table"] = source
    given["changes"] = "delta"
    parsed = SinkOptions.of(given)
    if not parsed.key_columns:
        raise InvalidSetting(
            f"The changes of table {source} need a key, and Delta's tables have none of their own. "
            "Set keyColumns to the columns that tell its rows apart."
        )
    first = Writer(Mode.STREAM, f"{stream_name(parsed)} first", target_of(None, parsed.table))
    table = _Table(spark, source)
    version = _written(parsed, first)
    if version is None:
        table.check_feed()
        version = _write_first(table, replace(parsed, changes="read", begin_anywhere=True), first)
    return write_stream(table.changes_after(version), given)


def _write_first(table: _Table, options: SinkOptions, writer: Writer) -> int:
    """Write the table as it stands, unless another start was quicker; the version that counts.

    Of a stream, only the epoch after the last one is taken: with every other number left out there
    never is one, so whoever comes second is refused.
    """
    version = table.latest_version()
    rows = table.at(version)
    planned = plan_snapshot(options, arrow_schema(rows.schema), writer)
    try:
        run(rows, planned, version * _APART)
    except (EpochGap, EpochTooOld):
        written = _written(options, writer)
        if written is None:
            raise
        return written
    return version


class _Table:
    """A Delta table as Spark reads it."""

    def __init__(self, spark: SparkSession, source: str) -> None:
        self._spark = spark
        self._source = source
        self._is_folder = "/" in source
        self._in_sql = f"delta.`{source}`" if self._is_folder else source

    def latest_version(self) -> int:
        (row,) = self._spark.sql(f"DESCRIBE HISTORY {self._in_sql} LIMIT 1").collect()
        return int(row["version"])

    def check_feed(self) -> None:
        """Refuse a table that keeps no changes, before anything is written."""
        (row,) = self._spark.sql(f"DESCRIBE DETAIL {self._in_sql}").collect()
        if row["properties"].get(_SWITCH, "").lower() != "true":
            raise InvalidSetting(
                f"Table {self._source} does not keep its changes. Run ALTER TABLE {self._in_sql} "
                f"SET TBLPROPERTIES ({_SWITCH} = true), and start again."
            )

    def at(self, version: int) -> DataFrame:
        return self._read(self._spark.read.format("delta").option("versionAsOf", version))

    def changes_after(self, version: int) -> DataFrame:
        # From the version itself, since Delta may refuse one that is not there yet.
        reader = self._spark.readStream.format("delta").option("readChangeFeed", "true")
        reader = reader.option("maxFilesPerTrigger", _NO_LIMIT).option("startingVersion", version)
        changes = self._read(reader)
        return changes.where(changes["_commit_version"] > version)

    def _read(self, reader: Any) -> DataFrame:
        frame: DataFrame = (
            reader.load(self._source) if self._is_folder else reader.table(self._source)
        )
        return frame


def _written(options: SinkOptions, writer: Writer) -> int | None:
    """The version whose rows have been written as they stood."""
    with opened(options) as log:
        last = log.last_epoch(writer)
    return None if last is None else last.epoch // _APART
