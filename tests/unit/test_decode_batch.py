"""A Kafka record batch decoded by columns is what was encoded, and never something else."""

from __future__ import annotations

import struct
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.decode_batch import SCHEMA, DamagedKafkaBatch, decode_batch
from duolog.bridge.kafka.wire.record_batch import encode_batch
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.mirror_model import MirrorProducer

PRODUCER = MirrorProducer("c", 7, 0)
BYTES = st.none() | st.binary(max_size=200)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 2**42),
            "key": BYTES,
            "value": BYTES,
            "headers": st.none()
            | st.lists(
                st.fixed_dictionaries({"name": st.text(max_size=20), "value": BYTES}),
                min_size=1,
                max_size=3,
            ),
        }
    ),
    min_size=1,
    max_size=40,
)


def encoded(rows: list[dict[str, Any]], compression: Compression = Compression.NONE) -> bytes:
    full = [{**row, "op": 0, "table": None, "payload": 0} for row in rows]
    records = pa.RecordBatch.from_pylist(full, schema=RECORD_SCHEMA)
    return bytes(encode_batch(records, PRODUCER, 0, compression))


@settings(max_examples=200)
@given(ROWS, st.sampled_from(Compression))
def test_what_was_encoded_is_decoded(rows: list[dict[str, Any]], compression: Compression) -> None:
    found = decode_batch(encoded(rows, compression))
    assert found is not None
    assert found.offsets.tolist() == list(range(len(rows)))
    assert found.columns.schema == SCHEMA
    found.columns.validate(full=True)
    assert found.columns.to_pylist() == rows


def test_offsets_are_those_of_its_place() -> None:
    batch = bytearray(encoded([{"ts": 1, "key": None, "value": b"x", "headers": None}] * 3))
    batch[:8] = struct.pack(">q", 1 << 40)
    found = decode_batch(bytes(batch))
    assert found is not None
    assert found.offsets.tolist() == [(1 << 40) + n for n in range(3)]


@pytest.mark.parametrize("attributes", [1, 2, 3, 8, 16, 32, 48])
def test_what_we_never_write_is_left_to_others(attributes: int) -> None:
    batch = bytearray(encoded([{"ts": 1, "key": None, "value": b"x", "headers": None}]))
    batch[21:23] = struct.pack(">h", attributes)
    assert decode_batch(bytes(batch)) is None


@settings(max_examples=100)
@given(ROWS, st.data())
def test_a_flipped_bit_is_noticed(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    batch = bytearray(encoded(rows))
    at = data.draw(st.integers(23, len(batch) - 1))
    batch[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamagedKafkaBatch):
        decode_batch(bytes(batch))


@settings(max_examples=200)
@given(ROWS, st.data())
def test_nonsense_with_a_right_checksum_is_refused_or_is_records(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    batch = bytearray(encoded(rows))
    at = data.draw(st.integers(61, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))
    batch[17:21] = struct.pack(">I", google_crc32c.value(bytes(batch[21:])))
    try:
        found = decode_batch(bytes(batch))
    except (DamagedKafkaBatch, pa.ArrowInvalid):
        return
    assert found is not None
    assert len(found.offsets) == len(rows)
