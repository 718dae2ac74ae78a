"""Mirrors as they are stored: old versions stay readable, and only what changed is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duolog.errors import UnsupportedFormat
from duolog.log.mirror_control import StoredModes, load_modes, write_modes
from duolog.log.mirror_model import (
    Mirror,
    MirrorTarget,
    OffsetHeader,
    Pruned,
    Run,
    Skip,
    SkipReason,
)
from duolog.log.mirror_modes import MirrorMode
from duolog.log.mirrors import load_mirrors, write_mirror
from duolog.log.model import TopicPartition
from duolog.log.store import WriteBatch

WHERE = TopicPartition(3, 1)
PLACE = bytes.fromhex("0000000300000001")
TARGET = MirrorTarget("c", "orders", "id", 7, 0, 5, 6)
MIRROR = Mirror(
    "", 1, 4, TARGET, (Run(5, 6, 10), Run(16, 16, 2, 1)), (Skip(15, 1, SkipReason.GONE),)
)
VERSION_1 = {
    b"m" + PLACE: b'{"v":1,"version":4,"target":{"cluster_id":"c","kafka_topic":"orders",'
    b'"kafka_topic_id":"id","producer_id":7,"producer_epoch":0,"begin_log_offset":5,'
    b'"begin_kafka_offset":6}}',
    b"r" + PLACE + bytes.fromhex("0000000000000005"): bytes.fromhex(
        "010000000000000006000000000000000a0000000000000000"
    ),
    b"r" + PLACE + bytes.fromhex("0000000000000010"): bytes.fromhex(
        "01000000000000001000000000000000020000000000000001"
    ),
    b"s" + PLACE + bytes.fromhex("000000000000000f"): bytes.fromhex("01000000000000000102"),
}
MIRROR_2 = replace(
    MIRROR,
    offset_headers=(OffsetHeader(5, "at"), OffsetHeader(9, None)),
    pruned=Pruned(5, 6, 3),
    copied_at=30,
    settled_upto=28,
)
VERSION_2 = {
    **VERSION_1,
    b"m" + PLACE: VERSION_1[b"m" + PLACE].replace(b'"v":1', b'"v":2')[:-2]
    + b',"restored_kafka_offset":0},"offset_headers":[[5,"at"],[9,null]],"pruned":[5,6,3],'
    b'"copied_at":30,"settled_upto":28}',
}


class Stored:
    """What a family holds, as a store scans it."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self.entries = dict(entries)

    def scan(self, family: str, lower: bytes, upper: bytes) -> list[tuple[bytes, bytes]]:
        assert family == "mirror"
        return [(key, v) for key, v in sorted(self.entries.items()) if lower <= key < upper]

    def take(self, batch: WriteBatch) -> list[tuple[str, bytes]]:
        for kind, _, key, value in batch.operations:
            if kind == "put":
                self.entries[key] = value
            else:
                del self.entries[key]
        return [(kind, key[:1]) for kind, _, key, _ in batch.operations]


def write(stored: Stored, before: Mirror | None, now: Mirror | None) -> list[tuple[str, bytes]]:
    batch = WriteBatch()
    write_mirror(batch, WHERE, before, now)
    return stored.take(batch)


def loaded(stored: Stored) -> dict[TopicPartition, Mirror]:
    store: Any = stored
    return load_mirrors(store)


def test_version_1_stays_readable() -> None:
    assert loaded(Stored(VERSION_1)) == {WHERE: MIRROR}


def test_what_is_written() -> None:
    stored = Stored({})
    write(stored, None, MIRROR_2)
    assert stored.entries == VERSION_2
    assert loaded(stored) == {WHERE: MIRROR_2}


def test_what_was_stored_as_version_1_is_changed_as_version_2() -> None:
    stored = Stored(VERSION_1)
    write(stored, MIRROR, MIRROR_2)
    assert stored.entries == VERSION_2


