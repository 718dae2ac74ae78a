"""What is remembered of a record that was published with a sequence: the bytes of each version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.errors import UnsupportedFormat
from duolog.log.model import Op, PayloadMode, Record, TopicPartition
from duolog.log.published import VERSION, Published, content_of, pack_published, unpack_published

RECORD = Record(b"v", b"k", op=Op.UPDATE, table="a.b", payload=PayloadMode.FULL)
WHERE, OFFSET, AT_MS = TopicPartition(7, 2), 41, 1_700_000_000_000
STORED = {
    1: "01000000070000000200000000000000292094fc14099002c1f0517bb8d9456e83",
    2: "02000000070000000200000000000000292094fc14099002c1f0517bb8d9456e830000018bcfe56800",
    3: "0300000007000000020000000000000029ea0083c4a9c6c62d618f808f33a7920e0000018bcfe56800",
}
OTHERS = (
    replace(RECORD, op=Op.DELETE),
    replace(RECORD, table="a.c"),
    replace(RECORD, table=None),
    replace(RECORD, payload=PayloadMode.KEY),
    replace(RECORD, partition=1),
)


@pytest.mark.parametrize("version", STORED)
def test_each_version_is_read_and_written_as_it_was(version: int) -> None:
    stored = bytes.fromhex(STORED[version])
    published = unpack_published(stored)
    assert (published.where, published.offset) == (WHERE, OFFSET)
    assert published.at_ms == (None if version == 1 else AT_MS)
    assert pack_published(published) == stored
    assert published.is_of(RECORD)
    assert published.is_of(replace(RECORD, headers=(("h", b"1"),), ts_ms=5, partition=2))
    assert not published.is_of(replace(RECORD, value=b"w"))
    assert not published.is_of(replace(RECORD, key=None))


@pytest.mark.parametrize("other", OTHERS)
def test_older_versions_knew_key_and_value_alone(other: Record) -> None:
    known = {version: unpack_published(bytes.fromhex(each)) for version, each in STORED.items()}
    assert [version for version, each in known.items() if each.is_of(other)] == [1, 2]


def test_what_is_written_now_is_version_3() -> None:
    published = Published(WHERE, OFFSET, content_of(RECORD), AT_MS)
    assert pack_published(published).hex() == STORED[VERSION]


def test_a_later_version_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="version 4"):
        unpack_published(b"\x04" + bytes.fromhex(STORED[3])[1:])
