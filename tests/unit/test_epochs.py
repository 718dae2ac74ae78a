"""Which epoch may follow which: the whole table."""

from __future__ import annotations

import pytest

from duolog.errors import EpochContentMismatch, EpochGap, EpochTooOld, WriterFault
from duolog.log.epochs import StoredEpoch, is_repeat, pack_epoch, unpack_epoch
from duolog.log.model import Mode, OffsetRange, Writer
from duolog.log.part import Fingerprint

STREAM, BATCH = Mode.STREAM, Mode.BATCH
SAME, OTHER = {1: Fingerprint(2, 1, 77)}, {1: Fingerprint(2, 1, 78)}
NEW, REPEAT = False, True


def stored(epoch: int) -> StoredEpoch:
    return StoredEpoch(epoch, (OffsetRange("orders", 0, 5, 7),), SAME, 0, 1)


@pytest.mark.parametrize(
    ("mode", "last", "epoch", "content", "outcome"),
    [
        (STREAM, None, 0, SAME, NEW),
        (STREAM, None, 1, SAME, EpochGap),
        (STREAM, 4, 5, SAME, NEW),
        (STREAM, 4, 5, OTHER, NEW),
        (STREAM, 4, 6, SAME, EpochGap),
        (STREAM, 4, 4, SAME, REPEAT),
        (STREAM, 4, 4, OTHER, EpochContentMismatch),
        (STREAM, 4, 4, {}, EpochContentMismatch),
        (STREAM, 4, 4, {**SAME, 2: Fingerprint(1)}, EpochContentMismatch),
        (STREAM, 4, 3, SAME, EpochTooOld),
        (STREAM, 4, 0, SAME, EpochTooOld),
        (BATCH, None, 0, SAME, NEW),
        (BATCH, None, 9, SAME, NEW),
        (BATCH, 4, 5, SAME, NEW),
        (BATCH, 4, 900, SAME, NEW),
        (BATCH, 4, 4, SAME, REPEAT),
        (BATCH, 4, 4, OTHER, EpochContentMismatch),
        (BATCH, 4, 3, SAME, EpochTooOld),
    ],
)
def test_which_epoch_may_follow(
    mode: Mode,
    last: int | None,
    epoch: int,
    content: dict[int, Fingerprint],
    outcome: bool | type[WriterFault],
) -> None:
    writer = Writer(mode, "query", "orders")
    before = None if last is None else stored(last)
    if isinstance(outcome, bool):
        assert is_repeat(writer, epoch, content, before) is outcome
    else:
        with pytest.raises(outcome, match="'query' to 'orders'"):
            is_repeat(writer, epoch, content, before)


def test_a_stream_may_be_told_to_begin_anywhere() -> None:
    writer = Writer(STREAM, "query", "orders")
    assert is_repeat(writer, 7, SAME, None, begin_anywhere=True) is NEW


def test_a_mismatch_says_what_differs() -> None:
    for content, said in [
        ({1: Fingerprint(3, 1, 77)}, "had 2 rows, now 3"),
        ({1: Fingerprint(2, 0, 77)}, "left out 1 rows, now 0"),
        (OTHER, "other keys or values"),
    ]:
        with pytest.raises(EpochContentMismatch, match=said):
            is_repeat(Writer(STREAM, "q", "t"), 4, content, stored(4))


def test_an_epoch_is_stored_whole_and_version_1_stays_readable() -> None:
    assert unpack_epoch(pack_epoch(stored(4))) == stored(4)
    old = (
        b'{"v":1,"epoch":4,"ranges":[["orders",0,5,7]],"fingerprints":{"1":[2,1,77]},'
        b'"duplicates_dropped":0,"at":1}'
    )
    assert unpack_epoch(old) == stored(4)


def test_fingerprints_add_up_in_any_order() -> None:
    one, two = Fingerprint(1, 2, 2**64 - 1), Fingerprint(3, 4, 5)
    assert one + two == two + one == Fingerprint(4, 6, 4)
