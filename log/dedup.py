"""Leaves out a change that says what its key's latest change has said, within a topic's window.

Only the latest counts: A, B, A stays three. Kept in memory per partition, and read back from the
log's own records when a partition is first written to after opening.

A change is remembered for one window of the partition's time. That time is the highest timestamp
written so far, but never ahead of the owner's clock: so one timestamp from the future neither ends
the memory of what came before it nor makes what comes after it stay. A clock that was ahead and is
set back takes the partition's time back with it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from duolog.log.model import Head, Op, Topic, TopicPartition

_FORGOTTEN_AT_ONCE = 1024  # with each write, beside two for each new change: about 0.5 ms


class Seen(NamedTuple):
    """The latest change of one key."""

    ts_ms: int
    digest: bytes
    offset: int
    partition_ms: int  # the partition's time when it was written


class ReadBack(Protocol):
    """Reads the partition's records from a time on: key, ts, op, table, value, offset."""

    def __call__(
        self, where: TopicPartition, from_ms: int
    ) -> Iterable[tuple[bytes | None, int, int, str | None, bytes | None, int]]: ...


class _Memory:
    """One partition's latest changes, in the order in which they were written."""

    def __init__(self, time_ms: int) -> None:
        self.latest: OrderedDict[bytes, Seen] = OrderedDict()
        self.time_ms = time_ms

    def put(self, key: bytes, seen: Seen) -> None:
        self.latest[key] = seen
        self.latest.move_to_end(key)

    def forget_expired(self, time_ms: int, window_ms: int, start: int, at_most: int) -> None:
        """Forget from the oldest on; as much work as is said, so that no write waits for long."""
        latest = self.latest
        for _ in range(at_most):
            if not latest:
                return
            key = next(iter(latest))
            if not _is_expired(latest[key], time_ms, window_ms, start):
                return
            del latest[key]


class LatestChanges:
    """The latest change of each key, for the partitions of topics with a window."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Memory] = {}

    def __len__(self) -> int:
        """How many changes are in memory."""
        return sum(len(memory.latest) for memory in self._partitions.copy().values())

    def clear(self) -> None:
        self._partitions.clear()

    def forget(self, gone: Collection[TopicPartition]) -> None:
        for where in gone:
            self._partitions.pop(where, None)

    def of(
        self,
        topic: Topic,
        where: TopicPartition,
        head: Head,
        now_ms: int,
        read_back: ReadBack,
    ) -> LatestOfPartition:
        """A view to decide with. Its changes are kept only by `keep`."""
        window_ms = int((topic.settings.dedup_window_seconds or 0) * 1000)
        memory = self._partitions.get(where)
        if memory is None:
            from_ms = max(0, min(now_ms, head.last_ts_ms) - window_ms)
            memory = _read_back(read_back(where, from_ms), window_ms, now_ms)
            self._partitions[where] = memory
        return LatestOfPartition(memory, window_ms, head.start, now_ms)


def _read_back(
    records: Iterable[tuple[bytes | None, int, int, str | None, bytes | None, int]],
    window_ms: int,
    now_ms: int,
) -> _Memory:
    memory = _Memory(0)
    for key, ts_ms, op, table, value, offset in records:
        if ts_ms <= now_ms:  # when one from the future was written, nobody knows now
            memory.time_ms = max(memory.time_ms, ts_ms)
        if key is not None and op != Op.NONE:
            memory.put(key, Seen(ts_ms, digest(op, table, value), offset, memory.time_ms))
            memory.forget_expired(memory.time_ms, window_ms, 0, 2)
    return memory


class LatestOfPartition:
    """One partition's latest changes, with those that are not durable yet laid over them."""

    def __init__(self, memory: _Memory, window_ms: int, start: int, now_ms: int) -> None:
        self._memory = memory
        self._window_ms = window_ms
        self._now_ms = now_ms
        self._new = _Memory(memory.time_ms)
        self._noted = 0
        self.start = start  # what lies below it is gone: nothing repeats it

    def repeats(
        self, key: bytes | None, ts_ms: int, op: int, table: str | None, value: bytes | None
    ) -> int | None:
        """The offset of the change that this one repeats, or None when it is news."""
        if key is None or op == Op.NONE:
            return None
        seen = self._new.latest.get(key) or self._memory.latest.get(key)
        if (
            seen is not None
            and abs(ts_ms - seen.ts_ms) <= self._window_ms
            and not _is_expired(seen, self._time(ts_ms), self._window_ms, self.start)
            and seen.digest == digest(op, table, value)
        ):
            return seen.offset
        return None

    def note(
        self,
        key: bytes | None,
        ts_ms: int,
        op: int,
        table: str | None,
        value: bytes | None,
        offset: int,
    ) -> None:
        """This change is written."""
        new = self._new
        new.time_ms = self._time(ts_ms)
        if key is not None and op != Op.NONE:
            new.put(key, Seen(ts_ms, digest(op, table, value), offset, new.time_ms))
            new.forget_expired(new.time_ms, self._window_ms, self.start, 2)
            self._noted += 1

    def keep(self) -> None:
        """What was noted is durable."""
        memory, new = self._memory, self._new
        for key, seen in new.latest.items():
            memory.put(key, seen)
        memory.time_ms = new.time_ms
        at_most = _FORGOTTEN_AT_ONCE + 2 * self._noted
        memory.forget_expired(memory.time_ms, self._window_ms, self.start, at_most)
        self._new, self._noted = _Memory(memory.time_ms), 0

    def _time(self, ts_ms: int) -> int:
        """The partition's time after a change with this timestamp."""
        return min(self._now_ms, max(self._new.time_ms, ts_ms))


def _is_expired(seen: Seen, time_ms: int, window_ms: int, start: int) -> bool:
    # Also what was written ahead of the partition's time, by a clock that was set back since.
    return seen.offset < start or abs(time_ms - seen.partition_ms) > window_ms


def digest(op: int, table: str | None, value: bytes | None) -> bytes:
    """Stands for (table, op, value); long enough that no two differ and look alike."""
    named = None if table is None else table.encode()
    sizes = [-1 if part is None else len(part) for part in (named, value)]
    content = hashlib.blake2b(b"%d %d %d " % (op, *sizes), digest_size=16)
    content.update(named or b"")
    content.update(value or b"")
    return content.digest()


def keep_news(records: Any, latest: LatestOfPartition, base_offset: int) -> Any:
    """The records of a batch that are news, noted as if they were written from this offset on."""
    kept: list[int] = []
    for row, (key, ts_ms, op, table, value) in enumerate(_rows(records)):
        if latest.repeats(key, ts_ms, op, table, value) is None:
            latest.note(key, ts_ms, op, table, value, base_offset + len(kept))
            kept.append(row)
    return records if len(kept) == records.num_rows else records.take(pa.array(kept, pa.int64()))


def _rows(records: Any) -> Any:
    # Row by row: hashing 16 bytes of each value is what this costs anyway, and only topics with a
    # window pay for it.
    columns = (records.column(name).to_pylist() for name in ("key", "ts", "op", "table", "value"))
    return zip(*columns, strict=True)
