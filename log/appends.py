"""Epochs: many topics and partitions, of any size, in one atomic step.

Records first, heads last. The batches of all parts are written in small calls, or handed over as
files where a partition gets many; nobody sees them, since readers go by heads. One last synced
write holds all heads, times and the epoch, and with it the whole is there, or else none of it. So
memory does not grow with the epoch.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from duolog.errors import NotWritten, OutcomeUnknown, StagedForOtherTopic, UnknownTopic
from duolog.log.batch import encode, read_header
from duolog.log.batch_check import BatchLimits
from duolog.log.catalogue import Catalogue, partition_of
from duolog.log.commits import settle
from duolog.log.debris import remove_beyond
from duolog.log.dedup import LatestOfPartition, keep_news
from duolog.log.epoch_parts import EpochParts, Place, staged_records
from duolog.log.epochs import (
    StoredEpoch,
    check_at,
    check_note,
    is_repeat,
    load_epoch,
    pack_epoch,
)
from duolog.log.heads import pack_head
from duolog.log.joining import Joining
from duolog.log.keys import epoch_key, partition_key, record_key, time_key
from duolog.log.merge_plan import SMALL_BYTES
from duolog.log.model import Appended, Head, OffsetRange, Topic, TopicPartition, Writer
from duolog.log.names import check_epoch, check_writer
from duolog.log.part import Fingerprint, Part
from duolog.log.readback import read_back
from duolog.log.record_files import RecordFiles, large_shares
from duolog.log.slice_merge import EncodedSlice, SliceMerger
from duolog.log.staging import staging_folder, sweep
from duolog.log.state import State
from duolog.log.store import MAX_WRITE_BYTES, Store, WriteBatch, WriteFailed
from duolog.log.times import BatchSize, pack_batch_size
from duolog.log.timestamps import check_not_ahead, latest_allowed_ms

_TRIES = 3
_LOGGER = logging.getLogger(__name__)


class Appender:
    """Appends epochs to an opened log."""

    def __init__(self, state: State, joining: Joining) -> None:
        self._state = state
        self._joining = joining

    def append(
        self,
        writer: Writer,
        epoch: int,
        parts: Sequence[Part],
        *,
        begin_anywhere: bool,
        at_ms: int | None,
        note: str = "",
    ) -> Appended:
        """Write an epoch, or answer what it got when it was written before."""
        check_writer(writer)
        check_epoch(epoch)
        check_note(note)
        check_at(at_ms)
        for part in parts:
            part.check_claims()
        with self._state.writers.hold(frozenset({str(writer)})):
            if self._state.store.in_doubt:
                # What is read before it recovered may be in memory alone: nothing to answer from.
                self._state.ensure_writable()
            fingerprints = fingerprints_of(parts)
            last = load_epoch(self._state.store, writer)
            if last is not None and is_repeat(writer, epoch, fingerprints, last):
                sweep(self._state.folder, str(writer), epoch)
                return last.answer(repeated=True)
            if last is None:
                is_repeat(writer, epoch, fingerprints, None, begin_anywhere=begin_anywhere)
            content = EpochParts(parts, BatchLimits(self._state.options.max_record_bytes))
            stored = self._write(_Plan(writer, epoch, content, fingerprints, at_ms, note))
            sweep(self._state.folder, str(writer), epoch)
        self._joining.after_append()
        return stored.answer(repeated=False)

    def last_epoch(self, writer: Writer) -> Appended | None:
        """What the writer committed last."""
        check_writer(writer)
        with self._state.writers.hold(frozenset({str(writer)})):
            if self._state.store.in_doubt:
                self._state.ensure_writable()
            stored = load_epoch(self._state.store, writer)
        return None if stored is None else stored.answer(repeated=False)

    def _write(self, plan: _Plan) -> StoredEpoch:
        options = self._state.options
        now_ms = options.clock.now_ms()
        check_times(
            plan.content.parts, latest_allowed_ms(now_ms, options.max_timestamp_ahead_seconds)
        )
        plan.content.verify()
        self._state.options.fault("append.verified")
        for _ in range(_TRIES):
            self._state.ensure_writable()
            wheres = _targets(self._state.catalogue, plan)
            with self._state.gates.hold(frozenset(wheres)):
                _targets(self._state.catalogue, plan)  # may have changed while we waited
                attempt = _Attempt(self._state, plan, wheres)
                try:
                    return attempt.run()
                except WriteFailed as failure:
                    error = settle(self._state, failure, attempt.is_stored, attempt.show_again)
                    interruption = failure.__cause__
                    if interruption is not None and not isinstance(interruption, Exception):
                        raise interruption from None  # Ctrl-C, whatever became of the epoch
                    if error is None:
                        return attempt.stored
                    if not failure.superseded or isinstance(error, OutcomeUnknown):
                        raise error from failure
        raise NotWritten(
            f"Epoch {plan.epoch} was not written: the disk failed other writes again and again. "
            "Send it again."
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    writer: Writer
    epoch: int
    content: EpochParts
    fingerprints: dict[int, Fingerprint]
    at_ms: int | None
    note: str


@dataclass
class _Attempt:
    """One try to write a plan, with the gates of all its partitions held."""

    state: State
    plan: _Plan
    wheres: dict[TopicPartition, Topic]
    heads: dict[TopicPartition, Head] = field(default_factory=dict)
    latest: dict[TopicPartition, LatestOfPartition] = field(default_factory=dict)
    duplicates_dropped: int = 0
    _small: Counter[TopicPartition] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._incarnation = self.state.store.recoveries
        self._last = WriteBatch()
        self._files: RecordFiles | None = None
        self.stored: StoredEpoch

    def run(self) -> StoredEpoch:
        try:
            self._write()
        except WriteFailed:
            if self._files is not None:
                self.state.keep_until_recovered(self._files.paths)
            raise
        except BaseException:
            self._remove_files()
            raise
        self._remove_files()
        return self.stored

    def show_again(self) -> None:
        """Show readers what is durable, after memory was taken from the store: that is enough."""
        try:
            self.publish()
        except Exception:
            _LOGGER.exception("A durable epoch was not shown as it should; the log was loaded.")

    def _write(self) -> None:
        try:
            self._write_records()
            self.state.options.fault("append.records_written")
            self._put_heads()
        except WriteFailed:
            raise
        except BaseException:
            self._remove_records()
            raise
        self._commit()

    def _commit(self) -> None:
        """Write, sync and show it. Broken off in between, by Ctrl-C too, it is there or not, and
        memory may not say so: only the store knows.
        """
        try:
            self._write_heads()
            self.state.options.fault("append.committed")
            self.publish()
        except WriteFailed:
            raise
        except BaseException as error:
            raise self.state.store.doubt(error) from error

    def _remove_records(self) -> None:
        """No head has been written: what was, goes now, or when the store is opened anew."""
        try:
            for where in self.wheres:
                remove_beyond(self.state.store, where, self.state.heads.get(where))
        except BaseException as error:  # noqa: BLE001 - what broke off the append is told
            self.state.store.doubt(error)

    def _remove_files(self) -> None:
        if self._files is not None:
            self._files.remove()

    def is_stored(self) -> bool:
        stored = load_epoch(self.state.store, self.plan.writer)
        return stored is not None and stored.epoch == self.plan.epoch

    def publish(self) -> None:
        """Show it to readers."""
        for latest in self.latest.values():
            latest.keep()
        self.state.counters.duplicates_dropped += self.duplicates_dropped
        self.state.counters.records_appended += sum(r.count for r in self.stored.ranges)
        self.state.heads.publish(self.heads)
        for where, small_batches in self._small.items():
            self.state.merges.note(where, small_batches)

    def _write_records(self) -> None:
        store = self.state.store
        batch = WriteBatch()
        give_way = _GiveWay(store)
        for where, ready in self._batches(self._hand_over_files()):
            if batch.operations and batch.size_bytes + len(ready.encoded) > MAX_WRITE_BYTES:
                store.wait_for_room()
                store.write(batch, self._incarnation)
                batch = WriteBatch()
                give_way()
            batch.put("records", self._grow(where, ready), ready.encoded)
        store.write(batch, self._incarnation)

    def _batches(self, places: Sequence[Place]) -> Iterator[tuple[TopicPartition, EncodedSlice]]:
        """What is to be stored, small slices joined. Each is counted before the next is taken."""
        merger = SliceMerger()
        for staged, encoded in self.plan.content.read(places):
            where = TopicPartition(staged.topic_id, staged.partition)
            slice_ = EncodedSlice(staged.count, staged.max_ts_ms, encoded)
            if self._leaves_out_repeats(where):
                base_offset = self._head(where).next_offset + merger.waiting_records(where)
                news, slice_ = self._news_of(where, slice_, base_offset)
                if news.num_rows:
                    yield from merger.add(where, slice_, news)
            else:
                yield from merger.add(where, slice_)
        yield from merger.finish()

    def _hand_over_files(self) -> Sequence[Place]:
        """Let the store have large shares as files; what is left to be written."""
        places = self.plan.content.places
        shares = {
            where: share
            for where, share in large_shares(places).items()
            if not self._leaves_out_repeats(where)
        }
        if not shares:
            return places
        folder = staging_folder(self.state.folder, self.plan.writer, self.plan.epoch)
        give_way = _GiveWay(self.state.store)
        self._files = files = RecordFiles(self.state.store, folder)
        for where, share in sorted(shares.items()):
            for _, ready in self._batches(share):
                files.add(self._grow(where, ready), ready.encoded)
                give_way()
            files.end_share()
        self.state.options.fault("append.files_made")
        if files.hand_over(self._incarnation):
            return [place for place in places if place.where not in shares]
        files.remove()
        self._last = WriteBatch()  # nothing was counted before them
        for where in shares:
            del self.heads[where]
            del self._small[where]
        return places

    def _leaves_out_repeats(self, where: TopicPartition) -> bool:
        return self.wheres[where].settings.dedup_window_seconds is not None

    def _grow(self, where: TopicPartition, ready: EncodedSlice) -> bytes:
        """Count a batch to its partition; the batch's key."""
        head, size = self._head(where), len(ready.encoded)
        self._small[where] += size < SMALL_BYTES
        last_ts_ms = max(head.last_ts_ms, ready.max_ts_ms)
        self._last.put(
            "times",
            time_key(where, last_ts_ms, head.next_offset),
            pack_batch_size(BatchSize(ready.count, size)),
        )
        self.heads[where] = Head(
            head.start, head.next_offset + ready.count, head.bytes + size, last_ts_ms
        )
        return record_key(where, head.next_offset)

    def _news_of(
        self, where: TopicPartition, slice_: EncodedSlice, base_offset: int
    ) -> tuple[Any, EncodedSlice]:
        """The records without those that repeat their key's latest change, and their batch."""
        if where not in self.latest:
            self.latest[where] = self.state.latest_changes.of(
                self.wheres[where],
                where,
                self.state.heads.get(where),
                self.state.options.clock.now_ms(),
                read_back(self.state),
            )
        records = staged_records(slice_.encoded)
        news = keep_news(records, self.latest[where], base_offset)
        if news.num_rows == records.num_rows:
            return records, slice_
        self.duplicates_dropped += records.num_rows - news.num_rows
        if news.num_rows:
            encoded = encode(news)
            slice_ = EncodedSlice(news.num_rows, read_header(encoded).max_ts_ms, encoded)
        return news, slice_

    def _put_heads(self) -> None:
        plan, now_ms = self.plan, self.state.options.clock.now_ms()
        self.stored = StoredEpoch(
            plan.epoch,
            tuple(
                OffsetRange(
                    self.wheres[where].name,
                    where.partition,
                    self.state.heads.get(where).next_offset,
                    head.next_offset,
                )
                for where, head in sorted(self.heads.items())
            ),
            plan.fingerprints,
            self.duplicates_dropped,
            now_ms if plan.at_ms is None else plan.at_ms,
            plan.note,
            now_ms,
            str(plan.writer),
        )
        for where, head in self.heads.items():
            self._last.put("heads", partition_key(where), pack_head(head))
        self._last.put("epochs", epoch_key(str(plan.writer)), pack_epoch(self.stored))

    def _write_heads(self) -> None:
        self.state.store.write(self._last, self._incarnation)
        self.state.store.sync(self._incarnation)

    def _head(self, where: TopicPartition) -> Head:
        return self.heads.get(where) or self.state.heads.get(where)


