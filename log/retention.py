"""Retention: whole batches go, by age and by bytes, and `start` moves before they do.

What goes is found here, in the thread of the caller and mostly from memory. Only a partition that
loses something becomes a job of the committer, and many of them share a round: so partitions that
keep what they have cost no sync, and publishes do not wait behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from duolog.errors import DuologError
from duolog.log.batch_ages import BatchAges
from duolog.log.catalogue import partitions_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import record_key
from duolog.log.mirrors import StoredMirror
from duolog.log.model import (
    Head,
    HeldBack,
    Retention,
    RetentionRun,
    Swept,
    Topic,
    TopicPartition,
)
from duolog.log.removals import Removal
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.store import Store
from duolog.log.times import timed_batches
from duolog.log.timestamps import LATEST_TIME_MS, latest_allowed_ms

_BATCHES_AT_ONCE = 4096  # of a partition; then it is looked whether the run was cancelled
_PARTITIONS_AT_ONCE = 64  # in one round


def enforce_retention(
    state: State,
    committer: Committer,
    topics: tuple[Topic, ...],
    cancelled: Callable[[], bool],
) -> RetentionRun:
    """Apply each topic's retention."""
    limited = [topic for topic in topics if topic.retention.is_limited]
    swept = {topic.name: Swept() for topic in limited}
    held: dict[str, HeldBack] = {}
    left = deque((topic, where) for topic in limited for where in partitions_of(topic))
    starts: dict[TopicPartition, int] = {}
    while left:
        if cancelled():
            return RetentionRun(swept, True, held)
        with state.one_rearranges:
            sweeps: list[_Sweep] = []
            while left and len(sweeps) < _PARTITIONS_AT_ONCE:
                topic, where = left.popleft()
                found = find_cut(state, topic, where)
                if found is not None and found.removal is not None:
                    sweeps.append(_Sweep(topic, found))
                    continue
                if found is not None and found.held_back.records:
                    held[topic.name] = held.get(topic.name, HeldBack()) + found.held_back
                if start := starts.pop(where, 0):
                    state.store.reclaim("records", record_key(where, 0), record_key(where, start))
            _run_all(committer, sweeps)
        for sweep in sweeps:
            topic, where = sweep.topic, sweep.cut.where
            left.appendleft((topic, where))  # there may be more, or it has changed meanwhile
            if sweep.is_done:
                swept[topic.name] += sweep.cut.swept
                starts[where] = sweep.cut.after.start
    return RetentionRun(swept, held_back=held)


def _run_all(committer: Committer, sweeps: list[_Sweep]) -> None:
    """Commit these and wait for all of them, also when one of them fails."""
    if sweeps:
        committer.submit(*sweeps)
    failures = []
    for sweep in sweeps:
        try:
            sweep.wait()
        except DuologError as error:
            failures.append(error)
    if failures:
        raise failures[0]


@dataclass(frozen=True, slots=True)
class Cut:
    """What a partition loses."""

    where: TopicPartition
    before: Head
    after: Head
    removal: Removal | None  # None: nothing
    held_back: HeldBack = field(default_factory=HeldBack)

    @property
    def swept(self) -> Swept:
        return Swept(self.after.start - self.before.start, self.before.bytes - self.after.bytes)


def find_cut(state: State, topic: Topic, where: TopicPartition) -> Cut | None:
    """What a partition is to lose now; None when memory is enough to say that it is nothing."""
    head, rules, now_ms = state.heads.get(where), topic.retention, state.options.clock.now_ms()
    latest_ms = latest_allowed_ms(now_ms, state.options.max_timestamp_ahead_seconds)
    if not _may_lose(state, where, head, rules, now_ms, latest_ms):
        return None
    found = cut(state.store, where, head, rules, now_ms, latest_ms=latest_ms)
    if found.removal is None:  # merging has made the oldest batch a later one
        state.oldest_batches.forget((where,))
    upto = _mirrored(topic, where, head, state.mirrors.get)
    if found.after.start <= upto:
        return found
    within = cut(state.store, where, head, rules, now_ms, upto, latest_ms)
    held_back = HeldBack(
        found.after.start - within.after.start, within.after.bytes - found.after.bytes
    )
    return Cut(where, head, within.after, within.removal, held_back)


