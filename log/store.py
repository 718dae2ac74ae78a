"""RocksDB behind a small port. But for `sorted_file.py`, nothing else in Duolog knows rocksdict.

A write is made in two steps, because rocksdict holds Python's lock during a write but lets go of it
during `flush_wal`: first the write without a sync, then the sync. A write or sync that raises
leaves the outcome open and the store in doubt; `recover` closes it, opens it again and so finds out
what is there. Where it cannot be opened for writing (a full disk), it is opened for reading.

RocksDB lets go of its directory only when nothing refers to it any more, and an error keeps the
variables of all frames that it has passed. So nothing here keeps a handle, an iterator or a batch
of RocksDB's in a variable when it raises: whoever held the error would keep the log closed.
"""

from __future__ import annotations

import itertools
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Literal

import rocksdict

from duolog.errors import (
    DamagedLog,
    DiskFull,
    DuologError,
    LogClosed,
    LogUnusable,
    NotWritten,
    WritesRefused,
)
from duolog.log.forked import Forked, keep_for_ever, leave_to_parent_in_child
from duolog.log.lost_files import Relinked, relinkings
from duolog.log.manifest import LOWEST_LEVEL, Table
from duolog.log.mark import Mark
from duolog.log.open_files import (
    allow_many_files,
    is_too_many,
    tables_within,
    too_many_open_files,
)
from duolog.log.options import LogOptions
from duolog.log.owner import file_of_another
from duolog.log.shared_access import SharedAccess
from duolog.log.sorted_file import SortedFile
from duolog.log.torn_manifest import find_torn_manifest, missing_without_end, remove_trial

Family = Literal[
    "meta", "topics", "records", "times", "heads", "epochs", "groups", "mirror", "schemas"
]
FAMILIES: tuple[Family, ...] = (
    "meta", "topics", "records", "times", "heads", "epochs", "groups", "mirror", "schemas",
)  # fmt: skip

MAX_WRITE_BYTES = 512 << 10  # a call holds Python's lock for about 1 ms then
_LOWEST_TABLES = f"rocksdb.num-files-at-level{LOWEST_LEVEL}"
_KEY_BYTES: dict[Family, int] = {"records": 16}
_WAITING_BUFFERS = "rocksdb.num-immutable-mem-table"
_MOST_WAITING_BUFFERS = 2
_LONGEST_WAIT_SECONDS = 2.0
_FILES_OVERLAP = ("Global seqno is required, but disabled", "External file requires flush")
_PER_OPERATION_BYTES = 32
_DENIED = re.compile(r"IO error.*: (?P<file>/.*?): Permission denied")
_SYSTEM_ERROR = re.compile(r"\(os error (?P<errno>\d+)\)$")


class WriteFailed(Exception):
    """A write or a sync raised. Never leaves the log: it ends in `recover` and a decision."""

    def __init__(self, cause: BaseException | str, *, superseded: bool = False) -> None:
        super().__init__(str(cause))
        self.superseded = superseded  # by somebody else's failure: the store was opened anew
        self.damage = str(cause).startswith("Corruption")
        self.disk_full = "No space left" in str(cause) or "Disk quota exceeded" in str(cause)
        self.too_many_files = is_too_many(str(cause))


def named_failure(failure: WriteFailed, folder: Path) -> DuologError:
    """What to tell of a write that is known not to be there."""
    error: DuologError
    if failure.damage:
        error = DamagedLog(
            f"The log in {folder} is damaged ({failure}) and takes no writes. Restore it from a "
            "backup."
        )
    elif failure.disk_full:
        error = DiskFull(
            f"The disk of the log in {folder} is full. Nothing of the write was kept; free some "
            "space and send it again."
        )
    elif failure.too_many_files:
        error = NotWritten(
            f"{too_many_open_files(f'A write to the log in {folder} failed')} Nothing of the write "
            "was kept."
        )
    else:
        error = NotWritten(
            f"The disk of the log in {folder} failed ({failure}). Nothing of the write was kept; "
            "send it again."
        )
    error.__cause__ = failure
    return error


