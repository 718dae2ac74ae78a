"""Which offsets a log gets that is restored from Kafka, and which topics it is restored from."""

from __future__ import annotations

import numpy as np
import pytest

from duolog.bridge.kafka.restore.numbering import Numbering, Offsets
from duolog.bridge.kafka.restore.records import Pieces
from duolog.bridge.kafka.restore.sources import names_of
from duolog.errors import InvalidRequest, KafkaOffsetsHaveGaps, NotFound
from duolog.log.mirror_model import Run

Taken = list[list[int]]


def numbered(start: int, pieces: Taken, end: int, offsets: Offsets) -> Numbering:
    numbering = Numbering("orders", 0, start, offsets)
    for piece in pieces:
        numbering.take(np.array(piece, np.int64))
    numbering.end(end)
    return numbering


@pytest.mark.parametrize("offsets", Offsets)
@pytest.mark.parametrize(
    ("start", "pieces", "end", "runs"),
    [
        (0, [], 0, ()),
        (7, [], 7, ()),
        (0, [[0, 1, 2]], 3, (Run(0, 0, 3),)),
        (5, [[5], [6, 7]], 8, (Run(5, 5, 3),)),
    ],
)
def test_without_gaps_offsets_are_kafkas(
    start: int, pieces: Taken, end: int, runs: tuple[Run, ...], offsets: Offsets
) -> None:
    numbering = numbered(start, pieces, end, offsets)
    assert (numbering.runs, numbering.next_log) == (runs, end)


@pytest.mark.parametrize(
    ("start", "pieces", "end", "runs"),
    [
        (0, [[0, 1, 3]], 4, (Run(0, 0, 2), Run(2, 3, 1))),  # in a piece
        (0, [[0, 1], [3, 4]], 5, (Run(0, 0, 2), Run(2, 3, 2))),  # between two
        (5, [[7, 8]], 9, (Run(5, 7, 2),)),  # before the first
        (0, [[0, 1]], 4, (Run(0, 0, 2),)),  # behind the last
        (3, [[]], 9, ()),  # nothing else
        (0, [[1, 3, 5]], 6, (Run(0, 1, 1), Run(1, 3, 1), Run(2, 5, 1))),
    ],
)
def test_gaps_are_refused_or_left_out(
    start: int, pieces: Taken, end: int, runs: tuple[Run, ...]
) -> None:
    numbering = numbered(start, pieces, end, Offsets.RENUMBER)
    assert numbering.runs == runs
    assert numbering.next_log == start + sum(map(len, pieces))
    with pytest.raises(KafkaOffsetsHaveGaps, match="'orders' partition 0"):
        numbered(start, pieces, end, Offsets.KAFKA)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], {"a": "a", "b.c": "b.c"}),
        (["a"], {"a": "a"}),
        (["b.c=orders", "a"], {"b.c": "orders", "a": "a"}),
        (["__own"], {"__own": "__own"}),
    ],
)
def test_topics_are_all_but_kafkas_own_or_those_that_are_named(
    wanted: list[str], found: dict[str, str]
) -> None:
    assert names_of(wanted, ["__own", "b.c", "a"]) == found


def test_topics_that_are_not_there_or_collide_are_refused() -> None:
    with pytest.raises(NotFound, match="'x'"):
        names_of(["x"], ["a"])
    with pytest.raises(NotFound, match="no topics"):
        names_of([], ["__own"])
    with pytest.raises(InvalidRequest, match="one name"):
        names_of(["a=c", "b=c"], ["a", "b"])


def test_pieces_grow_slowly_and_shrink_at_once_so_that_memory_is_bounded() -> None:
    pieces = Pieces()
    assert pieces.records == 64
    pieces.saw(64, 6400)
    assert pieces.records == 256
    for _ in range(10):
        pieces.saw(pieces.records, pieces.records * 100)
    assert pieces.records == 20_000
    pieces.saw(20_000, 20_000 << 20)  # 1 MiB each
    assert pieces.records == 32
    pieces.saw(0, 0)
    assert pieces.records == 128
    pieces.saw(1, 1 << 30)
    assert pieces.records == 1
