"""Forgets what is remembered of publishers and batch writers that have not written for long.

What is remembered makes a repeat harmless, so it stays for as long as a writer is alive: for
`writer_expiration_seconds` after it wrote last. A stream's last epoch stays for good, since its
checkpoint may go on at any time. Idle writers are looked for outside the committer, which only
deletes, some hundred of them in one write; where nothing is idle, nothing is written.

A clock may be ahead for a moment, by days: a machine that was suspended, a guest whose host sets
its time. So nobody is forgotten at the first look that finds him idle. The log keeps when that was,
and a look at least an hour later forgets those who were idle then already; a look whose clock shows
an earlier time takes the one before it for wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from duolog.log.commits import Committer, Job
from duolog.log.epochs import StoredEpoch, load_epoch_at, unpack_epoch
from duolog.log.forgetting import ForgetEpochs
from duolog.log.keys import after_prefix, epoch_key, parse_sequence_prefix
from duolog.log.model import Mode
from duolog.log.published import unpack_published
from duolog.log.rounds import Round
from duolog.log.state import RememberedWriters, State
from duolog.log.store import Store

_LOOK_AGAIN_MS = 3600 * 1000
_AT_ONCE = 256  # writers in one write
_UNTIMED_SINCE = b"writers_untimed_since"
_IDLE_SEEN = b"writers_idle_seen"
_PUBLISHERS = b"s"
_BEHIND_PUBLISHERS = b"t"
_BATCHES = epoch_key(f"{Mode.BATCH}:")
_STREAMS = epoch_key(f"{Mode.STREAM}:")


class Expiry:
    """Looks for idle writers of an opened log, from one thread at a time."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer
        self._looked_at_ms: int | None = None

    def run_when_due(self, cancelled: Callable[[], bool]) -> None:
        """Expire writers, if an hour or half of their time has gone by since the last time."""
        now_ms = self._state.options.clock.now_ms()
        looked = self._looked_at_ms
        if looked is None or not looked <= now_ms < looked + self._interval_ms:
            self.run(cancelled)

    @property
    def _interval_ms(self) -> float:
        return min(_LOOK_AGAIN_MS, self._idle_after_ms / 2)

    @property
    def _idle_after_ms(self) -> float:
        return self._state.options.writer_expiration_seconds * 1000

    def run(self, cancelled: Callable[[], bool]) -> None:
        """Expire writers. Leaves off in between when it is cancelled."""
        now_ms = self._state.options.clock.now_ms()
        seen_ms = self._stored_time(_IDLE_SEEN)
        look = _Look(_Ages(self._stored_time(_UNTIMED_SINCE)), now_ms - self._idle_after_ms)
        if seen_ms is not None and seen_ms + self._interval_ms <= now_ms:
            look.idle_before_ms = seen_ms - self._idle_after_ms
        publishers = self._expire_publishers(look, cancelled)
        batch_writers = self._expire_batch_writers(look, cancelled)
        if look.ages.found_untimed and look.ages.untimed_since_ms is None:
            self._committer.run(_KeepTime(_UNTIMED_SINCE, now_ms))
        was_seen_in_time = seen_ms is not None and seen_ms <= now_ms
        if look.left_idle and (look.idle_before_ms is not None or not was_seen_in_time):
            self._committer.run(_KeepTime(_IDLE_SEEN, now_ms))
        elif seen_ms is not None and not was_seen_in_time:
            self._committer.run(_DropTime(_IDLE_SEEN))
        if cancelled():
            return
        streams = len(self._state.store.scan_keys("epochs", _STREAMS, after_prefix(_STREAMS)))
        self._state.counters.remembered = RememberedWriters(publishers, batch_writers, streams)
        self._looked_at_ms = now_ms

    def _stored_time(self, key: bytes) -> int | None:
        stored = self._state.store.get("meta", key)
        return None if stored is None else int(stored)

    def _expire_publishers(self, look: _Look, cancelled: Callable[[], bool]) -> int:
        """How many are left."""
        state, left = self._state, 0
        idle: list[tuple[str, bytes]] = []
        state.publishing = set()
        try:
            for writer, prefix in _publishers(state.store):
                if cancelled():
                    break
                left += 1
                if look.may_forget(_publisher_times(state.store, prefix, look.ages)):
                    idle.append((writer, prefix))
                if len(idle) == _AT_ONCE:
                    left -= self._forget_publishers(idle)
                    idle = []
            return left - self._forget_publishers(idle)
        finally:
            state.publishing = None

    def _forget_publishers(self, idle: Sequence[tuple[str, bytes]]) -> int:
        if not idle:
            return 0
        job = _ForgetPublishers(idle)
        self._committer.run(job)
        self._state.counters.publishers_expired += job.forgotten
        return job.forgotten

    def _expire_batch_writers(self, look: _Look, cancelled: Callable[[], bool]) -> int:
        """How many are left."""
        left = 0
        idle: list[bytes] = []
        for key, packed in _entries(self._state.store, _BATCHES):
            if cancelled():
                break
            left += 1
            if look.may_forget([look.ages.of_epoch(unpack_epoch(packed))]):
                idle.append(key)
            if len(idle) == _AT_ONCE:
                left -= self._forget_epochs(idle, look)
                idle = []
        return left - self._forget_epochs(idle, look)

    def _forget_epochs(self, idle: Sequence[bytes], look: _Look) -> int:
        """Forget those that are still idle once nobody can append as them."""
        writers = self._state.writers
        held: set[str] = set()
        gone: list[bytes] = []
        try:
            for key in idle:
                writer = key[len(epoch_key("")) :].decode()
                if not writers.try_hold({writer}):
                    continue
                held.add(writer)
                stored = load_epoch_at(self._state.store, key)
                if stored is not None and look.may_forget([look.ages.of_epoch(stored)]):
                    gone.append(key)
            if gone:
                self._committer.run(ForgetEpochs(gone))
                self._state.counters.batch_writers_expired += len(gone)
            return len(gone)
        finally:
            writers.free(held)