class _GiveWay:
    """Lets go of Python's lock when others are at work and wait for it.

    When nobody is, that would give the processor away to other processes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hand_overs = store.hand_overs

    def __call__(self) -> None:
        if self._store.hand_overs != self._hand_overs:
            time.sleep(0)
            self._hand_overs = self._store.hand_overs


def fingerprints_of(parts: Sequence[Part]) -> dict[int, Fingerprint]:
    """What an epoch holds, by topic."""
    by_topic: dict[int, list[Fingerprint]] = {}
    for part in parts:
        for share in part.topics:
            by_topic.setdefault(share.topic_id, []).append(share.fingerprint)
    summed = {
        topic_id: reduce(Fingerprint.__add__, shares) for topic_id, shares in by_topic.items()
    }
    return {topic_id: total for topic_id, total in summed.items() if total != Fingerprint()}


def check_times(parts: Sequence[Part], latest_ms: int) -> None:
    """Refuse an epoch with a record that is further ahead than `latest_ms`."""
    latest = max((staged.max_ts_ms for part in parts for staged in part.batches), default=0)
    check_not_ahead(latest, latest_ms, "A record of an epoch")


def _targets(catalogue: Catalogue, plan: _Plan) -> dict[TopicPartition, Topic]:
    """The partitions that are written to, if they still are what tasks took them for."""
    topics: dict[int, Topic] = {}
    for part in plan.content.parts:
        for share in part.topics:
            topic = catalogue.by_id.get(share.topic_id)
            if topic is None:
                raise StagedForOtherTopic(
                    f"A part of epoch {plan.epoch} was staged for topic id {share.topic_id}, which "
                    "was dropped since. Run the write again: it will take the topics as they are."
                )
            if topic.partitions != share.partitions:
                raise StagedForOtherTopic(
                    f"A part of epoch {plan.epoch} was staged for topic '{topic.name}' with "
                    f"{share.partitions} partitions; it has {topic.partitions} now. Run the write "
                    "again."
                )
            topics[topic.id] = topic
    wheres: dict[TopicPartition, Topic] = {}
    for part in plan.content.parts:
        for staged in part.batches:
            known = topics.get(staged.topic_id)
            if known is None:
                raise UnknownTopic(
                    f"A part holds a batch for topic id {staged.topic_id}, which it does not name."
                )
            wheres[partition_of(known, staged.partition)] = known
    return wheres
