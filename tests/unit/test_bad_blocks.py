"""Which changes of a table's block are changes of records alone, and what RocksDB says of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.log.bad_block import BadBlock, accept, bad_block_in, has_changed_records_only
from duolog.log.batch import encode_small
from duolog.log.hole import HoleNote, encode_hole
from duolog.log.model import Record

LATEST = 5000
RESTART_EVERY = 16
SEQUENCE_BYTES = 7
MESSAGE = (
    "Corruption: block checksum mismatch: stored(context removed) = 2953233930, computed = "
    "1470047559, type = 4  in /data/my log 7.sst/db/000009.sst offset 10753019 size 250088"
)


@dataclass(frozen=True)
class Entry:
    offset: int
    value: bytes
    sequence: int = LATEST
    kind: int = 1

    @property
    def key(self) -> bytes:
        number = (self.sequence << 8) | self.kind
        return struct.pack(">IIQ", 1, 0, self.offset) + number.to_bytes(8, "little")


@dataclass(frozen=True)
class Block:
    content: bytes
    values: tuple[range, ...]  # where they are

    def flipped(self, at: int, bit: int) -> bytes:
        changed = bytearray(self.content)
        changed[at] ^= 1 << bit
        return bytes(changed)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def block_of(entries: list[Entry]) -> Block:
    content, before = bytearray(), b""
    restarts: list[int] = []
    values = []
    for number, entry in enumerate(entries):
        shared = 0
        if number % RESTART_EVERY == 0:
            restarts.append(len(content))
        else:
            pairs = zip(before, entry.key, strict=True)
            shared = next((at for at, (one, other) in enumerate(pairs) if one != other), 0)
        rest = entry.key[shared:]
        content += varint(shared) + varint(len(rest)) + varint(len(entry.value)) + rest
        values.append(range(len(content), len(content) + len(entry.value)))
        content += entry.value
        before = entry.key
    content += struct.pack(f"<{len(restarts)}II", *restarts, len(restarts))
    return Block(bytes(content), tuple(values))


def batch_of(*values: bytes) -> bytes:
    return encode_small([Record(value) for value in values], 1_700_000_000_000)[0]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    offset, entries = 0, []
    for size in draw(st.lists(st.integers(1, 400), min_size=1, max_size=40)):
        value = batch_of(b"v" * size) if size % 7 else encode_hole(3, HoleNote(by="ada"))
        entries.append(Entry(offset, value, draw(st.integers(0, LATEST))))
        offset += draw(st.integers(1, 300))
    return block_of(entries)


@given(st.data())
def test_a_changed_bit_is_accepted_where_it_lies_in_a_value_and_nowhere_else(
    data: st.DataObject,
) -> None:
    block = data.draw(blocks())
    at = data.draw(st.integers(0, len(block.content) - 1))
    changed = block.flipped(at, data.draw(st.integers(0, 7)))
    in_value = any(at in value for value in block.values)
    assert has_changed_records_only(changed, LATEST) == in_value


@given(st.data())
def test_what_has_changed_a_value_and_the_end_of_its_key_is_refused(data: st.DataObject) -> None:
    block = data.draw(blocks())
    value = data.draw(st.sampled_from(block.values))
    content = bytearray(block.content)
    content[value.start - 1] = 0x40  # the highest byte of the sequence number
    content[value.start] ^= 0xFF
    assert not has_changed_records_only(bytes(content), LATEST)


@given(st.data())
def test_pages_of_zeros_never_pass_for_keys(data: st.DataObject) -> None:
    block = data.draw(blocks())
    first = data.draw(st.integers(0, len(block.content) - 1))
    last = min(len(block.content), first + data.draw(st.integers(1, 600)))
    zeroed = block.content[:first] + bytes(last - first) + block.content[last:]
    changed = [at for at in range(first, last) if block.content[at]]
    whole = [range(value.start - SEQUENCE_BYTES, value.stop) for value in block.values]
    if has_changed_records_only(zeroed, LATEST):
        assert any(all(at in each for at in changed) for each in whole)


@given(st.binary(max_size=200))
def test_anything_at_all_is_only_refused(content: bytes) -> None:
    assert not has_changed_records_only(content, LATEST)


def test_a_block_in_order_is_no_reason() -> None:
    entries = [Entry(0, batch_of(b"a")), Entry(1, b"", kind=0), Entry(2, batch_of(b"b"))]
    assert not has_changed_records_only(block_of(entries).content, LATEST)


@pytest.mark.parametrize(
    "other",
    [Entry(1, b"", kind=15), Entry(1, b"x", kind=0), Entry(0, batch_of(b"x")), Entry(1, b"", 9999)],
    ids=["unknown kind", "removal with a value", "key that stands twice", "not given yet"],
)
def test_what_no_block_of_records_has_is_refused(other: Entry) -> None:
    damaged = Entry(0, batch_of(b"a")[:-1])
    assert has_changed_records_only(block_of([damaged]).content, LATEST)
    assert not has_changed_records_only(block_of([damaged, other]).content, LATEST)


def test_what_rocksdb_says_is_understood() -> None:
    assert bad_block_in(MESSAGE) == BadBlock("000009.sst", 10753019, 250088, 2953233930, 1470047559)
    older = MESSAGE.replace("(context removed)", "").replace("type = 4  in", "type = 1 in")
    assert bad_block_in(older) == bad_block_in(MESSAGE)
    assert bad_block_in("Corruption: truncated block read from 000009.sst") is None


def test_a_table_that_ends_early_stays_as_it_is(tmp_path: Path) -> None:
    table = tmp_path / "db" / "000009.sst"
    table.parent.mkdir()
    table.write_bytes(block_of([Entry(0, batch_of(b"a")[:-1])]).content)
    for size in (table.stat().st_size, 10**6):
        assert not accept(table.parent, BadBlock(table.name, 0, size, 1, 2), LATEST)
    assert not accept(table.parent, BadBlock("000010.sst", 0, 10, 1, 2), LATEST)
    assert [path.name for path in tmp_path.rglob("*.*")] == ["000009.sst"]
