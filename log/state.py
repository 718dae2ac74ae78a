"""What an opened log keeps in memory, each thing with its owner.

The committer's thread changes `catalogue`, `positions`, what is known of mirrors and, for the gates
it holds, the heads. An append changes the heads of the gates it holds. Everybody else only reads.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from duolog.errors import DiskFull, LogClosed, LogMoved, OutcomeUnknown
from duolog.log.cache import BatchCache
from duolog.log.catalogue import Catalogue, load_catalogue
from duolog.log.checked import CheckedFrom, load_checked
from duolog.log.damage import KnownDamage
from duolog.log.debris import remove_debris
from duolog.log.dedup import LatestChanges
from duolog.log.gates import Gates
from duolog.log.heads import Heads, load_heads
from duolog.log.lost_files import remove_kept
from duolog.log.merge_queue import MergeQueue
from duolog.log.mirror_control import StoredModes, load_modes
from duolog.log.mirrors import StoredMirrors, load_mirrors
from duolog.log.model import TopicPartition
from duolog.log.moves import PositionMoves
from duolog.log.options import LogOptions
from duolog.log.positions import Positions, load_positions
from duolog.log.removals import finish_removals
from duolog.log.store import RECOVERY_BYTES, Store
from duolog.log.times import OldestBatches

_DISK_KNOWN_SECONDS = 0.1  # asking costs 5 us and lets go of Python's lock, in every round


@dataclass(frozen=True, slots=True)
class RememberedWriters:
    """Of how many writers something is remembered, when expiry looked last; 0 before."""

    publishers: int = 0
    batch_writers: int = 0
    streams: int = 0


@dataclass
class Counters:
    """What has happened since the log was opened."""

    counters_restored: int = 0
    duplicates_dropped: int = 0
    records_appended: int = 0
    publishers_expired: int = 0
    batch_writers_expired: int = 0
    remembered: RememberedWriters = field(default_factory=RememberedWriters)


@dataclass
class State:
    """One opened log's memory."""

    folder: Path
    store: Store
    options: LogOptions
    cache: BatchCache
    catalogue: Catalogue = field(default_factory=Catalogue)
    positions: Positions = field(default_factory=Positions)
    mirrors: StoredMirrors = field(default_factory=dict)
    mirror_modes: StoredModes = field(default_factory=StoredModes)
    heads: Heads = field(default_factory=Heads)
    moves: PositionMoves = field(default_factory=PositionMoves)
    gates: Gates[TopicPartition] = field(default_factory=Gates)
    writers: Gates[str] = field(default_factory=Gates)
    latest_changes: LatestChanges = field(default_factory=LatestChanges)
    damage: KnownDamage = field(default_factory=KnownDamage)
    oldest_batches: OldestBatches = field(default_factory=OldestBatches)
    counters: Counters = field(default_factory=Counters)
    checked: CheckedFrom = field(default_factory=dict)
    publishing: set[str] | None = None  # writers that publish while expiry looks for idle ones
    merges: MergeQueue = field(default_factory=MergeQueue)
    one_rearranges: threading.Lock = field(default_factory=threading.Lock)
    """Held from looking at a partition's batches until batches are removed or merged by it, so that
    retention and merging see the same ones. Never by the committer."""
    is_in_place: Callable[[], bool] = lambda: True
    """Whether the log's folder is still the one that was opened."""
    _disk_known_until: float = 0.0
    _kept_files: set[Path] = field(default_factory=set)

    def load(self) -> None:
        """Take everything from the store, and remove what a crash left beyond the heads."""
        self.catalogue = load_catalogue(self.store)
        self.positions = load_positions(self.store)
        self.mirrors = load_mirrors(self.store)
        self.mirror_modes = load_modes(self.store)
        heads = load_heads(self.store)
        self.heads.replace(heads)  # before what lies below a start is removed
        finish_removals(self.store)
        remove_debris(self.store, self.catalogue, heads)
        self.checked = load_checked(self.store, heads)
        self.latest_changes.clear()
        self.oldest_batches.clear()
        self.counters.counters_restored = len(heads)

    def keep_until_recovered(self, files: Iterable[Path]) -> None:
        """Files of a write that failed: the store may need them to open again."""
        self._kept_files.update(files)

    def check_in_place(self) -> None:
        """Refuse to go on in a folder that is another one now. RocksDB finds its files by their
        names: it would write into, and remove, what is another log's.
        """
        if not self.is_in_place():
            self.store.leave_alone()
            raise LogMoved(
                f"{self.folder} was moved, removed or replaced while this process had the log in "
                "it open. Nothing more is written; what was written since then may be lost. End "
                "this process, then open the log where it lies now, or restore a backup."
            )

    def recover(self) -> bool:
        """Open the store anew after a failed write; False when it still takes no writes."""
        self.check_in_place()
        kept = list(self._kept_files)
        if not self.store.recover(self.load):
            return False
        remove_kept(kept)
        self._kept_files.difference_update(kept)
        return True

    def ensure_writable(self) -> None:
        """Recover from an earlier failure, if any, and refuse what the disk cannot take."""
        if self.store.in_doubt:
            self._recover_or_refuse()
        self._check_disk()

    def _recover_or_refuse(self) -> None:
        """What is refused here may be there: it may be the repeat of a write that failed."""
        try:
            self._check_disk()
            recovered = self.recover()
            reason = self.store.not_reopened_for
        except (LogClosed, LogMoved):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the log cannot be written
            recovered, reason = False, str(error)
        if not recovered:
            raise OutcomeUnknown(
                f"The log in {self.folder} cannot be written since an earlier write failed"
                f"{f' ({reason})' if reason else ''}. Look at its disk: to recover, it may take "
                f"{RECOVERY_BYTES >> 20} MiB of free space. Reads go on, and each write tries "
                "again."
            )

    def _check_disk(self) -> None:
        now = time.monotonic()
        if now < self._disk_known_until:
            return
        self.check_in_place()
        free = shutil.disk_usage(self.folder).free
        if free < self.options.min_free_bytes:
            raise DiskFull(
                f"{free >> 20} MiB are free for the log in {self.folder}, it wants "
                f"{self.options.min_free_bytes >> 20}. Free some space; reads go on meanwhile."
            )
        self._disk_known_until = now + _DISK_KNOWN_SECONDS
