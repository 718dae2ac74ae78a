"""Retention: whole batches go, by age and by bytes, and `start` moves in the same write."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from duolog.log.catalogue import partitions_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import record_key, time_key
from duolog.log.model import (
    Head,
    HeldBack,
    Retention,
    RetentionRun,
    Swept,
    Topic,
    TopicPartition,
)
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.store import Store
from duolog.log.times import timed_batches

_BATCHES_AT_ONCE = 4096  # the committer does nothing else meanwhile


def enforce_retention(
    state: State,
    committer: Committer,
    topics: tuple[Topic, ...],
    cancelled: Callable[[], bool],
) -> RetentionRun:
    """Apply each topic's retention, a partition at a time."""
    swept: dict[str, Swept] = {}
    held: dict[str, HeldBack] = {}
    for topic in topics:
        if not topic.retention.is_limited:
            continue
        swept[topic.name] = Swept()
        for where in partitions_of(topic):
            start = 0
            while True:
                if cancelled():
                    return RetentionRun(swept, True, held)
                job = _Sweep(topic, where)
                committer.run(job)
                if not job.swept.messages_deleted:
                    if job.held_back.records:
                        held[topic.name] = held.get(topic.name, HeldBack()) + job.held_back
                    break
                swept[topic.name] += job.swept
                start = job.start
            if start:
                state.store.reclaim("records", record_key(where, 0), record_key(where, start))
    return RetentionRun(swept, held_back=held)


class _Sweep(Job):
    alone = True

    def __init__(self, topic: Topic, where: TopicPartition) -> None:
        super().__init__()
        self._topic = topic
        self._where = where
        self.swept = Swept()
        self.held_back = HeldBack()
        self.start = 0

    def gates(self, state: State) -> frozenset[TopicPartition]:
        del state
        return frozenset({self._where})

    def prepare(self, round_: Round) -> None:
        topic = round_.catalogue.by_id.get(self._topic.id)
        if topic is None:  # dropped meanwhile, with all its records
            return
        head = round_.head(self._where)
        store, rules = round_.state.store, topic.retention
        kept, last_gone = cut(store, self._where, head, rules, round_.now_ms)
        wanted, upto = kept, self._mirrored(round_, topic, head)
        if kept.start > upto:
            kept, last_gone = cut(store, self._where, head, rules, round_.now_ms, upto)
            self.held_back = HeldBack(wanted.start - kept.start, kept.bytes - wanted.bytes)
        if kept.start == head.start:
            return
        self.start = kept.start
        self.swept = Swept(kept.start - head.start, head.bytes - kept.bytes)
        round_.batch.delete_range(
            "records", record_key(self._where, 0), record_key(self._where, kept.start)
        )
        round_.batch.delete_range("times", time_key(self._where, 0, 0), last_gone + b"\0")
        round_.set_head(self._where, kept)

    def _mirrored(self, round_: Round, topic: Topic, head: Head) -> int:
        """Before which offset nothing waits for the mirror. A topic without one waits for none."""
        if not topic.retention.waits_for_mirror:
            return head.next_offset
        mirror = round_.mirror(self._where)
        if mirror is not None:
            return mirror.next_log_offset
        begun = any(round_.mirror(where) is not None for where in partitions_of(topic))
        return head.start if begun else head.next_offset


def cut(
    store: Store,
    where: TopicPartition,
    head: Head,
    retention: Retention,
    now_ms: int,
    upto: int | None = None,
) -> tuple[Head, bytes]:
    """The head after retention, and the key of the last entry of times that goes.

    A batch goes when all its records are too old, or while the partition is larger than allowed;
    none goes that has records at `upto` or beyond.
    """
    oldest_ms = 0 if retention.seconds is None else now_ms - int(retention.seconds * 1000)
    start, size, last_gone = head.start, head.bytes, b""
    for batch in itertools.islice(timed_batches(store, where), _BATCHES_AT_ONCE):
        too_old = batch.running_max_ms < oldest_ms
        too_large = retention.max_bytes is not None and size > retention.max_bytes
        if not (too_old or too_large) or batch.base_offset >= head.next_offset:
            break
        if upto is not None and batch.base_offset + batch.size.records > upto:
            break
        start = batch.base_offset + batch.size.records
        size -= batch.size.length
        last_gone = time_key(where, batch.running_max_ms, batch.base_offset)
    return Head(start, head.next_offset, size, head.last_ts_ms), last_gone
