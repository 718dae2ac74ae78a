"""Which task reads what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from duolog.connector.source.choice import Place


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition that one task reads, `end` excluded."""

    place: Place
    start: int
    end: int

    @property
    def count(self) -> int:
        return self.end - self.start


def split(
    ranges: Sequence[Range], min_partitions: int | None, max_records: int | None
) -> list[Range]:
    """The ranges that have records, cut where more tasks are wanted or a task would get too much.

    As for Kafka's source, `min_partitions` is met about: small ranges stay whole, large ones are
    cut in proportion to their size.
    """
    pieces = [range_ for range_ in ranges if range_.count > 0]
    if max_records is not None:
        pieces = [part for whole in pieces for part in _cut(whole, -(-whole.count // max_records))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(piece.count for piece in pieces)
    small = {piece for piece in pieces if _share(piece, total, min_partitions) == 1}
    left = total - sum(piece.count for piece in small)
    wanted = max(min_partitions - len(small), 1)
    return [
        part
        for piece in pieces
        for part in _cut(piece, 1 if piece in small else _share(piece, left, wanted))
    ]


def _share(piece: Range, total: int, parts: int) -> int:
    return max(round(piece.count / total * parts), 1)


def _cut(whole: Range, parts: int) -> list[Range]:
    parts = min(parts, whole.count)
    bounds = [whole.start + whole.count * part // parts for part in range(parts + 1)]
    return [Range(whole.place, *pair) for pair in pairwise(bounds)]
