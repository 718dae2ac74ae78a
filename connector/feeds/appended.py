"""Rows that are no changes of earlier ones: plain appends, and a table as it stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.connector.feeds.columns import conformed
from duolog.connector.feeds.feed import NothingLeft, RowByRow
from duolog.log.model import Op
from duolog.log.routing.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duolog.connector.feeds.feed import Ordered
    from duolog.log.staging import StagingPlace


@dataclass(frozen=True, slots=True)
class AppendFeed:
    """Each row is an insert (or, of a table as it stands, a read), made when the write was planned.

    There is no order between rows of two tasks, unless `sequence.py` has put them in one.
    """

    table: str
    key_columns: tuple[str, ...]
    rows: pa.Schema
    found: str
    op: Op
    ts_ms: int

    def at(self, ts_ms: int) -> AppendFeed:
        return replace(self, ts_ms=ts_ms)

    def reader(
        self,
        place: StagingPlace | None = None,  # noqa: ARG002 - nothing is left
    ) -> _AppendReader:
        return _AppendReader(self)

    def settle(
        self,
        left_over: Sequence[bytes],  # noqa: ARG002
        place: StagingPlace | None = None,  # noqa: ARG002
    ) -> NothingLeft:
        return NothingLeft()


class _AppendReader(RowByRow):
    def __init__(self, feed: AppendFeed) -> None:
        super().__init__()
        self._feed = feed

    def changes_of(self, batch: pa.RecordBatch) -> Iterable[Ordered]:
        feed = self._feed
        if not batch.num_rows:
            return ()
        changes = Changes.of(
            feed.table,
            feed.key_columns,
            op=pa.array(np.full(batch.num_rows, int(feed.op), np.int8)),
            after=conformed(batch, feed.rows, feed.table),
            ts=pa.array(np.full(batch.num_rows, feed.ts_ms, np.int64)),
        )
        return ((0, changes),)
