"""Phase two, on the driver: plan what tasks need, and commit what they staged.

The log is opened twice for some milliseconds, to plan and to commit, and is free in between. For
a small batch, whose rows are there already, it is opened once and given to both.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from duolog.connector.bad_rows import BadRecords
from duolog.connector.dead_letter_topic import dead_letters
from duolog.connector.feeds import feed_for
from duolog.connector.identity import batch_writer, is_anonymous, stream_writer, target_of
from duolog.connector.nullability import settled_nullability
from duolog.connector.options import SinkOptions
from duolog.connector.row_columns import row_columns
from duolog.connector.sequence import check_sequence, check_sequence_of, no_sequence_here
from duolog.connector.stage import LastEpoch, Staged, StagePlan
from duolog.connector.table_rows import TableRows
from duolog.connector.throw_away import warn_of_throw_away_disk
from duolog.connector.topic_rows import TopicRows
from duolog.connector.versions import checked_note
from duolog.errors import DuologError, UnknownRoute
from duolog.log.model import Appended, Mode, Unrouted, Writer
from duolog.log.part import Part

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.log.access import LogAccess
    from duolog.log.staging import StagingPlace

_LOG: Final = logging.getLogger("duolog.connector")
_LOCK_WAIT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A write that is ready to be run."""

    options: SinkOptions
    stage: StagePlan

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell rows apart."""
        rows = self.stage.rows
        return ("key",) if isinstance(rows, TopicRows) else rows.feed.key_columns

    @property
    def nameless(self) -> bool:
        """Whether this write could not be known again."""
        return self.stage.writer.mode is Mode.BATCH and is_anonymous(self.options)


def plan_stream(
    options: SinkOptions,
    schema: pa.Schema,
    *,
    may_shuffle: bool = False,
    log: LogAccess | None = None,
) -> Planned:
    """Plan a batch of a stream, in a log that may be open already.

    Schemas are registered here, and the topic for bad rows is made; nothing else is written.
    `may_shuffle`: the door can have Spark bring rows together.
    """
    _check_door(options, may_shuffle=may_shuffle)
    stream_writer(options, "")  # a stream without a name is refused before the log is touched
    with _this_or_opened(log, options) as here:
        writer = stream_writer(options, _target(options, here))
        return Planned(options.planned(), _stage_plan(options, schema, here, writer))


def plan_snapshot(options: SinkOptions, schema: pa.Schema, writer: Writer) -> Planned:
    """Plan the first write of a table that is followed, by a writer that is given."""
    with opened(options) as log:
        return Planned(options.planned(), _stage_plan(options, schema, log, writer))


def plan_batch(
    options: SinkOptions,
    schema: pa.Schema,
    *,
    may_shuffle: bool = False,
    log: LogAccess | None = None,
) -> tuple[Planned, int]:
    """Plan a batch write, and say its epoch; a stream's is known only with its batch."""
    _check_door(options, may_shuffle=may_shuffle)
    batch_writer(options, "")
    with _this_or_opened(log, options) as here:
        writer, epoch = batch_writer(options, _target(options, here))
        return Planned(options.planned(), _stage_plan(options, schema, here, writer)), epoch


def commit(
    planned: Planned, epoch: int, staged: Sequence[Staged], *, log: LogAccess | None = None
) -> Appended:
    """Append all that the tasks have staged, in one step; or learn that it is there already."""
    started = time.monotonic()
    stage = planned.stage
    for told in staged:
        if told.refusal is not None:
            raise told.refusal
    parts = [Part.from_message(told.part) for told in staged]
    ts_ms = staged[0].ts_ms if staged else stage.ts_ms(epoch)
    if stage.last is not None and epoch < stage.last.epoch:
        _refuse_old(planned, epoch, log)
    note = checked_note(epoch, staged, stage.last, planned.options.table)
    settled = _settled(stage, epoch, staged, ts_ms)
    told_all = [*staged, settled]
    if settled.part:
        parts.append(Part.from_message(settled.part))
    try:
        with _this_or_opened(log, planned.options) as here:
            appended = here.append(
                stage.writer,
                epoch,
                parts,
                begin_anywhere=planned.options.begin_anywhere,
                at_ms=ts_ms,
                note=note,
            )
            if planned.nameless:
                _forget(here, stage.writer)
    except BaseException:
        _remove(stage.place.at(epoch), [settled])
        raise
    _LOG.info(
        "committed writer=%s epoch=%d rows=%d records=%d unrouted=%d bad=%d repeated=%s "
        "milliseconds=%d",
        stage.writer,
        epoch,
        sum(told.rows for told in staged),
        sum(range_.count for range_ in appended.ranges),
        sum(told.unrouted for told in told_all),
        sum(told.bad for told in told_all),
        appended.repeated,
        1000 * (time.monotonic() - started),
    )
    _warn_of_bad_rows(stage, epoch, told_all)
    return appended


