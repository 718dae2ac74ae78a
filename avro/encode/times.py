"""Dates, times of day and timestamps: whole numbers in another unit, where that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from duolog.avro.encode.buffers import numbers
from duolog.avro.encode.node import Unfit
from duolog.avro.encode.pieces import varints_where

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from duolog.avro.encode.pieces import Piece, Presence

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY_SECONDS: Final = 86_400
INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Counts of a unit of time, times or divided by a whole number, within bounds."""

    path: str
    kind: str  # numpy's name for what Arrow has
    called: str  # the Arrow type
    target: str  # the Avro type
    times: int
    divided_by: int
    bounds: tuple[int, int]
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        ticks = numbers(values, self.kind).astype(np.int64, copy=False)
        if self.times > 1:
            self._check(ticks, self._range(ticks, *self._bounds_before()), present)
            ticks = ticks * self.times
        elif self.divided_by > 1:
            whole = ticks // self.divided_by
            lost = whole * self.divided_by != ticks
            if lost.any():
                self._check(ticks, lost, present)
            ticks = whole
            self._check(ticks, self._range(ticks, *self.bounds), present, self.divided_by)
        else:
            self._check(ticks, self._range(ticks, *self.bounds), present)
        return varints_where(present, ticks)

    def _bounds_before(self) -> tuple[int, int]:
        lowest, highest = self.bounds
        return -(-lowest // self.times), highest // self.times

    @staticmethod
    def _range(
        ticks: npt.NDArray[np.int64], lowest: int, highest: int
    ) -> npt.NDArray[np.bool_] | None:
        """Which are outside; None when none is."""
        if (lowest, highest) == INT64 or (ticks.min() >= lowest and ticks.max() <= highest):
            return None
        return (ticks < lowest) | (ticks > highest)

    def _check(
        self,
        ticks: npt.NDArray[np.int64],
        wrong: npt.NDArray[np.bool_] | None,
        present: Presence | None,
        factor: int = 1,
    ) -> None:
        if wrong is None:
            return
        rows = np.flatnonzero(wrong if present is None else wrong & present.flags)
        if len(rows):
            row = int(rows[0])
            raise Unfit(
                row,
                self.path,
                f"{int(ticks[row]) * factor} of type {self.called} has no exact place in "
                f"{self.target}. Correct the value, or cast the column.",
            )
