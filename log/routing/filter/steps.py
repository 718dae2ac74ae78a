"""A checked filter as steps to run: each makes one column out of whole columns.

A step's values are an Arrow array with as many values as there are rows, or one Arrow scalar that
stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter.kinds import TEXT, Type
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duolog.log.routing.filter.tree import Node

Values: TypeAlias = Any
Array: TypeAlias = Any


def count(mask: Array) -> int:
    """How often a mask is true."""
    # Not `mask.true_count`: pyarrow 15 crashes on it when there are no rows.
    return int(pc.sum(mask, min_count=0).as_py())


class Rows:
    """Some rows. Columns are brought into their working type when first asked for."""

    def __init__(self, count: int, load: Callable[[Any], Array], room: Room) -> None:
        self.count = count
        self.room = room
        self._load = load
        self._columns: dict[Any, Array] = {}
        self._all = self
        self._places: Any = None  # of these rows among all

    def column(self, name: Any) -> Array:
        if name not in self._columns:
            self._columns[name] = self._load(name)
            if self._all is not self:  # a copy of some rows
                self.room.take(name, self._columns[name])
        return self._columns[name]

    def where(self, mask: Array) -> Rows:
        """Only the rows for which the mask, which has no nulls, is true."""
        # Taken from all rows, not from these: a CASE of many branches makes no tower of rows.
        every, chosen = self._all, np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        places = chosen if self._places is None else self._places[chosen]
        rows = Rows(len(places), lambda name: every.column(name).take(pa.array(places)), self.room)
        rows._all, rows._places = every, places
        return rows


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the filter whose type is known, so that it can be run.

    `may_fail`: its values decide whether it can be calculated, so it is not run on rows that the
    rest of the filter has already decided.
    """

    node: Node
    type: Type
    run: Callable[[Rows], Values]
    may_fail: bool = False
    constant: Values = None  # its only value, as an Arrow scalar

    def whole(self, rows: Rows) -> Array:
        """Its values as an array, also when they are all the same."""
        values = self.run(rows)
        if not isinstance(values, pa.Scalar):
            return values
        if values.type == TEXT and values.is_valid:
            rows.room.check(self.node, rows.count * values.as_buffer().size)
        repeated = pa.repeat(values, rows.count)
        rows.room.take(self.node, repeated)
        return repeated


def constant(node: Node, value: Values) -> Step:
    """A step of one value for all rows."""
    return Step(node, value.type, lambda _: value, constant=value)


def nothing(node: Node, type_: Type) -> Step:
    """NULL, as a value of this type."""
    return constant(node, pa.scalar(None, type_))


def unknown(node: Node) -> Step:
    """A step whose type depends on columns that are not known yet; it is never run."""
    return Step(node, None, lambda _: None)


def step(
    node: Node,
    type_: Type,
    parts: Sequence[Step],
    kernel: Callable[..., Values],
    *,
    fails: bool = False,
    whole: bool = False,
    size: Callable[..., int] | None = None,
) -> Step:
    """The step that gives the parts' values to a kernel; whole: as arrays, never as scalars.

    `size`: how many bytes the kernel makes of these values, where that can be many more.
    """

    def run(rows: Rows) -> Values:
        room = rows.room
        held_bytes = room.held_bytes
        values = [part.whole(rows) if whole else part.run(rows) for part in parts]
        if size is not None:
            room.check(node, size(*values))
        made = guarded(node, kernel, *values)
        room.replace(node, held_bytes, made)
        return made

    return Step(node, type_, run, fails or any(part.may_fail for part in parts))


def folded(made: Step, *parts: Step) -> Step:
    """The step as a constant, if its parts are: then its mistakes show before any row comes."""
    if any(part.constant is None for part in parts):
        return made
    return constant(made.node, made.whole(Rows(1, lambda _: None, Room()))[0])


def guarded(node: Node, kernel: Callable[..., Values], *values: Values) -> Values:
    """What the kernel makes of the values. What it cannot make anything of is named."""
    try:
        return kernel(*values)
    except Refusal as refusal:
        raise Mistake(node, str(refusal)) from None
    except pa.ArrowException as error:
        raise Mistake(node, _explained(str(error))) from error


def _explained(error: str) -> str:
    if "overflow" in error or "Integer value" in error:
        return "the result goes beyond 64 bits."
    if "not fit in precision" in error or "data loss" in error:
        return "the result has too many digits for its decimal type."
    return f"this cannot be calculated: {error}."


class Refusal(Exception):
    """Raised by a kernel: these values have no result."""


def scatter(values: Array, mask: Array) -> Array:
    """Values for the rows of a mask, put back to their places; NULL in the others."""
    places = np.cumsum(mask.to_numpy(zero_copy_only=False)) - 1
    return values.take(pa.array(places, mask=~mask.to_numpy(zero_copy_only=False)))


class Pieces:
    """A column that is made piece by piece, each for the rows that are still open."""

    def __init__(self, rows: Rows) -> None:
        self.open = rows
        self._places = np.arange(rows.count)
        self._done: list[tuple[Array, Array]] = []

    def settle(self, mask: Array, values: Array) -> None:
        """Give the open rows of the mask their values; the others stay open."""
        chosen = mask.to_numpy(zero_copy_only=False)
        self._done.append((self._places[chosen], values))
        self.open = self.open.where(pc.invert(mask))
        self._places = self._places[~chosen]

    def settle_rest(self, values: Array) -> None:
        """Give all rows that are still open their values."""
        self._done.append((self._places, values))

    def column(self) -> Array:
        """All rows, in their order. None may be open."""
        places = np.concatenate([places for places, _ in self._done])
        values = pa.concat_arrays([values for _, values in self._done])
        return values.take(pa.array(np.argsort(places)))