class WriteBatch:
    """Puts and deletes that become one atomic write."""

    def __init__(self) -> None:
        self.operations: list[tuple[str, Family, bytes, bytes]] = []
        self.size_bytes = 0

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self._add("put", family, key, value)

    def delete(self, family: Family, key: bytes) -> None:
        self._add("delete", family, key, b"")

    def delete_range(self, family: Family, lower: bytes, upper: bytes) -> None:
        """Delete from `lower` up to but not including `upper`. An empty range is left out: RocksDB
        would give it a sequence number that it does not find again when it recovers.
        """
        if lower < upper:
            self._add("delete_range", family, lower, upper)

    def extend(self, other: WriteBatch) -> None:
        self.operations.extend(other.operations)
        self.size_bytes += other.size_bytes

    def _add(self, kind: str, family: Family, first: bytes, second: bytes) -> None:
        self.operations.append((kind, family, first, second))
        self.size_bytes += len(first) + len(second) + _PER_OPERATION_BYTES


class _State(Enum):
    OPEN = "open"
    IN_DOUBT = "in doubt"  # a write failed; only reads until it was opened anew
    READ_ONLY = "read only"  # could not be opened for writing
    UNREADABLE = "unreadable"  # could not be opened at all, for now
    CLOSED = "closed"


class _Held:
    """Holds something of RocksDB's, so that it can be let go of before an error passes."""

    def __init__(self, at: Any) -> None:
        self.at = at


