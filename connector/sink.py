"""Phase two, on the driver: plan what tasks need, and commit what they staged.

The log is opened twice for some milliseconds, to plan and to commit, and is free in between.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.connector.feeds import feed_for
from duolog.connector.identity import batch_writer, is_anonymous, stream_writer, target_of
from duolog.connector.nullability import settled_nullability
from duolog.connector.options import SinkOptions
from duolog.connector.row_columns import row_columns
from duolog.connector.stage import LastEpoch, Staged, StagePlan
from duolog.connector.staged_part import StagedPart
from duolog.connector.table_rows import TableRows, Unrouted
from duolog.connector.topic_rows import TopicRows
from duolog.errors import UnknownRoute
from duolog.log.model import Appended, Mode, Writer
from duolog.log.part import Part
from duolog.log.staging import staging_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.log import EmbeddedLog

_LOG: Final = logging.getLogger("duolog.connector")


@dataclass(frozen=True, slots=True)
class Planned:
    """A write that is ready to be run."""

    options: SinkOptions
    stage: StagePlan


def plan_stream(options: SinkOptions, schema: pa.Schema) -> Planned:
    """Plan a batch of a stream. Schemas are registered here; nothing else is written."""
    stream_writer(options, "")  # a stream without a name is refused before the log is touched
    with _opened(options) as log:
        writer = stream_writer(options, _target(options, log))
        return Planned(options.planned(), _stage_plan(options, schema, log, writer))


def plan_batch(options: SinkOptions, schema: pa.Schema) -> tuple[Planned, int]:
    """Plan a batch write, and say its epoch; a stream's is known only with its batch."""
    batch_writer(options, "")
    with _opened(options) as log:
        writer, epoch = batch_writer(options, _target(options, log))
        return Planned(options.planned(), _stage_plan(options, schema, log, writer)), epoch


def commit(planned: Planned, epoch: int, staged: Sequence[Staged]) -> Appended:
    """Append all that the tasks have staged, in one step; or learn that it is there already."""
    started = time.monotonic()
    stage = planned.stage
    for told in staged:
        if told.refusal is not None:
            raise told.refusal
    parts = [Part.from_message(told.part) for told in staged]
    ts_ms = staged[0].ts_ms if staged else stage.ts_ms(epoch)
    settled, unrouted = _settled(stage, epoch, staged, ts_ms)
    try:
        with _opened(planned.options) as log:
            appended = log.append(
                stage.writer,
                epoch,
                [*parts, *settled],
                begin_anywhere=planned.options.begin_anywhere,
                at_ms=ts_ms,
            )
    except BaseException:
        _remove(settled)
        raise
    _LOG.info(
        "committed writer=%s epoch=%d rows=%d records=%d unrouted=%d repeated=%s milliseconds=%d",
        stage.writer,
        epoch,
        sum(told.rows for told in staged),
        sum(range_.count for range_ in appended.ranges),
        sum(told.unrouted for told in staged) + unrouted,
        appended.repeated,
        1000 * (time.monotonic() - started),
    )
    return appended


def abort(planned: Planned, epoch: int, staged: Sequence[Staged]) -> None:
    """Remove the files of a write that came to nothing.

    It may follow a commit that raised and yet succeeded, and another run of the same epoch may be
    under way. So only these tasks' own files go; what is committed lies in the log. Files of tasks
    that told nothing go with the writer's next commit, and at once when it can have none.
    """
    _remove([Part.from_message(told.part) for told in staged if told.part])
    if planned.stage.writer.mode is Mode.BATCH and is_anonymous(planned.options):
        folder = staging_folder(planned.stage.folder, planned.stage.writer, epoch)
        shutil.rmtree(folder.parent, ignore_errors=True)


def _remove(parts: Sequence[Part]) -> None:
    for part in parts:
        if part.path is not None:
            Path(part.path).unlink(missing_ok=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _opened(options: SinkOptions) -> EmbeddedLog:
    from duolog.avro.embedded import open_log

    return open_log(options.path, create=False, avro=options.registry)


def _target(options: SinkOptions, log: EmbeddedLog) -> str:
    topic = None if options.topic is None else log.topic(options.topic).name
    return target_of(topic, options.table)


def _stage_plan(
    options: SinkOptions, schema: pa.Schema, log: EmbeddedLog, writer: Writer
) -> StagePlan:
    now_ms = _now_ms()
    rows = _rows(options, schema, log, now_ms)
    last = log.last_epoch(writer)
    known = None if last is None else LastEpoch(last.epoch, last.at_ms)
    return StagePlan(log.folder, writer, rows, now_ms, known)


def _rows(
    options: SinkOptions, schema: pa.Schema, log: EmbeddedLog, now_ms: int
) -> TopicRows | TableRows:
    if options.table is None:
        topic = None if options.topic is None else log.topic(options.topic)
        return TopicRows.of(schema, topic, log.topics())
    tables = log.routing_plan().tables
    if options.table not in tables and options.unrouted is not Unrouted.DROP:
        raise UnknownRoute(
            f"No topic has a route for table '{options.table}' (tables that have: "
            f"{', '.join(sorted(tables)[:5]) or 'none'}). Add a route, or mend option 'table'."
        )
    keys = options.key_columns
    inner = None if options.row_columns is None else row_columns(options.row_columns)
    feed = feed_for(
        settled_nullability(schema, keys),
        table=options.table,
        key_columns=keys,
        changes=options.changes,
        ts_ms=now_ms,
        row_schema=None if inner is None else settled_nullability(inner, keys),
    )
    prepared = log.prepare_rows(options.table, feed.rows, feed.key_columns)
    return TableRows(feed, prepared, options.unrouted)


def _settled(
    stage: StagePlan, epoch: int, staged: Sequence[Staged], ts_ms: int
) -> tuple[list[Part], int]:
    """What only all tasks together know, as one more part; and how much of it had no route."""
    messages = [told.left_over for told in staged if told.left_over is not None]
    if not messages or not isinstance(stage.rows, TableRows):
        return [], 0
    part = StagedPart(staging_folder(stage.folder, stage.writer, epoch))
    try:
        feed = stage.rows.feed.at(ts_ms)
        unrouted = stage.rows.write(feed.settle(messages), part, turn=epoch)
        return [part.finish()], unrouted
    except BaseException:
        part.abort()
        raise
