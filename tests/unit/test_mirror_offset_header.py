"""The header with the log offset: as whole columns, the same as one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.offset_header import with_offset_header
from duolog.bridge.kafka.wire.record_batch import encode_batch
from duolog.bridge.kafka.wire.unpacked import Content, StoredRecord, stored_records
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.mirror_model import MirrorProducer, OffsetHeader
from duolog.log.mirror_model import with_offset_header as said

Headers = list[tuple[str, bytes | None]] | None

HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)))


def batch_of(headers: list[Headers]) -> Any:
    rows = [
        {
            "ts": 1_000 + at,
            "key": b"k%d" % at,
            "value": None if at % 3 == 0 else b"v" * at,
            "headers": None if each is None else [{"name": n, "value": v} for n, v in each],
            "op": 0,
            "table": None,
            "payload": 0,
        }
        for at, each in enumerate(headers)
    ]
    return pa.RecordBatch.from_pylist(rows, RECORD_SCHEMA)


@given(st.lists(HEADERS, min_size=1, max_size=8), st.integers(0, 3), st.integers(0, 1 << 40))
def test_each_record_has_its_offset_as_its_last_header(
    headers: list[Headers], cut: int, first: int
) -> None:
    cut = min(cut, len(headers) - 1)
    made = with_offset_header(batch_of(headers).slice(cut), first, "at")
    assert made.schema == RECORD_SCHEMA
    assert [
        [(each["name"], each["value"]) for each in row] for row in made["headers"].to_pylist()
    ] == [[*(own or []), ("at", b"%d" % offset)] for offset, own in enumerate(headers[cut:], first)]
    assert made["key"].equals(batch_of(headers)["key"].slice(cut))


@given(st.lists(HEADERS, min_size=1, max_size=8), st.sampled_from(list(Compression)))
def test_what_is_packed_is_unpacked(headers: list[Headers], compression: Compression) -> None:
    batch = with_offset_header(batch_of(headers), 5, "at")
    made = encode_batch(batch, MirrorProducer("c", 7, 0), (1 << 31) - 2, compression)
    stored = bytes(made)
    expected = tuple(
        StoredRecord(
            at,
            ((1 << 31) - 2 + at) % (1 << 31),
            Content(
                row["ts"],
                row["key"],
                row["value"],
                tuple((each["name"], each["value"]) for each in row["headers"]),
            ),
        )
        for at, row in enumerate(batch.to_pylist())
    )
    assert stored_records(stored, 100) == expected
    assert stored_records(stored, 2) == expected[:2]


@given(st.binary(max_size=200), st.integers(0, 7))
def test_what_is_no_batch_tells_nothing_and_does_no_harm(body: bytes, codec: int) -> None:
    batch = encode_batch(batch_of([None]), MirrorProducer("c", 7, 0), 0, Compression.NONE)
    whole = bytes(batch)
    head = bytearray(whole[:61])
    head[22] = codec  # the low byte of its attributes
    assert len(stored_records(bytes(head) + body, 10)) <= 10


def test_from_where_on_a_header_holds() -> None:
    assert said((), 0, None) == ()
    assert said((), 0, "at") == (OffsetHeader(0, "at"),)
    assert said((OffsetHeader(0, "at"),), 9, "at") == (OffsetHeader(0, "at"),)
    both = (OffsetHeader(0, "at"), OffsetHeader(9, None))
    assert said((OffsetHeader(0, "at"),), 9, None) == both
    # Kafka has lost what was sent from 5 on, and gets it as is wanted now.
    assert said(both, 5, None) == (OffsetHeader(0, "at"), OffsetHeader(5, None))
    assert said(both, 5, "at") == (OffsetHeader(0, "at"),)
