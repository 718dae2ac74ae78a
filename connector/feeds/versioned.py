"""Feeds of tables that count versions: Delta's change data feed and Iceberg's changelog.

| what a row says (either case)         | means                      |
|---------------------------------------|----------------------------|
| insert                                | a new row                  |
| delete                                | a row that is gone         |
| update_preimage, UPDATE_BEFORE        | what a row was             |
| update_postimage, UPDATE_AFTER        | what it became             |

Both images of an update become one change. They usually lie side by side, but a batch may end
between them, and where a column by which the table is partitioned changes, they come from two files
and so in two tasks. What a task cannot pair goes to the driver, which sees all of it. Bringing the
images together by a shuffle would cost every write its time and cannot be done by a data source,
which takes rows where Spark puts them.

What is still alone on the driver: an old image is a delete, since its row went on under another
key. A new image is the insert of that row, if there are old images in its version at all; otherwise
somebody filtered them out, and it is an update whose old row is not known.

Order: by version, and deletes before the rest of it, since an overwrite puts delete and insert of
one key into one version. A key has at most one of each in a version; where it has more, it does
not tell rows apart and is refused when that is seen. All of a version must be in one write: Delta's
limits on a trigger may cut one in two (see `lakes/delta.py`), which `versions.py` notices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.connector.feeds.columns import as_ms, check_no_null, conformed, shown
from duolog.connector.feeds.feed import FeedCounts
from duolog.connector.feeds.left_over import (
    LeftOver,
    LeftOverWriter,
    images_by_bucket,
    joined,
)
from duolog.connector.feeds.pairing import Pairs, pair
from duolog.errors import AmbiguousKey, InvalidRows
from duolog.log.model import Op
from duolog.log.routing.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from duolog.connector.feeds.feed import Ordered
    from duolog.log.staging import StagingPlace

    Rows = npt.NDArray[np.int64]

CHANGE_TYPE = "_change_type"
_INSERT, _DELETE, _OLD, _NEW = range(4)
_WORDS = {
    "insert": _INSERT,
    "delete": _DELETE,
    "update_preimage": _OLD,
    "update_before": _OLD,
    "update_postimage": _NEW,
    "update_after": _NEW,
}
_HELD_BYTES = 32 << 20  # of lone images in a task, before they are paired among themselves
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class VersionedFeed:
    """One table's changes by version."""

    table: str
    key_columns: tuple[str, ...]
    rows: pa.Schema
    found: str
    version: pa.Field
    time: pa.Field | None  # a timestamp
    ts_ms: int  # where there is none
    counts_on: bool = False  # versions go on from write to write, as Delta's; Iceberg's begin anew

    @property
    def batch_schema(self) -> pa.Schema:
        """What is taken of a batch: the rows first, then the feed's own columns."""
        change_type = pa.field(CHANGE_TYPE, pa.string())
        own = [change_type, self.version] + ([] if self.time is None else [self.time])
        return pa.schema([*self.rows, *own])

    def at(self, ts_ms: int) -> VersionedFeed:
        return replace(self, ts_ms=ts_ms)

    def reader(self, place: StagingPlace | None = None) -> _VersionedReader:
        return _VersionedReader(self, place)

    def settle(self, left_over: Sequence[bytes], place: StagingPlace | None = None) -> _Settled:
        return _Settled(self, [LeftOver.from_message(message) for message in left_over], place)


class _VersionedReader:
    """Pairs what it can within its task."""

    def __init__(self, feed: VersionedFeed, place: StagingPlace | None) -> None:
        self._feed = feed
        self._schema = feed.batch_schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._with_old: set[int] = set()
        self._versions: tuple[int, int] | None = None
        self._left_over = LeftOverWriter(place, feed.key_columns)
        self.counts = FeedCounts()

    def changes_of(self, batch: pa.RecordBatch) -> Iterator[Ordered]:
        if not batch.num_rows:
            return
        rows = _Rows(self._feed, conformed(batch, self._schema, self._feed.table))
        rows.check()
        self._with_old.update(np.unique(rows.version[rows.kind == _OLD]).tolist())
        self._note(rows.version)
        pairs = rows.pairs()
        yield from rows.changes(inserts=rows.of(_INSERT), deletes=rows.of(_DELETE), pairs=pairs)
        lone = np.sort(np.concatenate((pairs.lone_old, pairs.lone_new)))
        if lone.size:
            held = _taken(rows.batch, lone)
            self._held.append(held)
            self._held_bytes += held.nbytes
        if self._held_bytes > _HELD_BYTES:
            yield from self._pair_held(last=False)

    def finish(self) -> Iterator[Ordered]:
        yield from self._pair_held(last=True)

    def left_over(self) -> bytes | None:
        left_over = self._left_over.finish(self._with_old)
        return left_over.message() if left_over.chunks or left_over.with_old else None

    def versions(self) -> tuple[int, int] | None:
        return self._versions if self._feed.counts_on else None

    def abort(self) -> None:
        self._left_over.abort()

    def _note(self, version: npt.NDArray[np.int64]) -> None:
        low, high = int(version.min()), int(version.max())
        known = self._versions or (low, high)
        self._versions = min(low, known[0]), max(high, known[1])

    def _pair_held(self, *, last: bool) -> Iterator[Ordered]:
        if not self._held:
            return
        rows = _Rows(self._feed, joined(self._held))
        self._held, self._held_bytes = [], 0
        pairs = rows.pairs()
        yield from rows.changes(pairs=pairs)
        lone = np.sort(np.concatenate((pairs.lone_old, pairs.lone_new)))
        self._left_over.add(rows.batch.take(pa.array(lone)), last=last)


