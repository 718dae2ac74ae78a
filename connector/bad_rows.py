"""Bad rows apart from good ones: whole batches first, fewer rows only where one is refused.

It costs nothing while all rows are good. A batch that is refused is halved, and each half tried
again, until the rows that nobody can write stand alone. Rows that are wrong in a way that can be
seen are found a column at a time, since whole sources go wrong that way. Runs in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duolog.errors import (
    AmbiguousKey,
    DuologError,
    InvalidRequest,
    InvalidSetting,
    NotFound,
    VersionCut,
)

_OF_ROWS = (InvalidRequest, NotFound)
_OF_ALL_ROWS = (AmbiguousKey, InvalidSetting, VersionCut)  # no row is better than another


class BadRecords(StrEnum):
    """What to do with rows that cannot be written."""

    FAIL = "fail"
    DLQ = "dlq"


class Rows(Protocol):
    """A batch of rows, or of changes."""

    def __len__(self) -> int: ...
    def slice(self, offset: int, length: int) -> Self: ...


@dataclass(frozen=True, slots=True)
class Bad:
    """Rows that are refused, all for one reason."""

    rows: Any
    refusal: DuologError


R = TypeVar("R", bound=Rows)
T = TypeVar("T")
Suspects = Callable[[Any], npt.NDArray[np.int64]]
"""A number for each row: those of one number are wrong in one way; 0 is no suspicion."""


def sift(rows: R, attempt: Callable[[R], T], suspects: Suspects | None = None) -> Iterator[T | Bad]:
    """What the attempt makes of the rows that it takes, in their order, and those it refuses.

    An attempt must either take all its rows or leave no trace of them. Rows that are looked at by
    `suspects` are a pa.RecordBatch.
    """
    tried = _tried(rows, attempt)
    if not isinstance(tried, Bad):
        yield tried
    elif suspects is None:
        yield from _halved(tried, attempt)
    else:
        yield from _suspected(rows, attempt, suspects(rows))


def _suspected(
    rows: Any, attempt: Callable[[Any], T], numbers: npt.NDArray[np.int64]
) -> Iterator[T | Bad]:
    """One row of a number speaks for all of them."""
    left = np.ones(len(rows), np.bool_)
    order = np.argsort(numbers, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if not numbers[group[0]]:
            continue
        first = _tried(rows.slice(int(group[0]), 1), attempt)
        if isinstance(first, Bad):
            yield Bad(rows.take(pa.array(group)), first.refusal)
            left[group] = False
    yield from sift(rows if left.all() else rows.take(pa.array(np.flatnonzero(left))), attempt)


def _halved(bad: Bad, attempt: Callable[[R], T]) -> Iterator[T | Bad]:
    waiting: list[tuple[R, Bad | None]] = [(bad.rows, bad)]
    while waiting:
        rows, refused = waiting.pop()
        tried = _tried(rows, attempt) if refused is None else refused
        if not isinstance(tried, Bad) or len(rows) <= 1:
            yield tried
            continue
        half = len(rows) // 2
        waiting += [(rows.slice(half, len(rows) - half), None), (rows.slice(0, half), None)]


def _tried(rows: R, attempt: Callable[[R], T]) -> T | Bad:
    try:
        return attempt(rows)
    except _OF_ALL_ROWS:
        raise
    except _OF_ROWS as refusal:
        return Bad(rows, refusal)
