"""What `duolog doctor` looks at: the file system, its space and its speed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from duolog.cli import shown
from duolog.cli.checkup import Finding, Status
from duolog.log.location import file_system_of, is_network

_TRIES = 50
_WRITE_BYTES = 4096
_SLOW_MS = 20.0
_UNBELIEVABLE_MS = 0.02  # no disk answers so fast; something before it does
_IN_MEMORY = {"tmpfs", "ramfs"}

_sync = getattr(os, "fdatasync", os.fsync)


def file_system(folder: Path) -> Finding:
    """Whether its locks keep two machines apart, and whether it outlives a restart."""
    kind, mount = file_system_of(folder)
    found = f"{kind} at {mount}" if kind else "unknown"
    if is_network(kind):
        return Finding(
            "files", Status.ERROR, found, "A network file system holds no log. Use a local disk."
        )
    if kind in _IN_MEMORY:
        return Finding("files", Status.WARNING, found, "It is memory: a restart empties it.")
    if not kind:
        return Finding("files", Status.WARNING, found, "Make sure that it is a local disk.")
    return Finding("files", Status.OK, found)


def free_space(folder: Path, min_free_bytes: int) -> Finding:
    """Whether a log here would take writes."""
    free = shutil.disk_usage(folder).free
    found = f"{shown.size(free)} free"
    if free <= min_free_bytes:
        return Finding(
            "space",
            Status.ERROR,
            found,
            f"Below {shown.size(min_free_bytes)} writes are refused. Free some, or lower "
            "min_free_bytes.",
        )
    if free <= 10 * min_free_bytes:
        return Finding("space", Status.WARNING, found, "It will be short soon.")
    return Finding("space", Status.OK, found)


def sync_speed(folder: Path) -> Finding:
    """How long a small write takes until it is durable: what every publish waits for."""
    try:
        times = sorted(_sync_times_ms(folder))
    except OSError as error:
        return Finding(
            "sync",
            Status.ERROR,
            f"{folder}: {error.strerror}",
            "A log's owner has to write there.",
        )
    half, high = times[len(times) // 2], times[(len(times) * 99) // 100]
    found = f"p50 {half:.2f} ms, p99 {high:.2f} ms ({_TRIES} writes in {folder})"
    if high > _SLOW_MS:
        return Finding(
            "sync", Status.WARNING, found, "Slow: each publish waits that long. Use a faster disk."
        )
    if half < _UNBELIEVABLE_MS:
        return Finding(
            "sync",
            Status.WARNING,
            found,
            "Too fast for a disk: what is written may not survive a loss of power.",
        )
    return Finding("sync", Status.OK, found)


def _sync_times_ms(folder: Path) -> list[float]:
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_TRIES):
            os.write(file.fileno(), bytes(_WRITE_BYTES))
            began = time.perf_counter()
            _sync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return times