class _Sweep(Job):
    """Raises one partition's start, unless something has changed since it was looked at."""

    def __init__(self, topic: Topic, found: Cut) -> None:
        super().__init__()
        self.topic = topic
        self.cut = found
        self.is_done = False

    def gates(self, state: State) -> frozenset[TopicPartition]:
        del state
        return frozenset({self.cut.where})

    def prepare(self, round_: Round) -> None:
        self.is_done = False
        found, where = self.cut, self.cut.where
        topic = round_.catalogue.by_id.get(self.topic.id)
        if topic is None or topic.retention != self.topic.retention or found.removal is None:
            self.topic = topic or self.topic
            return
        head = round_.head(where)
        upto = _mirrored(topic, where, head, round_.mirror)
        if head.start != found.before.start or found.after.start > upto:
            return
        after = Head(
            found.after.start,
            head.next_offset,
            head.bytes - found.swept.bytes_freed,
            head.last_ts_ms,
        )
        round_.set_head(where, after)
        round_.remove_records(found.removal)
        self.is_done = True


def _mirrored(
    topic: Topic,
    where: TopicPartition,
    head: Head,
    mirror_of: Callable[[TopicPartition], StoredMirror | None],
) -> int:
    """Before which offset nothing waits for the mirror. A topic without one waits for none."""
    if not topic.retention.waits_for_mirror:
        return head.next_offset
    mirror = mirror_of(where)
    if mirror is not None:
        return mirror.next_log_offset
    begun = any(mirror_of(other) is not None for other in partitions_of(topic))
    return head.start if begun else head.next_offset


def _may_lose(
    state: State,
    where: TopicPartition,
    head: Head,
    rules: Retention,
    now_ms: int,
    latest_ms: int,
) -> bool:
    """Whether the oldest batch may go. From memory, but for the first time that it is asked."""
    if not head.records:
        return False
    if _is_too_large(head.bytes, rules):
        return True
    oldest_ms = state.oldest_batches.running_max_ms(state.store, where, head.start)
    if oldest_ms is None or rules.seconds is None:
        return False
    return oldest_ms > latest_ms or _is_too_old(oldest_ms, rules, now_ms)


def cut(
    store: Store,
    where: TopicPartition,
    head: Head,
    rules: Retention,
    now_ms: int,
    upto: int | None = None,
    latest_ms: int = LATEST_TIME_MS,
) -> Cut:
    """What goes by these rules.

    A batch goes when all its records are too old, or while the partition is larger than allowed;
    none goes that has records at `upto` or beyond. Times beyond `latest_ms` say nothing.
    """
    oldest_ms = None if rules.seconds is None else now_ms - int(rules.seconds * 1000)
    ages = BatchAges(store, where, oldest_ms, latest_ms)
    start, size = head.start, head.bytes
    found = Cut(where, head, head, None)
    judged = 0
    for batch in timed_batches(store, where):
        if judged == _BATCHES_AT_ONCE:
            break
        beyond = batch.base_offset + batch.size.records
        if beyond <= start:  # gone already: its removal is under way
            continue
        too_old = ages.is_too_old(batch)  # None: it goes if a later one does
        judged += too_old is not None
        too_large = _is_too_large(size, rules)
        stays = too_old is False and not too_large
        if stays or batch.base_offset >= head.next_offset:
            break
        if upto is not None and beyond > upto:
            break
        start = beyond
        size -= batch.size.length
        if too_old or too_large:
            removal = Removal(where, start, batch.running_max_ms, batch.base_offset)
            after = Head(start, head.next_offset, size, head.last_ts_ms)
            found = Cut(where, head, after, removal)
    return found


def _is_too_old(running_max_ms: int, rules: Retention, now_ms: int) -> bool:
    return rules.seconds is not None and running_max_ms < now_ms - int(rules.seconds * 1000)


def _is_too_large(size: int, rules: Retention) -> bool:
    return rules.max_bytes is not None and size > rules.max_bytes
