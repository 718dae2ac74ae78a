"""How group positions move: the whole table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.errors import PositionChanged
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.model import Side
from duolog.log.positions import (
    StoredPosition,
    acknowledged,
    check_version,
    first,
    moved,
    pack_position,
    unpack_position,
)

AT_5 = StoredPosition(5, 3, 1000, Side.KAFKA)


@pytest.mark.parametrize(
    ("current", "position", "expected"),
    [
        (None, 0, StoredPosition(0, 1, 2000, Side.NATIVE)),
        (None, 7, StoredPosition(7, 1, 2000, Side.NATIVE)),
        (AT_5, 4, AT_5),
        (AT_5, 5, AT_5),
        (AT_5, 6, StoredPosition(6, 4, 2000, Side.NATIVE)),
    ],
)
def test_an_ack_never_moves_back(
    current: StoredPosition | None, position: int, expected: StoredPosition
) -> None:
    assert acknowledged(current, position, 2000, Side.NATIVE) == expected


def test_a_move_goes_anywhere_and_counts() -> None:
    assert moved(AT_5, 0, 2000, Side.NATIVE) == StoredPosition(0, 4, 2000, Side.NATIVE)
    assert moved(AT_5, 5, 2000, Side.NATIVE).version == 4


@pytest.mark.parametrize(("current", "version", "fits"), [
    (None, 0, True), (None, 1, False), (AT_5, 3, True), (AT_5, 2, False), (AT_5, 0, False),
])  # fmt: skip
def test_compare(current: StoredPosition | None, version: int, fits: bool) -> None:
    if fits:
        check_version(current, version)
    else:
        with pytest.raises(PositionChanged):
            check_version(current, version)


def test_a_position_is_stored_whole_and_version_1_stays_readable() -> None:
    assert unpack_position(pack_position(AT_5)) == AT_5
    assert unpack_position(b'{"v":1,"position":5,"version":3,"at":1000,"by":"kafka"}') == AT_5


SEEN = KafkaSeen(foreign=7, floor=5, conflicts=1, writing=KafkaWrite("n1", 9, 7, 41, 5))


@pytest.mark.parametrize("seen", [SEEN, KafkaSeen(ours=3, one_way=True)])
def test_what_is_remembered_of_kafka_is_stored_with_it(seen: KafkaSeen) -> None:
    position = replace(AT_5, kafka=seen)
    assert unpack_position(pack_position(position)) == position
    assert moved(position, 7, 2000, Side.NATIVE).kafka == seen


def test_version_2_stays_readable() -> None:
    packed = (
        b'{"v":2,"position":5,"version":3,"at":1000,"by":"kafka","kafka":{"foreign":7,"ours":null,'
        b'"floor":5,"one_way":false,"conflicts":1,"writing":{"nonce":"n1","offset":9,'
        b'"based_on":7,"feed_from":41,"floor_before":5}}}'
    )
    assert unpack_position(packed) == replace(AT_5, kafka=SEEN)
    assert pack_position(replace(AT_5, kafka=SEEN)) == packed


def test_a_beginning_is_stored_so_that_an_older_duolog_reads_it() -> None:
    begun = first(7, 5)
    assert unpack_position(pack_position(begun)) == begun
    assert pack_position(begun) == (
        b'{"v":1,"position":7,"version":1,"at":5,"by":"native","first":true}'
    )
    assert unpack_position(b'{"v":1,"position":7,"version":1,"at":5,"by":"native"}') == replace(
        begun, is_first=False
    )
