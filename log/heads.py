"""How far each partition reaches, and who waits for it.

A head in memory is a published head: what it covers is durable. Readers look nowhere else.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Collection, Mapping

from duolog.errors import UnsupportedFormat
from duolog.log.keys import parse_partition_key
from duolog.log.listeners import call_listeners
from duolog.log.model import Head, TopicPartition
from duolog.log.store import Store

_HEAD = struct.Struct(">BQQQQ")
_VERSION = 1
_EVERY_KEY = b"\xff" * 9

Listener = Callable[[Collection[TopicPartition]], None]


def pack_head(head: Head) -> bytes:
    return _HEAD.pack(_VERSION, head.start, head.next_offset, head.bytes, head.last_ts_ms)


def unpack_head(packed: bytes) -> Head:
    version = packed[0]
    if version != _VERSION:
        raise UnsupportedFormat(f"A head has version {version}. Use a newer Duolog.")
    return Head(*_HEAD.unpack(packed)[1:])


def load_heads(store: Store) -> dict[TopicPartition, Head]:
    return {
        parse_partition_key(key): unpack_head(packed)
        for key, packed in store.scan("heads", b"", _EVERY_KEY)
    }


class Heads:
    """The published heads of an opened log."""

    def __init__(self) -> None:
        self._heads: dict[TopicPartition, Head] = {}
        self._moved = threading.Condition()
        self._waiting = 0
        self._listeners: list[Listener] = []

    def get(self, where: TopicPartition) -> Head:
        return self._heads.get(where, _EMPTY)

    def __len__(self) -> int:
        return len(self._heads)

    def publish(self, moved: Mapping[TopicPartition, Head]) -> None:
        """Show readers what has become durable, and wake who waits for it."""
        with self._moved:
            self._heads.update(moved)
            if self._waiting:
                self._moved.notify_all()
        call_listeners(self._listeners, moved.keys())

    def replace(self, heads: Mapping[TopicPartition, Head]) -> None:
        """Start from what the store holds."""
        with self._moved:
            self._heads = dict(heads)
            self._moved.notify_all()

    def forget(self, gone: Collection[TopicPartition]) -> None:
        with self._moved:
            for where in gone:
                self._heads.pop(where, None)
            self._moved.notify_all()
        call_listeners(self._listeners, gone)

    def wait(
        self,
        beyond: Mapping[TopicPartition, int],
        timeout_seconds: float | None,
        check: Callable[[], object] = lambda: None,
    ) -> bool:
        """Wait until one of the partitions has a record at or after its offset.

        `check` is called each time that something has moved, and may raise to end the wait.
        """

        def is_there() -> bool:
            check()
            return any(self.get(where).next_offset > offset for where, offset in beyond.items())

        with self._moved:
            self._waiting += 1
            try:
                return self._moved.wait_for(is_there, timeout_seconds)
            finally:
                self._waiting -= 1

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back after each publish and drop, from the thread that does it. Must be quick."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


_EMPTY = Head()
