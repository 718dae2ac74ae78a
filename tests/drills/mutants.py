"""Changes to the product that a drill must notice. Each would be one line in the product.

A mutant is applied by name inside a child process, before it opens a log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import rocksdict

from duolog.log import (
    appends,
    arrow_body,
    batch,
    commits,
    epochs,
    identity,
    owner,
    packed,
    record_files,
    removals,
    rounds,
    slice_merge,
    state,
    store,
)

MUTANTS: dict[str, Callable[[], None]] = {}


def _mutant(apply: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[apply.__name__] = apply
    return apply


class _Changed:
    """Something of rocksdict's with some of its methods changed."""

    def __init__(self, original: Any, **methods: Any) -> None:
        self._original = original
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@_mutant
def heads_first() -> None:
    """An append writes and syncs its heads before its records."""

    def run(self: Any) -> Any:
        real, waiting = self.state.store, []

        def keep(batch: Any, incarnation: int | None = None) -> None:
            waiting.append(batch)

        self.state.store = _Changed(
            real,
            write=keep,
            sync=lambda incarnation=None: None,
            take_files=lambda family, paths, incarnation: False,
        )
        self._write_records()
        self.state.store = real
        self._put_heads()
        self._write_heads()
        self.state.options.fault("append.records_written")
        for records in waiting:
            real.write(records)
        real.sync()
        self.publish()
        return self.stored

    appends._Attempt.run = run  # type: ignore[method-assign]


@_mutant
def debris_stays() -> None:
    """What an append left beyond the heads is not removed.

    It shows where an epoch is many batches: the next append writes over the first of them.
    """
    slice_merge.SMALL_BYTES = 0  # type: ignore[misc]
    state.remove_debris = lambda *_: 0  # type: ignore[assignment]
    appends.remove_beyond = lambda *_: 0


@_mutant
def records_go_first() -> None:
    """Records are removed in the write that raises the start, before readers see it."""
    write = rounds.Round.write

    def remove_and_write(self: Any) -> None:
        removals.remove(self.state.store, self._batch, self._removals)
        write(self)

    rounds.Round.write = remove_and_write  # type: ignore[method-assign]


@_mutant
def retention_beside_merging() -> None:
    """Retention and merging do not wait for each other."""

    class Open:
        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    made = state.State.__init__

    def make(self: Any, *arguments: Any, **more: Any) -> None:
        made(self, *arguments, **more)
        self.one_rearranges = Open()

    state.State.__init__ = make  # type: ignore[method-assign]


@_mutant
def sync_without_flush() -> None:
    """Store.sync does not sync the write-ahead log."""
    attach = store.Store._attach

    def attach_unsynced(self: Any, database: Any) -> None:
        attach(self, database)
        self._database = _Changed(database, flush_wal=lambda sync: database.flush_wal(False))

    store.Store._attach = attach_unsynced  # type: ignore[method-assign]


@_mutant
def mark_before_sync() -> None:
    """The mark is moved on before the sync, not after it."""

    def sync(self: Any, incarnation: int | None = None) -> None:
        sequence = self._database.latest_sequence_number()
        self._mark.advance(sequence)
        with self._doubting():
            self._database.flush_wal(True)

    store.Store.sync = sync  # type: ignore[method-assign]


@_mutant
def only_torn_tails() -> None:
    """Recovery takes a torn tail of the write-ahead log, but no hole in its unsynced part."""
    modes = rocksdict.DBRecoveryMode
    store.rocksdict = _Changed(  # type: ignore[assignment]
        rocksdict,
        DBRecoveryMode=_Changed(modes, point_in_time=modes.tolerate_corrupted_tail_records),
    )


@_mutant
def backups_take_failures_as_they_are() -> None:
    """A backup does not recover from what failed in the store before it."""
    store.Store.in_doubt = False  # type: ignore[assignment, method-assign]


@_mutant
def torn_manifests_stay() -> None:
    """A MANIFEST that a power loss has torn is not cut."""
    store.find_torn_manifest = lambda *_, **__: None  # type: ignore[assignment]


