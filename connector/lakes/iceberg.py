"""An Iceberg table into a log: each run writes what is new since the run before, exactly once.

Iceberg has no stream of updates and deletes, but a changelog between two snapshots. How far a table
has been written is the version of a batch write in the log itself: the sequence number of the
snapshot, committed together with its changes. So there is nothing else to lose or to repeat.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duolog.connector.frames import write_batch
from duolog.connector.identity import target_of
from duolog.connector.options import SinkOptions
from duolog.connector.sink import opened
from duolog.errors import InvalidSetting
from duolog.log.model import Mode, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from duolog.log.model import Appended


def write_iceberg(
    spark: SparkSession, source: str, options: Mapping[str, str] | None = None, **more: object
) -> Appended | None:
    """Write what is new in an Iceberg table: all rows as they stand at first (op r), then changes.

    `source` is the table's name with its catalogue. Option `table`, the name in routes, is the
    source's unless it is given; so is `txnAppId`, by which the log knows how far the table was
    written. `keyColumns` are the table's identifier fields unless they are given. None is answered
    when there is nothing new.
    """
    table = _Table(spark, source)
    given: dict[str, object] = {**(options or {}), **more}
    names = {name.lower() for name in given}
    if not names.isdisjoint({"changes", "txnversion", "topic"}):
        raise InvalidSetting(
            "An Iceberg table is written by its changelog, up to its current snapshot, to the "
            "routes of a table. Leave options 'changes', 'txnVersion' and 'topic' out."
        )
    if "table" not in names:
        given["table"] = source
    if "txnappid" not in names:
        given["txnAppId"] = f"iceberg {source}"
    if "keycolumns" not in names:
        given["keyColumns"] = ",".join(table.own_key())
    parsed = SinkOptions.of(given)
    current = table.current()
    if current is None:
        return None
    last = _last_written(parsed)
    if last is None:
        return write_batch(
            table.at(current), given, changes="read", txnVersion=str(current.sequence)
        )
    if last == current.sequence:
        return None
    view = table.changelog_view(table.written_snapshot(last), current, parsed.key_columns)
    try:
        changes = table.with_times(spark.table(view))
        return write_batch(changes, given, changes="iceberg", txnVersion=str(current.sequence))
    finally:
        spark.catalog.dropTempView(view)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    id: int
    sequence: int


class _Table:
    """An Iceberg table as Spark and Iceberg's own classes read it."""

    def __init__(self, spark: SparkSession, source: str) -> None:
        self._spark = spark
        self._source = source
        session: Any = spark
        load = session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable  # noqa: SLF001
        self._table = load(session._jsparkSession, source)  # noqa: SLF001
        self._table.refresh()

    def own_key(self) -> tuple[str, ...]:
        names = tuple(sorted(self._table.schema().identifierFieldNames()))
        if not names:
            raise InvalidSetting(
                f"Table {self._source} has no identifier fields, and its events need a key. Set "
                f"keyColumns, or run ALTER TABLE {self._source} SET IDENTIFIER FIELDS …."
            )
        return names

    def current(self) -> _Snapshot | None:
        """The snapshot to write up to."""
        found = self._table.currentSnapshot()
        if found is None:
            return None
        if not found.sequenceNumber():
            raise InvalidSetting(
                f"Table {self._source} is of Iceberg's format 1, which does not number its "
                f"snapshots. Run ALTER TABLE {self._source} SET TBLPROPERTIES "
                "('format-version' = '2'), and start again after its next change."
            )
        return _Snapshot(found.snapshotId(), found.sequenceNumber())

    def written_snapshot(self, sequence: int) -> _Snapshot:
        """The one that was current when the table was last written."""
        at = self._table.currentSnapshot()
        while at is not None and at.sequenceNumber() > sequence:
            parent = at.parentId()
            at = None if parent is None else self._table.snapshot(parent)
        if at is None or at.sequenceNumber() != sequence:
            raise InvalidSetting(
                f"Table {self._source} was last written up to its snapshot with sequence number "
                f"{sequence}, which its history does not have any more: it was expired, rolled "
                "back, or the table was made anew. Its changes since then are not known. Clear the "
                "topics and write the table from its start under another txnAppId."
            )
        return _Snapshot(at.snapshotId(), sequence)

    def at(self, snapshot: _Snapshot) -> DataFrame:
        return self._spark.read.option("versionAsOf", snapshot.id).table(self._source)

    def changelog_view(
        self, after: _Snapshot, upto: _Snapshot, key_columns: tuple[str, ...]
    ) -> str:
        """A view of the changes after one snapshot up to and with another."""
        catalogue, _, table = self._source.partition(".")
        view = f"duolog_changes_{uuid.uuid4().hex}"
        keys = ", ".join(f"'{name}'" for name in key_columns)
        self._spark.sql(
            f"CALL {catalogue}.system.create_changelog_view(table => '{table}', "
            f"changelog_view => '{view}', options => map('start-snapshot-id', '{after.id}', "
            f"'end-snapshot-id', '{upto.id}'), identifier_columns => array({keys}), "
            "compute_updates => true)"
        )
        return view

    def with_times(self, changes: DataFrame) -> DataFrame:
        """The changes with the time of their snapshot, as Delta's have it."""
        snapshots = self._spark.table(f"{self._source}.snapshots").selectExpr(
            "snapshot_id AS _commit_snapshot_id", "committed_at AS _commit_timestamp"
        )
        return changes.join(snapshots.hint("broadcast"), "_commit_snapshot_id")


def _last_written(options: SinkOptions) -> int | None:
    """The sequence number up to which the table has been written."""
    writer = Writer(Mode.BATCH, options.app_id or "", target_of(None, options.table))
    with opened(options) as log:
        last = log.last_epoch(writer)
    return None if last is None else last.epoch
