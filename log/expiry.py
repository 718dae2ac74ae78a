"""Forgets what is remembered of publishers and batch writers that have not written for long.

What is remembered makes a repeat harmless, so it stays for as long as a writer is alive: for
`writer_expiration_seconds` after it wrote last. A stream's last epoch stays for good, since its
checkpoint may go on at any time. Idle writers are looked for outside the committer, which only
deletes, some hundred of them in one write; where nothing is idle, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
        options = self._state.options
        now_ms = options.clock.now_ms()
        interval_ms = min(_LOOK_AGAIN_MS, options.writer_expiration_seconds * 1000 / 2)
        looked = self._looked_at_ms
        if looked is None or not looked <= now_ms < looked + interval_ms:
            self.run(cancelled)

    def run(self, cancelled: Callable[[], bool]) -> None:
        """Expire writers. Leaves off in between when it is cancelled."""
        store, options = self._state.store, self._state.options
        oldest_ms = int(options.clock.now_ms() - options.writer_expiration_seconds * 1000)
        ages = _Ages(self._untimed_since())
        publishers = self._expire_publishers(ages, oldest_ms, cancelled)
        batch_writers = self._expire_batch_writers(ages, oldest_ms, cancelled)
        if ages.found_untimed and ages.untimed_since_ms is None:
            self._committer.run(_BeginToCount())
        if cancelled():
            return
        streams = len(store.scan_keys("epochs", _STREAMS, after_prefix(_STREAMS)))
        self._state.counters.remembered = RememberedWriters(publishers, batch_writers, streams)
        self._looked_at_ms = options.clock.now_ms()

    def _untimed_since(self) -> int | None:
        """When what was stored without a time began to count as old."""
        stored = self._state.store.get("meta", _UNTIMED_SINCE)
        return None if stored is None else int(stored)

    def _expire_publishers(self, ages: _Ages, oldest_ms: int, cancelled: Callable[[], bool]) -> int:
        """How many are left."""
        state, left = self._state, 0
        idle: list[tuple[str, bytes]] = []
        state.publishing = set()
        try:
            for writer, prefix in _publishers(state.store):
                if cancelled():
                    break
                left += 1
                if _is_publisher_idle(state.store, prefix, ages, oldest_ms):
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

    def _expire_batch_writers(
        self, ages: _Ages, oldest_ms: int, cancelled: Callable[[], bool]
    ) -> int:
        """How many are left."""
        left = 0
        idle: list[bytes] = []
        for key, packed in _entries(self._state.store, _BATCHES):
            if cancelled():
                break
            left += 1
            if ages.of_epoch(unpack_epoch(packed)) < oldest_ms:
                idle.append(key)
            if len(idle) == _AT_ONCE:
                left -= self._forget_epochs(idle, ages, oldest_ms)
                idle = []
        return left - self._forget_epochs(idle, ages, oldest_ms)

    def _forget_epochs(self, idle: Sequence[bytes], ages: _Ages, oldest_ms: int) -> int:
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
                if stored is not None and ages.of_epoch(stored) < oldest_ms:
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


def _publishers(store: Store) -> Iterator[tuple[str, bytes]]:
    """Each publisher, and what its keys begin with."""
    after = _PUBLISHERS
    while found := store.scan("epochs", after, _BEHIND_PUBLISHERS, limit=1):
        writer, prefix = parse_sequence_prefix(found[0][0])
        yield writer, prefix
        after = after_prefix(prefix)


def _is_publisher_idle(store: Store, prefix: bytes, ages: _Ages, oldest_ms: int) -> bool:
    """Whether none of its entries is newer. The last one tells, nearly always."""
    beyond = after_prefix(prefix)
    last = store.last_at_or_before("epochs", beyond, prefix)
    if last is None or ages.of_published(last[1]) >= oldest_ms:
        return False
    entries = store.scan("epochs", prefix, beyond)
    return all(ages.of_published(packed) < oldest_ms for _, packed in entries)


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


class _BeginToCount(Job):
    """From now on what has no time grows old."""

    def prepare(self, round_: Round) -> None:
        round_.batch.put("meta", _UNTIMED_SINCE, b"%d" % round_.now_ms)
