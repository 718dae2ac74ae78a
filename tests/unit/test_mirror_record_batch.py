"""Kafka record batches made by columns, against aiokafka's writer and reader."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.record_batch import (
    BATCH_OVERHEAD_BYTES,
    encode_batch,
    largest_sizes,
    sequence_of,
)
from duolog.bridge.kafka.wire.stored import stored_batches
from duolog.log.batch import RECORD_SCHEMA, decode, encode, encode_small
from duolog.log.mirror_model import MirrorProducer
from duolog.log.model import Record

PRODUCER = MirrorProducer("cluster", 4711, 3)
NONE = Compression.NONE

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...] | None]

_bytes = (
    st.none() | st.binary(max_size=70) | st.sampled_from([b"x" * n for n in (63, 64, 8191, 8192)])
)
_headers = st.none() | st.lists(
    st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3
).map(tuple)
_rows = st.lists(
    st.tuples(st.integers(0, 2**53), _bytes, _bytes, _headers), min_size=1, max_size=12
)


def batch_of(rows: list[Row]) -> Any:
    return pa.RecordBatch.from_pydict(
        {
            "ts": [row[0] for row in rows],
            "key": [row[1] for row in rows],
            "value": [row[2] for row in rows],
            "headers": [
                None if row[3] is None else [{"name": n, "value": v} for n, v in row[3]]
                for row in rows
            ],
            "op": [0] * len(rows),
            "table": [None] * len(rows),
            "payload": [0] * len(rows),
        },
        schema=RECORD_SCHEMA,
    )


def read_by_aiokafka(encoded: bytes) -> list[Row]:
    batch = DefaultRecordBatch(encoded)
    assert batch.validate_crc()
    assert batch.producer_id == PRODUCER.producer_id
    assert batch.producer_epoch == PRODUCER.producer_epoch
    found = list(batch)
    assert [record.offset for record in found] == list(range(len(found)))
    return [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in found]


def as_read(rows: list[Row]) -> list[Row]:
    """Kafka has no null headers."""
    return [(ts, key, value, headers or ()) for ts, key, value, headers in rows]


@given(_rows)
@settings(max_examples=150, deadline=None)
def test_every_record_is_read_as_it_was(rows: list[Row]) -> None:
    assert read_by_aiokafka(bytes(encode_batch(batch_of(rows), PRODUCER, 9, NONE))) == as_read(rows)


@given(_rows, st.integers(0, 2**31 - 1))
@settings(max_examples=100, deadline=None)
def test_the_bytes_are_those_of_another_writer(rows: list[Row], sequence: int) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=PRODUCER.producer_id,
        producer_epoch=PRODUCER.producer_epoch,
        base_sequence=sequence,
        batch_size=1 << 30,
    )
    for offset, (ts, key, value, headers) in enumerate(rows):
        builder.append(offset, ts, key, value, list(headers or ()))
    expected = bytearray(builder.build())
    ours = bytearray(bytes(encode_batch(batch_of(rows), PRODUCER, sequence, NONE)))
    expected[12:16] = ours[12:16] = bytes(4)  # the leader's epoch: nobody knows it, 0 or -1
    assert ours == expected


@given(_rows, st.data())
@settings(max_examples=60, deadline=None)
def test_a_slice_is_encoded_like_a_copy(rows: list[Row], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    sliced = batch_of(rows).slice(start, stop - start)
    copied = encode_batch(batch_of(rows[start:stop]), PRODUCER, 0, NONE)
    assert bytes(encode_batch(sliced, PRODUCER, 0, NONE)) == bytes(copied)
    assert largest_sizes(sliced).tolist() == largest_sizes(batch_of(rows[start:stop])).tolist()


@given(_rows)
@settings(max_examples=60, deadline=None)
def test_no_record_is_larger_than_was_said(rows: list[Row]) -> None:
    for row, said in zip(rows, largest_sizes(batch_of(rows)).tolist(), strict=True):
        alone = len(encode_batch(batch_of([row]), PRODUCER, 0, NONE))
        assert alone <= said + BATCH_OVERHEAD_BYTES
    whole = len(encode_batch(batch_of(rows), PRODUCER, 0, NONE))
    assert whole <= int(largest_sizes(batch_of(rows)).sum()) + BATCH_OVERHEAD_BYTES


@pytest.mark.parametrize("compression", list(Compression))
def test_both_kinds_of_stored_batches_are_taken(compression: Compression) -> None:
    records = [
        Record(b"one", b"key", (("source", b"a"), ("null", None)), ts_ms=1000),
        Record(None, b"key", ts_ms=2000),
        Record(b"", None, ts_ms=500),
    ]
    rows: list[Row] = [(r.ts_ms or 0, r.key, r.value, r.headers) for r in records]
    packed, _ = encode_small(records, 0)
    for stored in (packed, encode(batch_of(rows))):
        encoded = bytes(encode_batch(decode(stored), PRODUCER, 0, compression))
        (head,) = stored_batches(encoded)
        assert (head.producer_id, head.producer_epoch, head.count) == (4711, 3, 3)
        if compression is NONE:
            assert read_by_aiokafka(encoded) == as_read(rows)


def test_zstd_holds_the_same_records() -> None:
    rows: list[Row] = [(n, b"key", b"value" * 50, None) for n in range(1000)]
    plain = bytes(encode_batch(batch_of(rows), PRODUCER, 0, NONE))
    packed = bytes(encode_batch(batch_of(rows), PRODUCER, 0, Compression.ZSTD))
    assert len(packed) < len(plain) / 10
    content = pa.input_stream(pa.py_buffer(packed[61:]), compression="zstd").read()
    assert content == plain[61:]
    assert packed[21:23] == b"\0\4"


@pytest.mark.parametrize(
    ("log_offset", "skipped", "sequence"),
    [
        (0, 0, 0),
        (5, 2, 3),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31, 0, 0),
        (2**31 + 4, 5, 2**31 - 1),
        (2**40 + 1, 1, 0),
    ],
)
def test_sequences_are_offsets_less_what_was_skipped(
    log_offset: int, skipped: int, sequence: int
) -> None:
    assert sequence_of(log_offset, skipped) == sequence


def test_heads_of_stored_batches_are_read_without_their_records() -> None:
    first = bytes(encode_batch(batch_of([(0, None, b"a", None)] * 3), PRODUCER, 0, NONE))
    second = bytes(encode_batch(batch_of([(0, None, b"b", None)]), PRODUCER, 3, Compression.ZSTD))
    at_40 = (40).to_bytes(8, "big") + second[8:]
    found = list(stored_batches(first + at_40))
    assert [(b.base_offset, b.next_offset, b.base_sequence) for b in found] == [
        (0, 3, 0),
        (40, 41, 3),
    ]
    assert list(stored_batches(first + at_40[:-1])) == found[:1]  # cut off by the broker
    assert list(stored_batches(first + at_40[:5])) == found[:1]