class _Settled:
    """What tasks left over, paired on the driver."""

    def __init__(
        self, feed: VersionedFeed, left_over: Sequence[LeftOver], place: StagingPlace | None
    ) -> None:
        self._feed = feed
        self._left_over = left_over
        self._place = place
        self.counts = FeedCounts()

    def __iter__(self) -> Iterator[Ordered]:
        with_old: set[int] = set()
        with_old.update(*(each.with_old for each in self._left_over))
        known = np.array(sorted(with_old), np.int64)
        for batch in images_by_bucket(self._left_over, self._feed.key_columns, self._place):
            rows = _Rows(self._feed, batch)
            pairs = rows.pairs()
            moved = np.isin(rows.version[pairs.lone_new], known)
            unknown = pairs.lone_new[~moved]
            self.counts += FeedCounts(old_unknown=unknown.size)
            yield from rows.changes(
                inserts=pairs.lone_new[moved],
                deletes=pairs.lone_old,
                pairs=pairs,
                old_unknown=unknown,
            )


class _Rows:
    """Rows of a feed with what they say."""

    def __init__(self, feed: VersionedFeed, batch: pa.RecordBatch) -> None:
        self._feed = feed
        self.batch = batch
        self.kind = _kinds(feed.table, batch)
        self.version = _no_nulls(feed.table, batch, feed.version.name).cast(pa.int64()).to_numpy()

    def check(self) -> None:
        """Refuse rows before anything is kept of their batch."""
        feed = self._feed
        check_no_null(self.batch, feed.key_columns, feed.table, "Key column")
        if feed.time is not None:
            check_no_null(self.batch, (feed.time.name,), feed.table, "Feed column")

    def of(self, kind: int) -> Rows:
        return np.flatnonzero(self.kind == kind)

    def pairs(self) -> Pairs:
        names = (self._feed.version.name, *self._feed.key_columns)
        pairs = pair([self.batch.column(name) for name in names], self.of(_OLD), self.of(_NEW))
        if pairs.doubled is not None:
            raise AmbiguousKey(
                f"Table '{self._feed.table}' changed more than one row of one key in one version: "
                f"{shown(self.batch, pairs.doubled)}. The key {', '.join(self._feed.key_columns)} "
                "does not tell its rows apart: name columns in keyColumns that do."
            )
        return pairs

    def changes(
        self,
        *,
        inserts: Rows = _NONE,
        deletes: Rows = _NONE,
        pairs: Pairs,
        old_unknown: Rows = _NONE,
    ) -> Iterable[Ordered]:
        """The changes, those of each order by themselves and as the rows stand in it."""
        kinds = (
            (Op.INSERT, inserts, inserts),
            (Op.DELETE, deletes, deletes),
            (Op.UPDATE, pairs.new, pairs.old),
            (Op.UPDATE, old_unknown, old_unknown),
        )
        after = np.concatenate([new for _, new, _ in kinds])
        if not after.size:
            return
        before = np.concatenate([old for _, _, old in kinds])
        sizes = [new.size for _, new, _ in kinds]
        op = np.repeat(np.array([op for op, _, _ in kinds], np.int8), sizes)
        known = np.repeat([False, True, True, False], sizes)
        order = self.version[after] * 2 + (op != Op.DELETE)
        sorting = np.lexsort((after, order))
        after, before, op = after[sorting], before[sorting], op[sorting]
        known, order = known[sorting], order[sorting]
        ends = np.append(np.flatnonzero(np.diff(order)) + 1, order.size)
        table = self.batch.select(self._feed.rows.names)
        new_rows = _taken(table, after)
        old_rows = _taken(table, before) if known.any() else None
        ts = self._times().take(pa.array(after))
        start = 0
        for end in ends.tolist():
            has_old = old_rows is not None and bool(known[start:end].any())
            size = end - start
            yield (
                int(order[start]),
                Changes.of(
                    self._feed.table,
                    self._feed.key_columns,
                    op=pa.array(op[start:end]),
                    after=new_rows.slice(start, size),
                    before=old_rows.slice(start, size)
                    if old_rows is not None and has_old
                    else None,
                    before_known=pa.array(known[start:end]) if has_old else None,
                    ts=ts.slice(start, size),
                ),
            )
            start = end

    def _times(self) -> pa.Int64Array:
        feed = self._feed
        if feed.time is None:
            return pa.array(np.full(self.batch.num_rows, feed.ts_ms, np.int64))
        return as_ms(self.batch.column(feed.time.name))


def _taken(table: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    if rows.size == table.num_rows and (rows == np.arange(rows.size)).all():
        return table
    return table.take(pa.array(rows))


def _kinds(table: str, batch: pa.RecordBatch) -> npt.NDArray[np.int8]:
    encoded = _no_nulls(table, batch, CHANGE_TYPE).dictionary_encode()
    words = encoded.dictionary.to_pylist()
    for word in words:
        if word.lower() not in _WORDS:
            raise InvalidRows(
                f"'{CHANGE_TYPE}' of table '{table}' says '{word}'; it can say "
                f"{', '.join(_WORDS)}. Filter other rows out."
            )
    by_word = np.array([_WORDS[word.lower()] for word in words], np.int8)
    kinds: npt.NDArray[np.int8] = by_word[encoded.indices.to_numpy()]
    return kinds


def _no_nulls(table: str, batch: pa.RecordBatch, name: str) -> pa.Array:
    check_no_null(batch, (name,), table, "Feed column")
    return batch.column(name)
