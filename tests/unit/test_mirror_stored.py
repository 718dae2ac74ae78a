"""Mirrors as they are stored: version 1 stays readable, and only what changed is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duolog.errors import UnsupportedFormat
from duolog.log.mirror_model import Mirror, MirrorTarget, Run, Skip, SkipReason
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


def test_version_1_stays_readable_and_is_what_is_written() -> None:
    assert loaded(Stored(VERSION_1)) == {WHERE: MIRROR}
    stored = Stored({})
    write(stored, None, MIRROR)
    assert stored.entries == VERSION_1


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