@dataclass
class _Ages:
    """When writers have written last. Older Duologs did not store it: those are as old as the first
    look at them.
    """

    untimed_since_ms: int | None
    found_untimed: bool = False

    def of_epoch(self, stored: StoredEpoch) -> float:
        return self._known(stored.stored_at_ms)

    def of_published(self, packed: bytes) -> float:
        return self._known(unpack_published(packed).at_ms)

    def _known(self, at_ms: int | None) -> float:
        if at_ms is not None:
            return at_ms
        self.found_untimed = True
        return float("inf") if self.untimed_since_ms is None else self.untimed_since_ms


@dataclass
class _Look:
    """Who has not written since which time, at this look and at the one before it that counts."""

    ages: _Ages
    idle_now_ms: float
    idle_before_ms: float | None = None
    left_idle: bool = False  # somebody is idle who may not be forgotten yet

    def may_forget(self, times: Iterable[float]) -> bool:
        """Whether a writer of entries of these times was idle at both looks."""
        newest = -inf
        for at_ms in times:
            newest = max(newest, at_ms)
            if newest >= self.idle_now_ms:
                return False
        if self.idle_before_ms is not None and newest < self.idle_before_ms:
            return True
        self.left_idle = True
        return False


def _publishers(store: Store) -> Iterator[tuple[str, bytes]]:
    """Each publisher, and what its keys begin with."""
    after = _PUBLISHERS
    while found := store.scan("epochs", after, _BEHIND_PUBLISHERS, limit=1):
        writer, prefix = parse_sequence_prefix(found[0][0])
        yield writer, prefix
        after = after_prefix(prefix)


def _publisher_times(store: Store, prefix: bytes, ages: _Ages) -> Iterator[float]:
    """When its entries were stored, the last one first, which tells enough nearly always."""
    beyond = after_prefix(prefix)
    last = store.last_at_or_before("epochs", beyond, prefix)
    if last is not None:
        yield ages.of_published(last[1])
        for _, packed in store.scan("epochs", prefix, beyond):
            yield ages.of_published(packed)


def _entries(store: Store, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What is stored under a prefix, some at a time."""
    after = prefix
    while found := store.scan("epochs", after, after_prefix(prefix), limit=_AT_ONCE):
        yield from found
        after = found[-1][0] + b"\0"


class _ForgetPublishers(Job):
    alone = True  # what others of the round publish would not be known yet

    def __init__(self, idle: Sequence[tuple[str, bytes]]) -> None:
        super().__init__()
        self._idle = idle
        self.forgotten = 0

    def prepare(self, round_: Round) -> None:
        publishing = round_.state.publishing or set()
        self.forgotten = 0
        for writer, prefix in self._idle:
            if writer not in publishing:
                round_.batch.delete_range("epochs", prefix, after_prefix(prefix))
                self.forgotten += 1


class _KeepTime(Job):
    def __init__(self, key: bytes, at_ms: int) -> None:
        super().__init__()
        self._key = key
        self._at_ms = at_ms

    def prepare(self, round_: Round) -> None:
        round_.batch.put("meta", self._key, b"%d" % self._at_ms)


class _DropTime(Job):
    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._key = key

    def prepare(self, round_: Round) -> None:
        round_.batch.delete("meta", self._key)
