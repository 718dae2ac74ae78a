"""Joins small tables of records, a bounded step at a time.

A large share of an epoch becomes a table of its own, which lies below all others, where RocksDB
joins nothing by itself. So epochs of a few megabytes a partition would leave a table for each of
them: hundreds of thousands in a log of a terabyte. What lies side by side in a partition is
rewritten into one, once: it is not small any more then. Not across partitions: the next records of
the first one would lie within the new table then, and could not be taken below all others.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from duolog.errors import DuologError
from duolog.log.manifest import Table
from duolog.log.state import State

MANY_TABLES: Final = 1024
"""From here on an append that makes tables joins some. A host does so before, when it has time."""

_SMALL_BYTES: Final = 32 << 20
_STEP_BYTES: Final = 64 << 20  # read and written in about a fifth of a second
_PARTITION_BYTES: Final = 8  # of a key of records: topic and partition
_FEWEST: Final = 4  # to make one of: fewer are not worth the writing
_KNOWN_FOR: Final = 64  # tables more, until it is worth looking again


def runs_to_join(tables: Sequence[Table]) -> list[Sequence[Table]]:
    """Tables that lie side by side in a partition and make one each; the most tables first."""
    runs: list[Sequence[Table]] = []
    run: list[Table] = []
    size = 0
    for table in sorted(tables, key=lambda table: table.first_key):
        is_small = table.size_bytes < _SMALL_BYTES and _partition(table) is not None
        goes_on = run and is_small and _partition(run[0]) == _partition(table)
        if not goes_on or size + table.size_bytes > _STEP_BYTES:
            runs.append(run)
            run, size = [], 0
        if is_small:
            run.append(table)
            size += table.size_bytes
    runs.append(run)
    return sorted((each for each in runs if len(each) >= _FEWEST), key=len, reverse=True)


def _partition(table: Table) -> bytes | None:
    """The partition that a table's records are of; None when there are several."""
    partition = table.first_key[:_PARTITION_BYTES]
    return partition if table.last_key.startswith(partition) else None


class Joining:
    """Looks for small tables of one log, and joins them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._guard = threading.Lock()  # of the two below: appends end in many threads
        self._runs: list[Sequence[Table]] = []  # found, and not joined yet
        self._nothing_at = 0  # so many tables there were when there was nothing to join

    def after_append(self) -> None:
        """A step, when there are many tables. The append is durable: nothing is raised."""
        many = max(MANY_TABLES, self._nothing_at + _KNOWN_FOR)
        with suppress(DuologError, OSError):
            if self._state.store.lowest_tables("records") >= many:
                self.step()

    def step(self) -> int:
        """Join some tables into one; how many, or 0 when there is nothing to join."""
        store = self._state.store
        there = store.lowest_tables("records")
        if store.in_doubt or not self._has_room():
            return 0
        with self._guard:
            if not self._runs and there != self._nothing_at:
                self._runs = runs_to_join(store.tables("records"))  # some 20 us each: not each time
            run = self._runs.pop(0) if self._runs else None
        if run is not None:
            store.join("records", run[0].first_key, run[-1].last_key)
            if store.lowest_tables("records") < there:
                return len(run)
        with self._guard:  # RocksDB does not say when it could not: then nothing has changed
            self._runs = []
            self._nothing_at = there
        return 0

    def _has_room(self) -> bool:
        """The old ones go only when the new one is there."""
        free = shutil.disk_usage(self._state.folder).free
        return free > self._state.options.min_free_bytes + 4 * _STEP_BYTES