def _refuse_old(planned: Planned, epoch: int, log: LogAccess | None) -> None:
    """Have the log say what is wrong, before files are missed that went with later epochs."""
    writer = planned.stage.writer
    with _this_or_opened(log, planned.options) as here:
        last = here.last_epoch(writer)
        if last is not None and epoch < last.epoch:
            here.append(writer, epoch, [])  # raises EpochTooOld


def _forget(log: LogAccess, writer: Writer) -> None:
    """Nobody will ask for this writer again."""
    try:
        log.forget_writer(writer)
    except DuologError as error:  # the rows are written, and that is what counts
        _LOG.warning("not forgotten writer=%s why=%s", writer, error)


def _warn_of_bad_rows(stage: StagePlan, epoch: int, staged: Sequence[Staged]) -> None:
    bad = sum(told.bad for told in staged)
    if bad and stage.letters is not None:
        _LOG.warning(
            "%d rows could not be written and are in topic=%s writer=%s epoch=%d first: %s",
            bad,
            stage.letters.topic.name,
            stage.writer,
            epoch,
            next(told.first_bad for told in staged if told.bad),
        )


def abort(planned: Planned, epoch: int, staged: Sequence[Staged]) -> None:
    """Remove the files of a write that came to nothing.

    It may follow a commit that raised and yet succeeded, and another run of the same epoch may be
    under way. So only these tasks' own files go; what is committed lies in the log. Files of tasks
    that told nothing go with the writer's next commit, and at once when it can have none.
    """
    place = planned.stage.place.at(epoch)
    try:
        _remove(place, staged)
        if planned.nameless:
            place.remove_writer()
    except DuologError as error:  # it goes with the writer's next commit; the reason comes first
        _LOG.warning("not removed writer=%s epoch=%d why=%s", planned.stage.writer, epoch, error)


def _remove(place: StagingPlace, staged: Sequence[Staged]) -> None:
    for told in staged:
        name = Part.from_message(told.part).path if told.part else None
        if name is not None:
            place.remove(name)


def _check_door(options: SinkOptions, *, may_shuffle: bool) -> None:
    if may_shuffle:
        return
    if options.sequence_by:
        raise no_sequence_here()
    deploy_mode = None  # the data source's process has no configuration
    warn_of_throw_away_disk(options.place.path, deploy_mode)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def opened(options: SinkOptions) -> LogAccess:
    """The log, embedded or at its host."""
    return options.place.opened(lock_wait_seconds=_LOCK_WAIT_SECONDS, avro=options.registry)


def _this_or_opened(
    log: LogAccess | None, options: SinkOptions
) -> AbstractContextManager[LogAccess]:
    """The log that is open, which stays so; or one that is opened for this."""
    return opened(options) if log is None else nullcontext(log)


def _target(options: SinkOptions, log: LogAccess) -> str:
    topic = None if options.topic is None else log.topic(options.topic).name
    return target_of(topic, options.table)


def _stage_plan(
    options: SinkOptions, schema: pa.Schema, log: LogAccess, writer: Writer
) -> StagePlan:
    now_ms = _now_ms()
    rows = _rows(options, schema, log, now_ms)
    last = log.last_epoch(writer)
    known = None if last is None else LastEpoch(last.epoch, last.at_ms, last.note)
    limit = log.max_record_bytes
    letters = None
    if options.bad_records is BadRecords.DLQ:
        letters = dead_letters(options, log, writer, rows)
    return StagePlan(log.staging(writer, 0), writer, rows, now_ms, known, limit, letters)


def _rows(
    options: SinkOptions, schema: pa.Schema, log: LogAccess, now_ms: int
) -> TopicRows | TableRows:
    if options.table is None:
        topic = None if options.topic is None else log.topic(options.topic)
        if options.sequence_by:
            check_sequence(schema, ("key",), options.sequence_by)
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
    if options.sequence_by:
        check_sequence_of(feed, options.sequence_by)
    prepared = log.prepare_rows(options.table, feed.rows, feed.key_columns)
    return TableRows(feed, prepared, options.unrouted)


def _settled(stage: StagePlan, epoch: int, staged: Sequence[Staged], ts_ms: int) -> Staged:
    """What only all tasks together know, as one more part."""
    messages = [told.left_over for told in staged if told.left_over is not None]
    if not messages or not isinstance(stage.rows, TableRows):
        return Staged()
    part = stage.part(epoch)
    box = stage.box(part, epoch, turn=epoch)
    try:
        feed = stage.rows.feed.at(ts_ms)
        unrouted = stage.rows.write(
            feed.settle(messages, stage.place.at(epoch)), part, box, turn=epoch
        )
        told = Staged(part=part.finish().message(), unrouted=unrouted)
        return told if box is None else replace(told, bad=box.rows, first_bad=box.first)
    except BaseException:
        part.abort()
        raise
