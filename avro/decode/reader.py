"""What reads one type, and what is known of the length of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from duolog.avro.decode.page import Cursor, Page

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from duolog.avro.decode.scan import Scan

ROWS_AT_ONCE: Final = 16_384
"""So that the arrays in between stay in the processor's cache."""

_MOST_BYTES: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Extent:
    """How long a value is."""

    least: int  # bytes
    exactly: int | None = None  # when all values have that length
    is_varint: bool = False

    @classmethod
    def following(cls, extents: Iterable[Extent]) -> Extent:
        """Of values one behind the other."""
        parts = list(extents)
        exact = [part.exactly for part in parts if part.exactly is not None]
        least = min(sum(part.least for part in parts), _MOST_BYTES)
        return cls(least, sum(exact) if len(exact) == len(parts) else None)


NO_BYTES: Final = Extent(0, 0)
ONE_BYTE: Final = Extent(1, 1)
SOME_BYTES: Final = Extent(1)
VARINT: Final = Extent(1, is_varint=True)


class Reader(Protocol):
    """Reads values of one type, in all rows of a cursor together or in one.

    `read` and `skip` may raise Suspect and then leave the cursor anywhere; `scan` raises Fault,
    for all that makes `read` suspicious.
    """

    @property
    def type(self) -> pa.DataType: ...

    @property
    def extent(self) -> Extent: ...

    def read(self, cursor: Cursor) -> pa.Array:
        """A value from each row; there is at least one row."""

    def skip(self, cursor: Cursor) -> None:
        """Go on behind the value. What does not decide its length may go unseen."""

    def scan(self, scan: Scan) -> None:
        """Go on behind the value in one body, and look at all of it."""


def read_at(reader: Reader, page: Page, at: npt.NDArray[np.int64]) -> pa.Array:
    """A value from each of any number of places."""
    if not len(at):
        return pa.nulls(0, reader.type)
    if len(at) <= 2 * ROWS_AT_ONCE:
        return reader.read(Cursor(page, at))
    parts = range(0, len(at), ROWS_AT_ONCE)
    return pa.concat_arrays(
        [reader.read(Cursor(page, at[begin : begin + ROWS_AT_ONCE])) for begin in parts]
    )
