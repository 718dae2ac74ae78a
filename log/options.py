"""How a log is run: limits, budgets, and what tests hand in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from duolog.clock import Clock, SystemClock
from duolog.errors import InvalidSetting
from duolog.log.model import MAX_RECORD_BYTES

MOST_RECORD_BYTES = 256 << 20
"""Far below what a batch may become when it is read (`batch.MAX_UNPACKED_BYTES`)."""

FaultPoint = Literal[
    "append.verified",  # parts are whole, nothing is written
    "append.files_made",  # large shares lie in files, which the store does not have yet
    "append.records_written",  # all records are written, no head points at them
    "append.committed",  # the epoch is durable, the caller does not know
    "publish.written",  # before the sync
    "publish.synced",  # durable, not yet visible
    "removal.shown",  # readers see the new start, the records below it are still there
    "removal.written",  # they are gone, without a sync
    "store.sync",  # instead of a sync: may raise what a failing disk raises
    "store.take_files",  # instead of taking files: the same
    "restore.made",  # the log is whole, in the folder inside
    "restore.moved_some",  # one of its pieces is where it belongs
    "restore.moved",  # all are, and nothing says yet that it is a log
    "restore.is_log",  # it is one, and what it was made in is still there
]
"""Places where tests let a process die or a disk fail."""


def no_fault(point: FaultPoint) -> None:
    """Nothing happens here outside tests."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Limits and budgets of one opened log."""

    max_record_bytes: int = MAX_RECORD_BYTES
    max_fetch_records: int = 1_000_000
    cache_bytes: int = 64 << 20  # decoded batches
    min_free_bytes: int = 64 << 20  # below this much free disk, writes are refused
    lock_wait_seconds: float = 10.0
    max_timestamp_ahead_seconds: float = 3600.0  # as Kafka's message.timestamp.after.max.ms
    writer_expiration_seconds: float = 7 * 24 * 3600.0  # of publishers and of batch writers
    max_stored_groups: int = 100_000  # that have a position; those that Kafka brings come besides
    clock: Clock = field(default_factory=SystemClock)
    fault: Callable[[FaultPoint], None] = no_fault

    def __post_init__(self) -> None:
        if not self.writer_expiration_seconds > 0:
            raise InvalidSetting(
                "writer_expiration_seconds must be more than 0; got "
                f"{self.writer_expiration_seconds}."
            )
        for name in ("max_record_bytes", "max_fetch_records", "max_stored_groups"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.max_record_bytes > MOST_RECORD_BYTES:
            raise InvalidSetting(
                f"max_record_bytes must be at most {MOST_RECORD_BYTES}, so that each batch can be "
                f"read back; got {self.max_record_bytes}."
            )
        for name in (
            "cache_bytes",
            "min_free_bytes",
            "lock_wait_seconds",
            "max_timestamp_ahead_seconds",
        ):
            if not getattr(self, name) >= 0:  # NaN is not
                raise InvalidSetting(f"{name} must not be negative; got {getattr(self, name)}.")
