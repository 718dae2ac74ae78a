"""What every change feed promises: rows as Spark has them in, changes of one table out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duolog.log.routing.changes import Changes
    from duolog.log.staging import StagingPlace

Ordered = tuple[int, "Changes"]
"""Changes with their order: of one key's changes, those of a lower order came first.

Changes of the same order stand in the order in which their task hands them over, and no key has
changes of the same order in two tasks.
"""


@dataclass(frozen=True, slots=True)
class FeedCounts:
    """What is worth telling of a feed's rows."""

    old_unknown: int = 0  # updates whose old row did not come with them
    passed_over: int = 0  # rows that say nothing of the table: tombstones, messages

    def __add__(self, other: FeedCounts) -> FeedCounts:
        return FeedCounts(
            self.old_unknown + other.old_unknown, self.passed_over + other.passed_over
        )


class FeedReader(Protocol):
    """Reads the batches of one task."""

    counts: FeedCounts

    def changes_of(self, batch: pa.RecordBatch) -> Iterable[Ordered]:
        """The changes that are complete with this batch.

        Where it raises InvalidRows, nothing of the batch is kept: the rows may come again, fewer
        at a time.
        """

    def finish(self) -> Iterable[Ordered]:
        """Those that were completed by the last one."""

    def left_over(self) -> bytes | None:
        """What only the driver can complete, once `finish` is through: a message for `settle`."""

    def versions(self) -> tuple[int, int] | None:
        """The lowest and the highest version so far, of a table whose versions never come again."""

    def abort(self) -> None:
        """Throw away what was staged, when the task fails."""


class Feed(Protocol):
    """One feed of one table. Made on the driver, taken along to the tasks."""

    @property
    def table(self) -> str: ...

    @property
    def key_columns(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> pa.Schema:
        """The columns of the table's rows, without those of the feed. All changes have them."""

    @property
    def found(self) -> str:
        """Which feed this is and by what it was known, for people."""

    def at(self, ts_ms: int) -> Feed:
        """The same feed, with this time for changes that carry none.

        A write that is repeated must give it the time of the first try.
        """

    def reader(self, place: StagingPlace | None = None) -> FeedReader:
        """A reader for one task; what is left over and large is staged in the place."""

    def settle(self, left_over: Sequence[bytes], place: StagingPlace | None = None) -> Settled:
        """The changes that tasks could not complete, from all their messages."""


class Settled(Protocol):
    """Iterated once; the counts are right when it is through."""

    counts: FeedCounts

    def __iter__(self) -> Iterator[Ordered]: ...


class RowByRow:
    """What readers share whose rows are each a whole change."""

    def __init__(self) -> None:
        self.counts = FeedCounts()

    def finish(self) -> Iterable[Ordered]:
        return ()

    def left_over(self) -> None:
        return None

    def versions(self) -> None:
        return None

    def abort(self) -> None:
        return None


class NothingLeft:
    """For feeds whose rows are each a whole change."""

    def __init__(self) -> None:
        self.counts = FeedCounts()

    def __iter__(self) -> Iterator[Ordered]:
        return iter(())
