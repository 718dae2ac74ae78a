"""What of a topic a query can need at most. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Partitions, offsets (both ends included) and the earliest time. None is without limit."""

    partitions: frozenset[int] | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    from_ms: int | None = None

    def __and__(self, other: Span) -> Span:
        """What lies in both."""
        return Span(
            other.partitions
            if self.partitions is None
            else self.partitions
            if other.partitions is None
            else self.partitions & other.partitions,
            _highest(self.first_offset, other.first_offset),
            other.last_offset
            if self.last_offset is None
            else self.last_offset
            if other.last_offset is None
            else min(self.last_offset, other.last_offset),
            _highest(self.from_ms, other.from_ms),
        )

    def __or__(self, other: Span) -> Span:
        """The smallest span that holds both; it may hold more."""
        return Span(
            None
            if self.partitions is None or other.partitions is None
            else self.partitions | other.partitions,
            _lowest(self.first_offset, other.first_offset),
            None
            if self.last_offset is None or other.last_offset is None
            else max(self.last_offset, other.last_offset),
            _lowest(self.from_ms, other.from_ms),
        )


EVERYTHING = Span()
FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def span_of(column: str, op: str, value: int) -> Span:
    """Where this comparison can be true. Milliseconds for `ts`, which has no latest offset:
    a record with an early time may come behind one with a late time."""
    match column, op:
        case "partition", "=":
            return Span(partitions=frozenset({value}))
        case "offset", "=":
            return Span(first_offset=value, last_offset=value)
        case "offset", ">":
            return Span(first_offset=value + 1)
        case "offset", ">=":
            return Span(first_offset=value)
        case "offset", "<":
            return Span(last_offset=value - 1)
        case "offset", "<=":
            return Span(last_offset=value)
        case "ts", "=" | ">=":
            return Span(from_ms=value)
        case "ts", ">":
            return Span(from_ms=value + 1)
    return EVERYTHING


def _highest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _lowest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
