"""Raw rocksdict with the log's own options: what the log is measured against."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rocksdict

from duolog.log.batch import encode_small
from duolog.log.model import Record
from duolog.log.store import _open

_KEY_BYTES = 16
_CALL_BYTES = 1 << 20


@contextmanager
def raw_database(path: Path, *, read_only: bool = False) -> Iterator[Any]:
    """A RocksDB directory with the log's families and options, and nothing of the log around it."""
    database = _open(path, read_only=read_only)
    try:
        yield database
    finally:
        database.close()


def write_all(database: Any, batches: Iterable[bytes]) -> float:
    """Put these bytes into the records family in calls of 1 MiB, with one sync at the end.

    Returns the seconds it took.
    """
    handle = database.get_column_family_handle("records")
    began = time.perf_counter()
    call = rocksdict.WriteBatch(raw_mode=True)
    size = 0
    for number, encoded in enumerate(batches):
        if size and size + len(encoded) > _CALL_BYTES:
            database.write(call)
            call, size = rocksdict.WriteBatch(raw_mode=True), 0
        call.put(number.to_bytes(_KEY_BYTES, "big"), encoded, handle)
        size += len(encoded)
    database.write(call)
    database.flush_wal(True)
    return time.perf_counter() - began


def scan_all(database: Any) -> tuple[float, int]:
    """Read every value of the records family: the seconds it took, and how many bytes there are."""
    family = database.get_column_family("records")
    began = time.perf_counter()
    size = 0
    walker = family.iter(rocksdict.ReadOptions())
    walker.seek_to_first()
    while walker.valid():
        size += len(walker.value())
        walker.next()
    seconds = time.perf_counter() - began
    family.close()
    return seconds, size


def commit_groups(database: Any, group: Sequence[Record], seconds: float) -> float:
    """One thread writes and syncs this group again and again; records a second."""
    handles = [database.get_column_family_handle(name) for name in ("records", "times", "heads")]
    encoded, _ = encode_small(group, 0)
    began = time.perf_counter()
    number = 0
    while time.perf_counter() - began < seconds:
        call = rocksdict.WriteBatch(raw_mode=True)
        key = number.to_bytes(_KEY_BYTES, "big")
        for handle, value in zip(handles, (encoded, b"\0" * 8, b"\0" * 33), strict=True):
            call.put(key, value, handle)
        database.write(call)
        database.flush_wal(True)
        number += 1
    return number * len(group) / (time.perf_counter() - began)