class Store:
    """One opened RocksDB directory with all families."""

    def __init__(self, path: Path, mark: Mark, options: LogOptions) -> None:
        self._path = path
        self._mark = mark
        self._fault = options.fault
        self._state = _State.CLOSED
        self._access = SharedAccess()
        self._upkeep = 0
        self._counting = threading.Lock()  # of it
        self._one_recovers = threading.Lock()
        self._recovering_thread: int | None = None
        self._database: Any = None
        self._families: dict[str, Any] = {}
        self._handles: dict[str, Any] = {}
        self._last_thread = 0
        self.hand_overs = 0  # how often another thread came in than the one before
        self.syncs = 0
        self._is_left = False
        self.recoveries = 0
        self.not_reopened_for = ""  # why it is not open for writing, after a write that failed
        leave_to_parent_in_child(self)

    # -- opening and closing

    def open(self) -> None:
        """Open what is there, or make it. What was durable and is missing is damage."""
        mark = self._mark.read_or_create(is_new=not self._path.exists())
        if mark == 0 and not (self._path / "CURRENT").exists():
            shutil.rmtree(self._path, ignore_errors=True)  # making it was cut short
        remove_trial(self._path)
        try:
            database = self._opened_whole()
        except DamagedLog:
            if mark or self._has_content():
                raise
            shutil.rmtree(self._path, ignore_errors=True)  # cut short as well
            database = self._opened_whole()
        self._attach(database)
        self._state = _State.OPEN

    def _has_content(self) -> bool:
        """Whether anything was ever written that may have been durable."""
        files = itertools.chain(self._path.glob("*.log"), self._path.glob("*.sst"))
        return any(path.stat().st_size for path in files)

    def _opened_whole(self) -> Any:
        """Open for writing, if everything that was durable is there.

        Opening for writing recovers the write-ahead log and then throws it away, also where it is
        damaged, and with it what could have been saved. So look first, unless it is empty.
        """
        self._cut_torn_manifest(checksums=False)
        if self._mark.sequence and any(wal.stat().st_size for wal in self._path.glob("*.log")):
            looked_at = self._opened(read_only=True)
            try:
                self._check_reaches_mark(looked_at)
            finally:
                looked_at.close()
        database = self._opened()
        try:
            self._check_reaches_mark(database)
        except BaseException:
            database.close()
            raise
        return database

    def _opened(self, *, read_only: bool = False) -> Any:
        """Open, without a torn end of the MANIFEST, and with files put back that were handed over
        and lost their names.
        """
        try:
            return _open(self._path, read_only=read_only)
        except DamagedLog as error:
            damage = error
        if self._cut_torn_manifest(checksums=True):
            return self._opened(read_only=read_only)
        for relinked in relinkings(self._path, self._path.parent / "staging"):
            if relinked.put():
                database = self._opened_with(relinked, read_only=read_only)
                if database is not None:
                    return database
                relinked.take_back()
        raise damage

    def _cut_torn_manifest(self, *, checksums: bool) -> bool:
        """Cut off what a power loss has left of a record that was not durable yet."""
        torn = find_torn_manifest(self._path, checksums=checksums)
        if torn is None:
            return False
        try:
            missing = missing_without_end(
                self._path, torn, partial(_open, read_only=True), self._check_reaches_mark
            )
        except WritesRefused:
            raise
        except DuologError as error:
            missing = str(error)
        if missing:
            raise DamagedLog(
                f"The log in {self._path.parent} is damaged: {torn.path} is not as it was written "
                f"from byte {torn.length:,} on, and without that it is not whole: {missing}. "
                "Nothing was changed. Restore the log from a backup."
            )
        torn.cut()
        return True

    def _opened_with(self, relinked: Relinked, *, read_only: bool) -> Any:
        """Open, and read from the files that were put back; None if they are not the right ones."""
        try:
            database = _open(self._path, read_only=read_only)
        except DamagedLog:
            return None
        try:
            with _damage_named(self._path):
                for key in relinked.first_keys:  # RocksDB compares a file's id when it opens it
                    database.get_column_family("records").get(key)
        except DuologError:
            database.close()
            return None
        return database

    def _check_reaches_mark(self, database: Any) -> None:
        missing = self._mark.sequence - database.latest_sequence_number()
        if missing > 0:
            raise DamagedLog(
                f"The log in {self._path.parent} is damaged: {missing} of its writes were durable "
                "once and are not readable now. Nothing was changed. Restore the log from a "
                "backup, or its write-ahead log from the disk."
            )

    def close(self) -> None:
        """Write out what is in memory and let go of the directory."""
        with self._access.alone(waiting=self._end_upkeep):
            if self._is_left:
                keep_for_ever((self._database, *self._families.values(), *self._handles.values()))
            self._detach(close=not self._is_left)
            self._state = _State.CLOSED

    def leave_alone(self) -> None:
        """The directory is not ours any more. RocksDB writes and removes nothing from now on, also
        not when it is closed: then it is kept as it is for as long as the process lives.
        """
        if not self._is_left and self._state is not _State.CLOSED:
            self._is_left = True
            with self._using():
                self._database.cancel_all_background(True)

    def leave_to_parent(self) -> None:
        """In a forked child: never use it, nor let RocksDB close, which would delete files."""
        keep_for_ever((self._database, *self._families.values(), *self._handles.values()))
        forked: Any = Forked(self._path.parent)
        self._access = self._one_recovers = forked

    @property
    def closed(self) -> bool:
        return self._state is _State.CLOSED

    @property
    def in_doubt(self) -> bool:
        return self._state not in {_State.OPEN, _State.CLOSED}

    def recover(self, reload: Callable[[], None]) -> bool:
        """After a failed write: open anew, and let `reload` renew what is kept in memory.

        Nobody else writes before `reload` is through. False: it could not be opened for writing;
        `not_reopened_for` says why, reads go on, and the next call tries again.
        """
        with self._one_recovers:
            if self._state is _State.OPEN:
                return True
            if not self._reopen():
                return False
            self._recovering_thread = threading.get_ident()
            try:
                reload()
            except WriteFailed as failure:
                self.not_reopened_for = str(failure)
                return False
            finally:
                self._recovering_thread = None
            with self._using():  # nobody closes it meanwhile
                self._state = _State.OPEN
            self.not_reopened_for = ""
            return True

    def _reopen(self) -> bool:
        with self._access.alone(waiting=self._end_upkeep):
            if self._state is _State.CLOSED:
                raise LogClosed("The log has been closed.")
            self.recoveries += 1
            self._state = _State.UNREADABLE
            self._detach()
            try:
                self._attach(self._opened_whole())
            except (LogUnusable, WritesRefused, OSError) as error:
                self.not_reopened_for = str(error)
            else:
                self._state = _State.IN_DOUBT
                return True
            self._attach(self._opened(read_only=True))
            self._state = _State.READ_ONLY
            return False

    def _attach(self, database: Any) -> None:
        self._database = database
        self._families = {name: database.get_column_family(name) for name in FAMILIES}
        self._handles = {name: database.get_column_family_handle(name) for name in FAMILIES}

    def _end_upkeep(self) -> None:
        """Let what runs for long, and for nobody, end now: somebody waits to close."""
        if self._upkeep and self._database is not None:
            self._database.cancel_all_background(False)

    def _detach(self, *, close: bool = True) -> None:
        """Close. RocksDB lets go of its directory only when nothing refers to it any more.

        Closing flushes, and raises where a write has failed before. That costs nothing: what was
        durable is in the write-ahead log, and what was not is settled by opening anew.
        """
        for name in FAMILIES:
            self._handles.pop(name, None)
            family = self._families.pop(name, None)
            if close:
                _close(family)
        database, self._database = self._database, None
        if close:
            _close(database)

    # -- who is inside

    @contextmanager
    def _using(self) -> Iterator[None]:
        self._access.enter(self._check_open)
        try:
            yield
        finally:
            self._access.leave()

    def _check_open(self) -> None:
        if self._state is _State.CLOSED:
            raise LogClosed("The log has been closed.")
        if self._state is _State.UNREADABLE:
            raise WritesRefused(
                f"After a failed write, {self._path.parent} could not be reopened "
                f"({self.not_reopened_for}). Free its disk, or close the log and open it anew to "
                "see what is wrong."
            )
        if self._last_thread != threading.get_ident():
            self._last_thread = threading.get_ident()
            self.hand_overs += 1

    # -- writing

    def write(self, batch: WriteBatch, incarnation: int | None = None) -> None:
        """Write without a sync: not durable yet.

        With an `incarnation`, the number of recoveries that the writer has seen, it is refused if
        the store was opened anew since: what was written before may be gone.
        """
        with self._using():
            self._check_writable(incarnation)
            raw = _Held(rocksdict.WriteBatch(raw_mode=True))
            try:
                self._fill(raw.at, batch)
                with self._doubting():
                    self._database.write(raw.at)
            finally:
                raw.at = None

    def _fill(self, raw: Any, batch: WriteBatch) -> None:
        try:
            for kind, family, first, second in batch.operations:
                if kind == "put":
                    raw.put(first, second, self._handles[family])
                elif kind == "delete":
                    raw.delete(first, self._handles[family])
                else:
                    raw.delete_range(first, second, self._handles[family])
        finally:
            del raw

    def begin_file(self, family: Family, path: Path) -> SortedFile:
        """A file that `take_files` will take, on the same disk."""
        return SortedFile(path, _family_options(family, rocksdict.BlockBasedOptions()))

    def take_files(self, family: Family, paths: Sequence[Path], incarnation: int) -> bool:
        """Take finished files as they are, all or none of them; durable on return.

        False, and nothing has changed: their keys lie over others, or over removed ones.
        """
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        options.set_allow_global_seqno(False)
        options.set_allow_blocking_flush(False)
        with self._using():
            self._check_writable(incarnation)
            try:
                self._fault("store.take_files")
                self._families[family].ingest_external_file([str(path) for path in paths], options)
            except Exception as error:  # rocksdict raises bare Exception
                if str(error).endswith(_FILES_OVERLAP):
                    return False
                self._state = _State.IN_DOUBT
                raise WriteFailed(error) from error
        return True

    def wait_for_room(self) -> None:
        """Wait while buffers are being written out, before a large append goes on.

        RocksDB itself would wait inside the write, with Python's lock held and every thread of the
        process standing still. Not for ever: a disk that takes nothing has to be told by the write.
        """
        give_up = time.monotonic() + _LONGEST_WAIT_SECONDS
        while time.monotonic() < give_up:
            with self._using():
                waiting = self._families["records"].property_int_value(_WAITING_BUFFERS)
            if waiting is None or waiting < _MOST_WAITING_BUFFERS:
                return
            time.sleep(0.001)

    def sync(self, incarnation: int | None = None) -> None:
        """Make everything written so far durable."""
        with self._using():
            self._check_writable(incarnation)
            sequence = self._database.latest_sequence_number()
            with self._doubting():
                self._fault("store.sync")
                self._database.flush_wal(True)
                self._mark.advance(sequence)
            self.syncs += 1

    def commit(self, batch: WriteBatch) -> None:
        """Write and sync."""
        self.write(batch)
        self.sync()

    def _check_writable(self, incarnation: int | None) -> None:
        if self._recovering_thread == threading.get_ident():
            return
        if self._state is not _State.OPEN or incarnation not in {None, self.recoveries}:
            raise WriteFailed("another write failed meanwhile", superseded=True)

    def doubt(self, cause: BaseException) -> WriteFailed:
        """What is in the store or in memory is not certain: open anew before the next write."""
        if self._state is _State.OPEN:
            self._state = _State.IN_DOUBT
        return WriteFailed(cause)

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # rocksdict raises bare Exception
            self._state = _State.IN_DOUBT
            raise WriteFailed(error) from error

    # -- reading

    def get(self, family: Family, key: bytes) -> bytes | None:
        with self._using(), _damage_named(self._path):
            value: bytes | None = self._families[family].get(key)
            return value

    def scan(
        self,
        family: Family,
        lower: bytes,
        upper: bytes,
        *,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[tuple[bytes, bytes]]:
        """Entries from `lower` up to but not including `upper`; at least one, however large."""
        with self._walking(family) as walk:
            walk.at.seek(lower)
            return _entries(walk, lower, upper, limit, max_bytes)

    def scan_holding(
        self, family: Family, key: bytes, lowest: bytes, upper: bytes, *, max_bytes: int
    ) -> list[tuple[bytes, bytes]]:
        """Like `scan` from `key` on. If no entry has that key, the nearest entry before it comes
        first, unless that one is before `lowest`. All is as it was at one moment.
        """
        with self._walking(family) as walk:
            walk.at.seek_for_prev(key)
            if not (walk.at.valid() and walk.at.key() >= lowest):
                walk.at.status()
                walk.at.seek(key)
            return _entries(walk, key, upper, None, max_bytes)

    def scan_keys(self, family: Family, lower: bytes, upper: bytes) -> list[bytes]:
        """Like `scan`, the keys alone."""
        found = []
        with self._walking(family) as walk:
            walk.at.seek(lower)
            while walk.at.valid() and (key := walk.at.key()) < upper:
                found.append(key)
                walk.at.next()
            walk.at.status()
        return found

    def last_at_or_before(
        self, family: Family, key: bytes, lower: bytes
    ) -> tuple[bytes, bytes] | None:
        """The nearest entry at or before `key` that is not before `lower`."""
        with self._walking(family) as walk:
            walk.at.seek_for_prev(key)
            if walk.at.valid() and (found := walk.at.key()) >= lower:
                return found, walk.at.value()
            walk.at.status()
        return None

    def scan_back(
        self, family: Family, upper: bytes, lower: bytes, *, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """So many entries from `upper` back to `lower`, both included, the last one first."""
        found: list[tuple[bytes, bytes]] = []
        with self._walking(family) as walk:
            walk.at.seek_for_prev(upper)
            while len(found) < limit and walk.at.valid() and (key := walk.at.key()) >= lower:
                found.append((key, walk.at.value()))
                walk.at.prev()
            walk.at.status()
        return found

    @contextmanager
    def _walking(self, family: Family) -> Iterator[_Held]:
        with self._using(), _damage_named(self._path):
            walk = _Held(self._families[family].iter(rocksdict.ReadOptions()))
            try:
                yield walk
            finally:
                walk.at = None

    # -- upkeep

    def reclaim(self, family: Family, lower: bytes, upper: bytes) -> None:
        """Give the space of deleted ranges back to the disk."""
        with self._keeping_up():
            self._families[family].compact_range(lower, upper)

    def lowest_tables(self, family: Family) -> int:
        """How many tables lie below all others, where RocksDB does not join them by itself."""
        with self._using():
            return self._families[family].property_int_value(_LOWEST_TABLES) or 0

    def tables(self, family: Family) -> list[Table]:
        """Those tables. Of a family whose keys all have one length, which others have not."""
        with self._using():
            found = self._families[family].live_files()
        return [
            Table(int(each["name"][1:-4]), each["size"], each["start_key"], each["end_key"])
            for each in found
            if each["level"] == LOWEST_LEVEL and len(each["start_key"]) == _KEY_BYTES[family]
        ]

    def join(self, family: Family, first_key: bytes, last_key: bytes) -> None:
        """Rewrite the tables that have these keys, and what lies above them, as few large ones."""
        options = rocksdict.CompactOptions()
        options.set_exclusive_manual_compaction(False)
        options.set_bottommost_level_compaction(
            rocksdict.BottommostLevelCompaction.force_optimized()
        )
        with self._keeping_up():
            self._families[family].compact_range(first_key, last_key, options)

    def checkpoint(self, path: Path) -> int:
        """A consistent copy in another directory; returns the sequence number it reaches.

        WriteFailed: there is none. The store is in doubt if its own files were in the way, now or
        earlier, and not if it was only those of the copy: an error names the file.
        """
        with self._using():
            self._check_writable(None)
            sequence: int = self._database.latest_sequence_number()
            try:
                rocksdict.Checkpoint(self._database).create_checkpoint(str(path))
            except Exception as error:  # rocksdict raises bare Exception
                if names_file_in(self._path, str(error)):
                    self._state = _State.IN_DOUBT
                raise WriteFailed(error) from error
            return sequence

    @contextmanager
    def _keeping_up(self) -> Iterator[None]:
        """What may take long, and is ended when somebody waits to close."""
        with self._using():
            with self._counting:
                self._upkeep += 1
            try:
                yield
            finally:
                with self._counting:
                    self._upkeep -= 1


def _entries(
    walk: _Held, lower: bytes, upper: bytes, limit: int | None, max_bytes: int | None
) -> list[tuple[bytes, bytes]]:
    """Entries from where the walk is; what lies before `lower` does not count for the limits."""
    found = []
    size = 0
    while walk.at.valid() and (key := walk.at.key()) < upper:
        value = walk.at.value()
        found.append((key, value))
        if key >= lower:
            size += len(value)
            if len(found) == limit or (max_bytes is not None and size >= max_bytes):
                return found
        walk.at.next()
    walk.at.status()
    return found


def names_file_in(folder: Path, text: str) -> bool:
    """Whether a text names a file in this folder, and not in one whose path only ends like it."""
    return re.search(rf"(?<![^\s:'\"]){re.escape(str(folder))}/", text) is not None


def _close(opened: Any) -> None:
    if opened is not None:
        with suppress(Exception):  # rocksdict raises bare Exception
            opened.close()


def _open(path: Path, *, read_only: bool = False) -> Any:
    access = rocksdict.AccessType.read_only() if read_only else rocksdict.AccessType.read_write()
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(_BLOCK_CACHE_BYTES))  # one for all families
    with _damage_named(path):
        return rocksdict.Rdict(
            str(path),
            _database_options(),
            column_families={name: _family_options(name, blocks) for name in FAMILIES},
            access_type=access,
        )


_SHARD_BITS = 4  # of the tables that are open: 64 shards would leave a few of them too little room
_BLOCK_CACHE_BYTES = 16 << 20  # decoded batches have a cache of their own
_RECORDS_BUFFER_BYTES = 32 << 20
RECOVERY_BYTES = 2 * _RECORDS_BUFFER_BYTES
"""The write-ahead log at its longest, which recovery writes out before it throws it away."""


def _database_options() -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.set_max_open_files(tables_within(allow_many_files()))
    options.set_table_cache_num_shard_bits(_SHARD_BITS)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())
    options.set_max_total_wal_size(RECOVERY_BYTES)  # bounds the time to open
    options.set_wal_bytes_per_sync(1 << 20)  # a sync after a large append has little left to do
    options.set_bytes_per_sync(1 << 20)
    options.set_max_file_opening_threads(1)  # starting 16 took two thirds of the time to open
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_max_background_jobs(2)
    return options


