"""Leaves out a change that says what its key's latest change has said, within a topic's window.

Only the latest counts: A, B, A stays three. Kept in memory per partition, and read back from the
log's own records when a partition is first written to after opening.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from duolog.log.model import Op, Topic, TopicPartition


class Seen(NamedTuple):
    """The latest change of one key."""

    ts_ms: int
    digest: bytes
    offset: int


class ReadBack(Protocol):
    """Reads the partition's records from a time on: key, ts, op, table, value, offset."""

    def __call__(
        self, where: TopicPartition, from_ms: int
    ) -> list[tuple[bytes | None, int, int, str | None, bytes | None, int]]: ...


class LatestChanges:
    """The latest change of each key, for the partitions of topics with a window."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, dict[bytes, Seen]] = {}

    def clear(self) -> None:
        self._partitions.clear()

    def forget(self, gone: Collection[TopicPartition]) -> None:
        for where in gone:
            self._partitions.pop(where, None)

    def of(
        self, topic: Topic, where: TopicPartition, newest_ms: int, read_back: ReadBack
    ) -> LatestOfPartition:
        """A view to decide with. Its changes are kept only by `keep`."""
        window_ms = int((topic.settings.dedup_window_seconds or 0) * 1000)
        if where not in self._partitions:
            latest: dict[bytes, Seen] = {}
            for key, ts_ms, op, table, value, offset in read_back(
                where, max(0, newest_ms - window_ms)
            ):
                if key is not None and op != Op.NONE:
                    latest[key] = Seen(ts_ms, digest(op, table, value), offset)
            self._partitions[where] = latest
        return LatestOfPartition(self._partitions[where], window_ms)


class LatestOfPartition:
    """One partition's latest changes, with those that are not durable yet laid over them."""

    def __init__(self, latest: dict[bytes, Seen], window_ms: int) -> None:
        self._latest = latest
        self._window_ms = window_ms
        self._new: dict[bytes, Seen] = {}

    def repeats(
        self, key: bytes | None, ts_ms: int, op: int, table: str | None, value: bytes | None
    ) -> int | None:
        """The offset of the change that this one repeats, or None when it is news."""
        if key is None or op == Op.NONE:
            return None
        seen = self._new.get(key) or self._latest.get(key)
        if (
            seen is not None
            and abs(ts_ms - seen.ts_ms) <= self._window_ms
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
        if key is not None and op != Op.NONE:
            self._new[key] = Seen(ts_ms, digest(op, table, value), offset)

    def keep(self) -> None:
        """What was noted is durable. What has left the window is forgotten now and then."""
        before = len(self._latest)
        self._latest.update(self._new)
        if self._new and len(self._latest) > 2 * max(before, 1024):
            newest = max(seen.ts_ms for seen in self._new.values())
            old = [k for k, s in self._latest.items() if newest - s.ts_ms > self._window_ms]
            for key in old:
                del self._latest[key]
        self._new = {}


def digest(op: int, table: str | None, value: bytes | None) -> bytes:
    """Stands for (table, op, value); long enough that no two differ and look alike."""
    content = hashlib.blake2b(value or b"", digest_size=16)
    content.update(b"\0%d%d\0" % (op, value is None))
    content.update((table or "").encode())
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