@_mutant
def manifests_cut_untried() -> None:
    """A MANIFEST is cut where it does not match its checksums, whatever is missing then."""
    store.missing_without_end = lambda *_: None  # type: ignore[assignment]


@_mutant
def mark_unchecked() -> None:
    """What was recovered is not compared with the mark."""
    store.Store._check_reaches_mark = lambda *_: None  # type: ignore[method-assign]


@_mutant
def sums_unchecked() -> None:
    """Neither RocksDB's nor the batches' checksums are checked on reading."""

    def read_options() -> Any:
        options = rocksdict.ReadOptions()
        options.set_verify_checksums(False)
        return options

    store.rocksdict = _Changed(rocksdict, ReadOptions=read_options)  # type: ignore[assignment]

    class Unequal:
        """Any checksum is the right one."""

        crc32 = staticmethod(lambda *_: _AnySum())

    batch.zlib = Unequal  # type: ignore[assignment]


class _AnySum(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


@_mutant
def failures_settled() -> None:
    """A write that raised is told as written, without looking."""

    def settle(state: Any, failure: Any, is_stored: Any, publish: Any) -> None:
        publish()

    commits.settle = settle
    appends.settle = settle


@_mutant
def sequences_forgotten() -> None:
    """A publisher's sequence is not looked up."""
    rounds.Round.highest_sequence = lambda *_: None  # type: ignore[method-assign]


@_mutant
def never_recovered() -> None:
    """After a failed write the store is not opened anew."""
    store.Store.recover = lambda *_: False  # type: ignore[method-assign]


@_mutant
def handed_over_not_kept() -> None:
    """Files that RocksDB may have taken are removed at once when it says that it failed."""
    hand_over = record_files.RecordFiles.hand_over

    def hand_over_and_remove(self: Any, incarnation: int) -> bool:
        try:
            return hand_over(self, incarnation)
        finally:
            self.remove()

    record_files.RecordFiles.hand_over = hand_over_and_remove  # type: ignore[method-assign]


@_mutant
def rocksdb_lock_alone() -> None:
    """No flock on owner.lock: RocksDB's own lock has to do."""
    owner.fcntl = _Changed(owner.fcntl, flock=lambda *_: None)  # type: ignore[attr-defined]


@_mutant
def copies_keep_their_id() -> None:
    """A log does not notice that it lies elsewhere."""
    identity._home = lambda folder: [0]


@_mutant
def content_ignored() -> None:
    """The same epoch is a repeat, whatever it holds."""
    is_repeat = epochs.is_repeat

    def any_repeat(writer: Any, epoch: int, content: Any, last: Any, **options: Any) -> bool:
        content = content if last is None else last.fingerprints
        return is_repeat(writer, epoch, content, last, **options)

    appends.is_repeat = any_repeat


@_mutant
def order_matters() -> None:
    """The fingerprint of an epoch depends on the order of its rows."""
    plain = appends.fingerprints_of

    def ordered(parts: Any) -> Any:
        first = parts[0].crc32 if parts else 0
        return {
            topic: type(total)(total.routed, total.filtered_out, total.content ^ first)
            for topic, total in plain(parts).items()
        }

    appends.fingerprints_of = ordered


@_mutant
def one_offset_a_round() -> None:
    """All records of one round and partition are told the same offset."""
    add = rounds.Round.add

    def add_at_head(self: Any, where: Any, record: Any) -> int:
        add(self, where, record)
        return int(self.head(where).next_offset)

    rounds.Round.add = add_at_head  # type: ignore[method-assign]


@_mutant
def batches_unchecked() -> None:
    """A batch with a right checksum is decoded as it is."""

    def read(self: Any, content: Any, count: int, most_bytes: int) -> Any:
        return pa.ipc.open_stream(b"".join((self._schema_message, content))).read_next_batch()

    arrow_body.ArrowBody.read = read  # type: ignore[method-assign]
    packed._checked_end = lambda ends, room: int(ends[-1])
    batch.check_values = lambda *_: None