def _family_options(name: Family, blocks: Any) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(rocksdict.DBCompressionType.none())  # batches are lz4 already
    if name == "records":
        options.set_write_buffer_size(_RECORDS_BUFFER_BYTES)
        options.set_max_write_buffer_number(3)
        options.set_target_file_size_base(64 << 20)
        options.set_max_bytes_for_level_base(512 << 20)
    else:
        options.set_write_buffer_size(4 << 20)
    return options


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except rocksdict.DbClosedError:
        raise LogClosed("The log has been closed.") from None
    except Exception as error:
        text = str(error)
        if is_too_many(text):
            raise too_many_open_files(f"The log in {path.parent} cannot be read") from error
        if "No space left" in text:
            raise DiskFull(f"No space is left for the log in {path.parent}.") from error
        if denied := _DENIED.search(text):
            raise file_of_another(Path(denied["file"]), path.parent) from error
        if text.startswith("IO error") and "LOCK" in text:
            raise WritesRefused(f"RocksDB's directory {path} is still in use: {text}") from error
        if text.startswith(("Corruption", "IO error", "Invalid argument", "NotFound", "Failed to")):
            raise DamagedLog(
                f"The log in {path.parent} cannot be read ({text}). Look at its disk and open it "
                "again; if it stays so, restore it from a backup."
            ) from error
        if system := _SYSTEM_ERROR.search(text):  # of a file of rocksdict's own
            raise OSError(int(system["errno"]), text, str(path)) from error
        raise
