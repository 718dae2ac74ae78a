"""Encoded batches: round trips, damage, and the bytes of formats 1 and 2."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import DamagedLog, DuologError, InvalidRecord, UnsupportedFormat
from duolog.log.batch import HEADER_BYTES, RECORD_SCHEMA, decode, encode, encode_small, read_header
from duolog.log.model import Op, PayloadMode, Record
from tests.support.records import record_batch

names = st.text(max_size=8)
contents = st.none() | st.binary(max_size=40)
records = st.builds(
    Record,
    value=contents,
    key=contents,
    headers=st.lists(st.tuples(names, contents), max_size=3).map(tuple),
    ts_ms=st.none() | st.integers(0, 2**62),
    op=st.sampled_from(Op),
    table=st.none() | names,
    payload=st.sampled_from(PayloadMode),
)
NOW = 1_700_000_000_000


def arrow_of(batch: list[Record]) -> Any:
    return pa.RecordBatch.from_pylist(
        [
            {
                "ts": NOW if record.ts_ms is None else record.ts_ms,
                "key": record.key,
                "value": record.value,
                "headers": [{"name": n, "value": v} for n, v in record.headers] or None,
                "op": int(record.op),
                "table": record.table,
                "payload": int(record.payload),
            }
            for record in batch
        ],
        schema=RECORD_SCHEMA,
    )


@given(st.lists(records, min_size=1, max_size=20))
def test_both_bodies_give_back_what_went_in(batch: list[Record]) -> None:
    expected = arrow_of(batch)
    small, highest = encode_small(batch, NOW)
    for encoded in (small, encode(expected)):
        decoded = decode(encoded)
        assert decoded.schema == RECORD_SCHEMA
        decoded.validate(full=True)
        assert decoded.to_pylist() == expected.to_pylist()
        header = read_header(encoded)
        assert header.count == len(batch)
        assert header.max_ts_ms == highest == max(expected.column("ts").to_pylist())
        assert header.first_ts_ms == expected.column("ts")[0].as_py()


@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_no_flipped_byte_goes_unnoticed(batch: list[Record], data: st.DataObject) -> None:
    for encoded in (encode_small(batch, NOW)[0], encode(arrow_of(batch))):
        at = data.draw(st.integers(0, len(encoded) - 1))
        flip = data.draw(st.integers(1, 255))
        with pytest.raises((DamagedLog, UnsupportedFormat)):
            decode(encoded[:at] + bytes([encoded[at] ^ flip]) + encoded[at + 1 :])


@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_no_cut_goes_unnoticed(batch: list[Record], data: st.DataObject) -> None:
    for encoded in (encode_small(batch, NOW)[0], encode(arrow_of(batch))):
        with pytest.raises(DamagedLog):
            decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_by_name(noise: bytes) -> None:
    with pytest.raises(DuologError):
        decode(noise)


def test_a_slice_is_encoded_as_what_it_shows() -> None:
    whole = arrow_of([Record(b"%d" % n, b"k", ts_ms=n) for n in range(100)])
    part = whole.slice(40, 7)
    assert decode(encode(part)).to_pylist() == part.to_pylist()
    assert len(encode(part)) < len(encode(whole)) / 2


@pytest.mark.parametrize("ts_ms", [-1, None])
def test_timestamps_are_whole_and_not_negative(ts_ms: int | None) -> None:
    column = pa.array([1, ts_ms], pa.int64())
    batch = arrow_of([Record(b"a"), Record(b"b")]).set_column(0, RECORD_SCHEMA.field(0), column)
    with pytest.raises(InvalidRecord):
        encode(batch)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(InvalidRecord):
        encode(arrow_of([Record(b"a")]).slice(0, 0))


def test_a_newer_format_is_refused_as_such() -> None:
    encoded, _ = encode_small([Record(b"a")], NOW)
    newer = b"\x03" + encoded[1:4]
    checksum = zlib.crc32(encoded[8:], zlib.crc32(newer)).to_bytes(4)
    with pytest.raises(UnsupportedFormat, match="newer"):
        decode(newer + checksum + encoded[8:])


@pytest.mark.parametrize("flipped", [1 << bit for bit in range(8)])
def test_a_flipped_bit_of_the_format_is_damage(flipped: int) -> None:
    encoded, _ = encode_small([Record(b"a")], NOW)
    with pytest.raises(DamagedLog):
        decode(bytes([encoded[0] ^ flipped]) + encoded[1:])


# Written by format 1; they must stay readable. In format 2 only the first byte and the sum differ.
OLD_PACKED = (
    "AQIAALdwUQMAAAACAAABdIdugAAAAAF0h26AAQCAbod0AQAAAYBuh3QBAAADAAAABgAAAAUAAAAFAAAAAgMAAgAOa2"
    "V5a2V5dmFsdWVbWyJzaG9wLm9yZGVycyIsW1siaCIsIk1RPT0iXV1dLFtudWxsLFtdXV0="
)
OLD_ARROW = (
    "AQEAABmt5a8AAAACAAABdIdugAAAAAF0h26AAf////+IAgAAFAAAAAAAAAAMABgABgAFAAgADAAMAAAAAAMEABwAAA"
    "AoAgAAAAAAAAAAAAAMABwAEAAEAAgADAAMAAAAqAEAABwAAAAUAAAAAgAAAAAAAAAAAAAABAAEAAQAAAAYAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAJwAAAAAAAAAoAAAAAAAAAAAAAAAAAAAAKAAAAAAAAAAjAAAAAAAAAFAAAAAAAA"
    "AAHQAAAAAAAABwAAAAAAAAABgAAAAAAAAAiAAAAAAAAAAjAAAAAAAAALAAAAAAAAAAHAAAAAAAAADQAAAAAAAAABgA"
    "AAAAAAAA6AAAAAAAAAAjAAAAAAAAABABAAAAAAAAAAAAAAAAAAAQAQAAAAAAAAAAAAAAAAAAEAEAAAAAAAAfAAAAAA"
    "AAADABAAAAAAAAGAAAAAAAAABIAQAAAAAAAAAAAAAAAAAASAEAAAAAAAAfAAAAAAAAAGgBAAAAAAAAGAAAAAAAAACA"
    "AQAAAAAAAAAAAAAAAAAAgAEAAAAAAAAZAAAAAAAAAKABAAAAAAAAGAAAAAAAAAC4AQAAAAAAACMAAAAAAAAA4AEAAA"
    "AAAAAiAAAAAAAAAAgCAAAAAAAAAAAAAAAAAAAIAgAAAAAAABkAAAAAAAAAAAAAAAoAAAACAAAAAAAAAAAAAAAAAAAA"
    "AgAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAA"
    "AAAAAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAQAAAAAAAAACAAAAAAAA"
    "AAAAAAAAAAAAEAAAAAAAAAAEIk0YYECCEAAAgACAbod0AQAAAYBuh3QBAAAAAAAAAAwAAAAAAAAABCJNGGBAggwAAI"
    "AAAAAAAwAAAAYAAAAAAAAAAAAAAAAGAAAAAAAAAAQiTRhgQIIGAACAa2V5a2V5AAAAAAAAAAEAAAAAAAAABCJNGGBA"
    "ggEAAIABAAAAAAwAAAAAAAAABCJNGGBAggwAAIAAAAAABQAAAAUAAAAAAAAAAAAAAAAFAAAAAAAAAAQiTRhgQIIFAA"
    "CAdmFsdWUAAAAAAAAAAAEAAAAAAAAABCJNGGBAggEAAIABAAAAAAwAAAAAAAAABCJNGGBAggwAAIAAAAAAAQAAAAEA"
    "AAAAAAAAAAAAAAAIAAAAAAAAAAQiTRhgQIIIAACAAAAAAAEAAAAAAAAAAAEAAAAAAAAABCJNGGBAggEAAIBoAAAAAA"
    "gAAAAAAAAABCJNGGBAgggAAIAAAAAAAQAAAAAAAAAAAQAAAAAAAAAEIk0YYECCAQAAgDEAAAAAAgAAAAAAAAAEIk0Y"
    "YECCAgAAgAIDAAAAAAAAAAAAAAABAAAAAAAAAAQiTRhgQIIBAACAAQAAAAAMAAAAAAAAAAQiTRhgQIIMAACAAAAAAA"
    "sAAAALAAAAAAAAAAAAAAAACwAAAAAAAAAEIk0YYECCCwAAgHNob3Aub3JkZXJzAAAAAAAAAAAAAAIAAAAAAAAABCJN"
    "GGBAggIAAIAAAgAAAAAAAAAAAAAA"
)
OLD_RECORDS = [
    Record(b"value", b"key", (("h", b"1"),), None, 1_600_000_000_000, Op.UPDATE, "shop.orders"),
    Record(None, b"key", (), None, 1_600_000_000_001, Op.DELETE, None, PayloadMode.KEY),
]


OLD = [base64.b64decode(OLD_PACKED), base64.b64decode(OLD_ARROW)]
FORMAT_2 = [
    b"\x02" + old[1:4] + zlib.crc32(old[8:], zlib.crc32(b"\x02" + old[1:4])).to_bytes(4) + old[8:]
    for old in OLD
]


@pytest.mark.parametrize("old", OLD + FORMAT_2)
def test_the_bytes_of_each_format_stay_readable(old: bytes) -> None:
    assert decode(old).to_pylist() == arrow_of(OLD_RECORDS).to_pylist()


def test_what_is_written_now_is_format_2() -> None:
    assert encode_small(OLD_RECORDS, NOW)[0] == FORMAT_2[0]
    assert encode(arrow_of(OLD_RECORDS))[:2] == FORMAT_2[1][:2]


@pytest.mark.parametrize("old", OLD + FORMAT_2)
def test_each_flipped_bit_of_the_header_is_noticed(old: bytes) -> None:
    for at in range(HEADER_BYTES):
        for flip in range(1, 256):
            with pytest.raises((DamagedLog, UnsupportedFormat)):
                decode(old[:at] + bytes([old[at] ^ flip]) + old[at + 1 :])


def test_a_slice_without_headers_takes_no_more_than_its_own_records() -> None:
    large = record_batch([b"value"] * 50_000)
    own = record_batch([b"value"] * 30)
    encoded = encode(large.slice(7, 30))
    assert len(encoded) <= 2 * len(encode(own))
    decoded = decode(encoded)
    decoded.validate(full=True)
    assert decoded.to_pylist() == own.to_pylist()
    assert decoded.get_total_buffer_size() < 2000  # it was 400,000
