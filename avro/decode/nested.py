"""Readers of records and unions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.avro.decode.columns import bitmap, merged, of_children
from duolog.avro.decode.page import Cursor, Suspect
from duolog.avro.decode.reader import SOME_BYTES, Extent, Reader
from duolog.avro.decode.scan import WRONG_READER, Fault, Scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from duolog.avro.decode.columns import Piece


@dataclass(frozen=True, slots=True)
class Member:
    """A field as it is written. `place` is its index in the struct; None: it is passed over."""

    name: str
    reader: Reader
    place: int | None


@dataclass(frozen=True, eq=False)
class RecordReader:
    """Fields one behind the other, and those that were not written with their default."""

    type: pa.DataType
    members: tuple[Member, ...]
    defaults: tuple[tuple[int, pa.Array], ...] = ()  # place, and one value

    @cached_property
    def extent(self) -> Extent:
        return Extent.following(member.reader.extent for member in self.members)

    def read(self, cursor: Cursor) -> pa.Array:
        rows = len(cursor)
        children: list[pa.Array] = [None] * self.type.num_fields
        for member in self.members:
            if member.place is None:
                member.reader.skip(cursor)
            else:
                children[member.place] = member.reader.read(cursor)
        for place, value in self.defaults:
            children[place] = value.take(pa.array(np.zeros(rows, np.int32)))
        return of_children(self.type, rows, children)

    def skip(self, cursor: Cursor) -> None:
        if self.extent.exactly is not None:
            cursor.skip(self.extent.exactly)
            return
        for member in self.members:
            member.reader.skip(cursor)

    def scan(self, scan: Scan) -> None:
        for member in self.members:
            try:
                member.reader.scan(scan)
            except Fault as fault:
                raise fault.inside(member.name) from None


@dataclass(frozen=True, slots=True)
class Alternative:
    """One branch as it is written."""

    reader: Reader | None  # None: it cannot be read, for this reason
    member: int | None = None  # which member of the result it becomes; None: null
    reason: str = ""


@dataclass(frozen=True, eq=False)
class UnionReader:
    """One of several branches, which becomes null or one member.

    With one member, the result is that; with more, it is a struct of them all, of which at most
    one is not null. Without a tag there is one branch, and nothing in the bytes says so.
    """

    type: pa.DataType
    members: tuple[pa.DataType, ...]
    branches: tuple[Alternative, ...]
    is_tagged: bool = True

    @cached_property
    def extent(self) -> Extent:
        extents = [branch.reader.extent for branch in self.branches if branch.reader is not None]
        if not self.is_tagged:
            return extents[0]
        least = min(extent.least for extent in extents)
        return Extent.following((SOME_BYTES, Extent(least)))

    def read(self, cursor: Cursor) -> pa.Array:
        rows = len(cursor)
        pieces: list[list[Piece]] = [[] for _ in self.members]
        absent = np.zeros(rows, np.bool_)
        for branch, reader, places, part in self._parts(cursor):
            values = reader.read(part)
            if branch.member is None:
                absent[places] = True
            else:
                pieces[branch.member].append((places, values))
        columns = [
            merged(parts, rows, kind) for parts, kind in zip(pieces, self.members, strict=True)
        ]
        if not columns:
            return pa.nulls(rows, self.type)
        if len(columns) == 1:
            return columns[0]
        missing = int(np.count_nonzero(absent))
        validity = bitmap(~absent) if missing else None
        return pa.Array.from_buffers(self.type, rows, [validity], missing, children=columns)

    def skip(self, cursor: Cursor) -> None:
        for _, reader, _, part in self._parts(cursor):
            reader.skip(part)

    def scan(self, scan: Scan) -> None:
        written = scan.long() if self.is_tagged else 0
        if not 0 <= written < len(self.branches):
            raise Fault(f"it is branch {written} of a union that has {len(self.branches)}")
        branch = self.branches[written]
        if branch.reader is None:
            raise Fault(f"it is branch {written} of its union: {branch.reason}", WRONG_READER)
        branch.reader.scan(scan)

    def _parts(
        self, cursor: Cursor
    ) -> Iterator[tuple[Alternative, Reader, npt.NDArray[np.int64], Cursor]]:
        """The rows of each branch that occurs. When all are read, the cursor is behind them."""
        written = cursor.longs() if self.is_tagged else np.zeros(len(cursor), np.int64)
        lowest, highest = int(written.min()), int(written.max())
        if lowest < 0 or highest >= len(self.branches):
            raise Suspect
        moved = cursor.at.copy()
        for tag in range(lowest, highest + 1):
            places = np.flatnonzero(written == tag)
            if not len(places):
                continue
            branch = self.branches[tag]
            if branch.reader is None:
                raise Suspect
            part = Cursor(cursor.page, cursor.at[places])
            yield branch, branch.reader, places, part
            moved[places] = part.at
        cursor.move(moved)
