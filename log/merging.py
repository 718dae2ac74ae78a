"""Merges adjacent small batches that are stored already, in a thread of its own.

Each round of publishes and each small epoch stores a small batch. A reader pays for each of them,
so when a partition has got many, its last ones are read, joined, and put back as one batch with the
offset of the first: in one write, so that a reader finds each record in one batch at any time.
Offsets, order and contents stay as they are. Only what readers may see is merged, so it is durable.

Merging takes processor time from those who publish, so it waits until nobody has written for a
moment; where that does not come, until there are very many small batches. Then each record is
written again fewer times, too.

The size that the index of times has for a merged batch is that of its parts: what a partition holds
by its head stays the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duolog.errors import DamagedLog, DuologError, UnsupportedFormat
from duolog.log.batch import TARGET_BYTES, decode
from duolog.log.commits import Committer, Job
from duolog.log.keys import record_key, time_key
from duolog.log.merge_plan import SMALL_BYTES, plan_merges
from duolog.log.merge_queue import MANY
from duolog.log.model import TopicPartition
from duolog.log.rounds import Round
from duolog.log.slice_merge import encoded_together
from duolog.log.state import State
from duolog.log.times import BatchSize, TimedBatch, last_batches, pack_batch_size

_LOGGER: Final = logging.getLogger("duolog.log")
_BATCHES_AT_ONCE: Final = 2 * MANY  # of a partition, looked at from its end
_QUIET_SECONDS: Final = 0.1  # without a write
_MOST_PARTS: Final = 64  # of a merge, for the committer's sake; looked at in one call
_BATCHES_IN_ONE_GO: Final = 4  # to decode them takes about 0.15 ms
_BREATH_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class Merged:
    """A batch, and those whose place it takes."""

    tp: TopicPartition
    parts: tuple[TimedBatch, ...]
    encoded: bytes

    @property
    def first_offset(self) -> int:
        return self.parts[0].base_offset

    @property
    def next_offset(self) -> int:
        return self.parts[-1].base_offset + self.parts[-1].size.records


class BackgroundMerger:
    """Merges what the queue of an opened log names. The thread begins with the first of it."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer
        self._guard = threading.Lock()  # of the two below
        self._thread: threading.Thread | None = None
        self._closing = False
        self._wake = threading.Semaphore(0)
        self._hand_overs = 0
        state.merges.when_ready(self._rouse)

    def close(self) -> None:
        """Leave off, and wait for the thread."""
        with self._guard:
            self._closing = True
            thread = self._thread
        if thread is not None:
            self._wake.release()
            thread.join()

    def _rouse(self) -> None:
        with self._guard:
            if self._closing:
                return
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="duolog-merger", daemon=True
                )
                self._thread.start()
        self._wake.release()

    def _serve(self) -> None:
        queue, store = self._state.merges, self._state.store
        syncs = -1
        while not self._closing:
            if queue.is_empty:
                self._wake.acquire()
                syncs = -1
                continue
            tp = queue.take(only_many=store.syncs != syncs)
            if tp is None:
                syncs = store.syncs
                self._wake.acquire(timeout=_QUIET_SECONDS)
                continue
            self._merge_carefully(tp)
            syncs = store.syncs

    def _merge_carefully(self, tp: TopicPartition) -> None:
        try:
            self.merge(tp)
        except DuologError as error:  # a full disk, damage: records stay as they are
            _LOGGER.info("The small batches of %s are not merged for now: %s", tp, error)
        except Exception:
            _LOGGER.exception("The small batches of %s are not merged for now.", tp)

    def merge(self, tp: TopicPartition) -> int:
        """Merge the last small batches of a partition; how many there are fewer."""
        fewer = 0
        with self._state.one_rearranges:
            for merged in self.planned(tp):
                if self._closing:
                    break
                fewer += self.replace(merged)
        return fewer

    def planned(self, tp: TopicPartition) -> Iterator[Merged]:
        """What the small batches at a partition's end may become."""
        topic = self._state.catalogue.by_id.get(tp.topic_id)
        if topic is not None:
            for group in plan_merges(self._last_small(tp), topic.retention):
                yield from self._merged(tp, group)

    def replace(self, merged: Merged) -> int:
        """Put a merged batch in place of its parts, if they are still there; how many fewer."""
        job = _ReplaceBatches(merged)
        self._committer.run(job)
        return job.fewer

    def _last_small(self, tp: TopicPartition) -> list[TimedBatch]:
        """The batches at the end of a partition up to the first that is large."""
        head = self._state.heads.get(tp)
        found: list[TimedBatch] = []
        for batch in self._backwards(tp):
            if batch.base_offset + batch.size.records > head.next_offset:
                continue  # readers may not see it yet
            if batch.base_offset < head.start or batch.size.length >= SMALL_BYTES:
                break
            if found and batch.base_offset + batch.size.records != found[-1].base_offset:
                break
            found.append(batch)
        return found[::-1]

    def _backwards(self, tp: TopicPartition) -> Iterator[TimedBatch]:
        """The batches of a partition from its end on, so many at the most."""
        last: TimedBatch | None = None
        for _ in range(_BATCHES_AT_ONCE // _MOST_PARTS):
            page = last_batches(self._state.store, tp, _MOST_PARTS, last)
            if not page:
                return
            yield from page
            last = page[-1]
            self._give_way()

    def _give_way(self) -> None:
        """Let those who publish have Python's lock: they wait up to 5 ms to be given it."""
        hand_overs = self._state.store.hand_overs
        time.sleep(_BREATH_SECONDS if hand_overs != self._hand_overs else 0)
        self._hand_overs = hand_overs

    def _merged(self, tp: TopicPartition, group: Sequence[TimedBatch]) -> Iterator[Merged]:
        """The group as few batches of a good size. One that cannot be read is left as it is."""
        parts: list[TimedBatch] = []
        records: list[Any] = []
        size = 0
        for number, (part, found) in enumerate(self._read(tp, group)):
            nbytes = 0 if found is None else int(found.get_total_buffer_size())
            is_full = size + nbytes > TARGET_BYTES or len(parts) == _MOST_PARTS
            if parts and (found is None or is_full):
                yield from _joined(tp, parts, records)
                parts, records, size = [], [], 0
            if found is not None:
                parts.append(part)
                records.append(found)
                size += nbytes
            if number % _BATCHES_IN_ONE_GO == 0:
                self._give_way()
        yield from _joined(tp, parts, records)

    def _read(
        self, tp: TopicPartition, group: Sequence[TimedBatch]
    ) -> Iterator[tuple[TimedBatch, Any | None]]:
        for at in range(0, len(group), _BATCHES_IN_ONE_GO):
            some = group[at : at + _BATCHES_IN_ONE_GO]
            end = some[-1].base_offset + some[-1].size.records
            stored = self._stored(tp, some[0].base_offset, end)
            for part in some:
                encoded = stored.get(record_key(tp, part.base_offset))
                yield part, None if encoded is None else _decoded(encoded, part.size.records)

    def _stored(self, tp: TopicPartition, first: int, end: int) -> dict[bytes, bytes]:
        """What the disk gives back; beside damage, some of it is left as it is."""
        try:
            return dict(
                self._state.store.scan("records", record_key(tp, first), record_key(tp, end))
            )
        except DamagedLog:
            return {}


class _ReplaceBatches(Job):
    """Puts a merged batch in place of its parts, if they are as they were when they were read."""

    def __init__(self, merged: Merged) -> None:
        super().__init__()
        self._merged = merged
        self.fewer = 0

    def prepare(self, round_: Round) -> None:
        tp, parts = self._merged.tp, self._merged.parts
        self.fewer = 0
        if (
            tp.topic_id not in round_.catalogue.by_id
            or round_.head(tp).start > self._merged.first_offset
        ):
            return
        keys = [record_key(tp, part.base_offset) for part in parts]
        upper = record_key(tp, self._merged.next_offset)
        if round_.state.store.scan_keys("records", keys[0], upper) != keys:
            return
        for part, key in zip(parts, keys, strict=True):
            round_.batch.delete("times", time_key(tp, part.running_max_ms, part.base_offset))
            round_.batch.delete("records", key)
        size = BatchSize(
            sum(part.size.records for part in parts), sum(part.size.length for part in parts)
        )
        round_.batch.put("records", keys[0], self._merged.encoded)
        round_.batch.put(
            "times",
            time_key(tp, parts[-1].running_max_ms, parts[0].base_offset),
            pack_batch_size(size),
        )
        self.fewer = len(parts) - 1


def _joined(tp: TopicPartition, parts: list[TimedBatch], records: list[Any]) -> Iterator[Merged]:
    if len(parts) > 1:
        yield Merged(tp, tuple(parts), encoded_together(records).encoded)


def _decoded(encoded: bytes, count: int) -> Any | None:
    try:
        records = decode(encoded)
    except (DamagedLog, UnsupportedFormat):  # whoever reads it is told
        return None
    return records if records.num_rows == count else None