def test_a_prefix_that_is_forgotten_is_deleted_and_no_more_is_written() -> None:
    runs = tuple(Run(n * 10, n * 10, 8, n) for n in range(1_000))
    skips = tuple(Skip(n * 10 + 8, 1, SkipReason.GONE) for n in range(1_000))
    many = replace(MIRROR, runs=runs, skips=skips)
    stored = Stored({})
    write(stored, None, many)
    few = replace(many.pruned_by(900, 850), runs=(*runs[900:-1], runs[-1].cut(9)))
    done = write(stored, many, few)
    assert done.count(("delete", b"r")) == 901
    assert done.count(("delete", b"s")) == 850
    assert done.count(("put", b"r")) == 1
    assert ("put", b"s") not in done
    assert loaded(stored) == {WHERE: few}


def test_modes_are_stored_and_loaded() -> None:
    stored = Stored({})
    before, modes = StoredModes(), StoredModes(MirrorMode.PAUSED, {7: MirrorMode.DETACHED})
    batch = WriteBatch()
    write_modes(batch, before, modes)
    stored.take(batch)
    assert stored.entries == {
        b"c": b'{"v":1,"mode":"paused"}',
        b"c" + bytes.fromhex("00000007"): b'{"v":1,"mode":"detached"}',
    }
    store: Any = stored
    assert load_modes(store) == modes
    batch = WriteBatch()
    write_modes(batch, modes, before)
    stored.take(batch)
    assert stored.entries == {}
    store = Stored({b"c": b'{"v":2,"mode":"asleep"}'})
    with pytest.raises(UnsupportedFormat, match="version 2"):
        load_modes(store)


@pytest.mark.parametrize("kind", [b"m", b"r", b"s"])
def test_a_newer_version_is_refused(kind: bytes) -> None:
    newer = {
        key: value.replace(b'"v":1', b'"v":9') if kind == b"m" else b"\x09" + value[1:]
        for key, value in VERSION_1.items()
        if key.startswith(kind)
    }
    with pytest.raises(UnsupportedFormat, match="version 9"):
        loaded(Stored({**VERSION_1, **newer}))


def test_only_what_has_changed_is_written() -> None:
    stored = Stored(VERSION_1)
    grown = replace(MIRROR, runs=(MIRROR.runs[0], Run(16, 16, 9, 1)))
    assert write(stored, MIRROR, grown) == [("put", b"m"), ("delete", b"r"), ("put", b"r")]
    more = replace(grown, runs=(*grown.runs, Run(25, 40, 1, 1)))
    assert write(stored, grown, more) == [("put", b"m"), ("put", b"r")]
    skipped = replace(more, skips=(*more.skips, Skip(26, 1, SkipReason.TOO_LARGE)))
    assert write(stored, more, skipped) == [("put", b"m"), ("put", b"s")]
    assert loaded(stored) == {WHERE: skipped}
    cut = replace(skipped, runs=skipped.runs[:1])
    assert write(stored, skipped, cut) == [("put", b"m"), ("delete", b"r"), ("delete", b"r")]
    assert loaded(stored) == {WHERE: cut}
    write(stored, cut, None)
    assert stored.entries == {}


def test_a_mirror_of_a_restored_log_knows_what_others_had_written() -> None:
    restored = replace(MIRROR_2, target=replace(TARGET, restored_kafka_offset=9))
    stored = Stored({})
    write(stored, None, restored)
    assert b'"restored_kafka_offset":9' in stored.entries[b"m" + PLACE]
    assert loaded(stored) == {WHERE: restored}


def test_a_skip_of_damage_has_a_version_that_an_older_duolog_refuses() -> None:
    skipped = replace(MIRROR, skips=(*MIRROR.skips, Skip(40, 3, SkipReason.DAMAGED)))
    stored = Stored(dict(VERSION_1))
    write(stored, MIRROR, skipped)
    key = b"s" + PLACE + bytes.fromhex("0000000000000028")
    assert stored.entries[key] == bytes.fromhex("02000000000000000303")
    assert loaded(stored) == {WHERE: skipped}
