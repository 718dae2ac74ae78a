"""Null or not, and which branch of a union: what stands before a value, or forbids it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.avro.encode.buffers import validity
from duolog.avro.encode.node import Node, Unfit
from duolog.avro.encode.pieces import Presence, both, constant, varints_where, words_where
from duolog.avro.varint import varint

if TYPE_CHECKING:
    import numpy.typing as npt

    from duolog.avro.encode.pieces import Piece

_ONE_BYTE = 64  # so many branches have a number of one byte


@dataclass(frozen=True, slots=True)
class Required:
    """A value that may not be null."""

    path: str
    inner: Node

    @property
    def weight(self) -> int:
        return self.inner.weight

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        valid = validity(values)
        if valid is None:
            return self.inner.pieces(values, present)
        missing = ~valid if present is None else ~valid & present.flags
        if missing.any():
            raise Unfit(
                int(np.flatnonzero(missing)[0]),
                self.path,
                "it is null, which the schema does not allow there. Filter such rows, fill the "
                "column, or make the schema's field nullable.",
            )
        return self.inner.pieces(values, present)


@dataclass(frozen=True, slots=True)
class Branch:
    """A value of one branch of a union. `null`: the branch of null, if the union has it."""

    branch: int
    null: int | None
    inner: Node  # Required, when there is no null

    @property
    def weight(self) -> int:
        return self.inner.weight + 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        valid = None if self.null is None else validity(values)
        if valid is None or self.null is None:
            number = constant(varint(self.branch), present, len(values))
            return [*number, *self.inner.pieces(values, present)]
        return [
            *self._numbers(valid, self.null, present),
            *self.inner.pieces(values, both(present, Presence(valid))),
        ]

    def _numbers(
        self, valid: npt.NDArray[np.bool_], null: int, present: Presence | None
    ) -> list[Piece]:
        if self.branch + null == 1:  # one of two, as a byte of 0 or 2
            second = valid if self.branch else ~valid
            return [words_where(present, second.astype(np.uint64) << np.uint64(1), 1, 1)]
        return _numbers(np.where(valid, self.branch, null), present)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of several types from struct<member0, member1 ...>, of which one is not null."""

    path: str
    branches: tuple[int, ...]  # of each member
    null: int | None
    members: tuple[Node, ...]

    @property
    def weight(self) -> int:
        return 1 + sum(member.weight for member in self.members)

    def pieces(self, values: pa.StructArray, present: Presence | None) -> list[Piece]:
        outer = validity(values)
        columns = [values.field(place) for place in range(len(self.members))]
        chosen = np.zeros(len(values), np.int64)
        numbers = np.zeros(len(values), np.int64)
        flags = []
        for column, branch in zip(columns, self.branches, strict=True):
            valid = validity(column)
            if valid is None:
                valid = np.ones(len(values), np.bool_)
            if outer is not None:
                valid &= outer
            chosen += valid
            numbers += valid * branch
            flags.append(valid)
        self._check(chosen, present)
        if self.null is not None:
            numbers[chosen == 0] = self.null
        pieces = _numbers(numbers, present)
        for member, column, valid in zip(self.members, columns, flags, strict=True):
            pieces += member.pieces(column, both(present, Presence(valid)))
        return pieces

    def _check(self, chosen: npt.NDArray[np.int64], present: Presence | None) -> None:
        wrong = chosen > 1 if self.null is not None else chosen != 1
        rows = np.flatnonzero(wrong if present is None else wrong & present.flags)
        if len(rows):
            row = int(rows[0])
            raise Unfit(
                row,
                self.path,
                f"{int(chosen[row])} members of the union have a value. One has to be not null."
                if chosen[row]
                else "no member of the union has a value, and the schema's union has no null.",
            )


def _numbers(branches: npt.NDArray[np.int64], present: Presence | None) -> list[Piece]:
    if int(branches.max()) < _ONE_BYTE:
        return [words_where(present, (branches << 1).view(np.uint64), 1, 1)]
    return varints_where(present, branches)
