"""Stored batches that go out as they are say the same as those that are unpacked first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.http.arrow_messages import stored_message
from duolog.bridge.http.looking import Found
from duolog.bridge.http.shown_arrow import arrow_answer
from duolog.bridge.http.stored_pages import StoredBatch, StoredPage, fetch_stored
from duolog.errors import DamagedLog
from duolog.log import EmbeddedLog, open_log
from duolog.log.batch import HEADER_BYTES, RECORD_SCHEMA, arrow_message, encode
from duolog.log.fetched import Fetched, FetchedBatch
from duolog.log.model import Mode, Op, PayloadMode, Record, Topic, TopicSettings, Writer
from duolog.log.part import PartBuilder

EVERYTHING = 1 << 40
CONTENT = st.none() | st.binary(max_size=20)
HEADERS = st.none() | st.lists(
    st.fixed_dictionaries({"name": st.text(max_size=5), "value": CONTENT}), max_size=2
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 2**40),
            "key": CONTENT,
            "value": CONTENT,
            "headers": HEADERS,
            "op": st.sampled_from(Op).map(int),
            "table": st.none() | st.text(max_size=5),
            "payload": st.sampled_from(PayloadMode).map(int),
        }
    ),
    min_size=1,
    max_size=6,
)
BATCH_RECORDS = 700
ORDERS = Topic(1, "orders", TopicSettings(), (), 0, 0)


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


def numbered(first: int, count: int) -> pa.RecordBatch:
    """Records of which no two are alike."""
    return batch(
        [
            {"ts": number, "key": b"%d" % number, "value": b"v" * (number % 50), "op": 1,
             "table": "ns.t" if number % 3 else None, "payload": 1,
             "headers": [{"name": "n", "value": b"%d" % number}] if number % 2 else None}
            for number in range(first, first + count)
        ]
    )  # fmt: skip


def append(log: EmbeddedLog, epoch: int, batches: list[pa.RecordBatch]) -> None:
    """Exactly these batches: an epoch for each, since small ones of one epoch are joined."""
    topic = log.topic("orders")
    for nth, records in enumerate(batches):
        builder = PartBuilder()
        builder.add(topic, 0, records)
        writer = Writer(Mode.BATCH, "query", "orders")
        log.append(writer, 1000 * epoch + nth, [builder.finish()])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLog]:
    """Five large batches, some small ones in a row, and two large ones again."""
    with open_log(tmp_path_factory.mktemp("stored") / "log") as opened:
        opened.create_topic("orders")
        append(opened, 0, [numbered(at * BATCH_RECORDS, BATCH_RECORDS) for at in range(5)])
        for number in range(4):
            opened.publish("orders", [Record(b"small", key=b"%d" % number)] * 3)
        append(opened, 1, [numbered(at * BATCH_RECORDS, BATCH_RECORDS) for at in range(5, 7)])
        yield opened


def table_of(page: StoredPage | Fetched) -> pa.Table:
    """What a client reads."""
    found: Found[Any] = Found(ORDERS, (page,), {0: page.next_offset}, False)
    table = pa.ipc.open_stream(b"".join(arrow_answer(found))).read_all()
    table.validate(full=True)
    return table


def fetched(log: EmbeddedLog, offset: int, records: int, size: int = EVERYTHING) -> StoredPage:
    topic = log.topic("orders")
    return fetch_stored(log, topic.id, 0, offset, max_records=records, max_bytes=size)


def kinds(page: StoredPage) -> list[bool]:
    """Of each batch, whether it goes out as it is stored."""
    return [isinstance(each, StoredBatch) for each in page.batches]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_piece_of_the_log_is_the_same_as_when_it_is_unpacked(
    log: EmbeddedLog, data: st.DataObject
) -> None:
    head = log.offsets("orders")[0].next_offset
    offset = data.draw(st.integers(0, head))
    records = data.draw(st.integers(1, head + 1000))
    size = data.draw(st.sampled_from([1, 1000, 100_000, EVERYTHING]))
    page = fetched(log, offset, records, size)

    assert page.next_offset == offset + page.count
    assert page.count <= records
    assert page.count == min(records, head - offset) or size < EVERYTHING
    assert page.count or offset == head
    whole = log.fetch("orders", 0, offset, max_records=max(1, page.count), max_bytes=EVERYTHING)
    if page.count:
        table = table_of(page)
        assert table.equals(table_of(whole))
        content = sum(pc.sum(pc.binary_length(table[name])).as_py() for name in ("key", "payload"))
        assert page.count == 1 or content <= size


@settings(deadline=None)
@given(ROWS)
def test_whatever_a_batch_holds_goes_out_unchanged(rows: list[dict[str, Any]]) -> None:
    records = batch(rows)
    content = arrow_message(encode(records))
    assert content is not None
    message = stored_message(content)
    assert message is not None
    after = 5 + len(rows)
    stored = StoredPage(3, after, (StoredBatch(5, message),))
    unpacked = Fetched("orders", 3, after, 0, after, (FetchedBatch(5, records),))
    assert table_of(stored).equals(table_of(unpacked))


def test_whole_batches_go_out_as_they_are_and_pieces_of_them_unpacked(log: EmbeddedLog) -> None:
    assert kinds(fetched(log, 0, 5 * BATCH_RECORDS)) == [True] * 5
    assert kinds(fetched(log, 1, 2 * BATCH_RECORDS)) == [False, True, False]
    assert kinds(fetched(log, 0, BATCH_RECORDS)) == [False]  # few: they may be in the cache
    everything = kinds(fetched(log, 0, 10**6))
    assert everything[:5] == [True] * 5
    assert everything[-2:] == [True] * 2
    assert not any(everything[5:-2])


def test_bytes_end_an_answer_behind_a_batch(log: EmbeddedLog) -> None:
    one = fetched(log, 0, BATCH_RECORDS).nbytes
    page = fetched(log, 0, 10**6, int(2.7 * one))
    assert page.next_offset == 2 * BATCH_RECORDS
    tight = fetched(log, 0, 10**6, one // 10)  # at least something
    assert 0 < tight.count < BATCH_RECORDS


def written(records: pa.RecordBatch, compression: str | None) -> bytes:
    """The message of these records."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, records.schema, options=options) as stream:
        stream.write_batch(records)
    return bytes(sink.getvalue())[len(records.schema.serialize()) :]


def test_a_message_that_is_built_otherwise_is_not_passed_on() -> None:
    records = numbered(0, 10)
    for compression in (None, "zstd"):
        message = memoryview(written(records, compression))
        assert stored_message(message) is None
    fewer = records.select(["ts", "key"])
    assert stored_message(memoryview(written(fewer, "lz4"))) is None
    ours = stored_message(memoryview(written(records, "lz4")))
    assert ours is not None
    assert ours.count == 10


@given(st.data())
def test_metadata_that_makes_no_sense_is_not_passed_on(data: st.DataObject) -> None:
    message = bytearray(written(numbered(0, 10), "lz4"))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, 700))] = data.draw(st.integers(0, 255))
    passed = stored_message(memoryview(message))
    if passed is not None:
        size = len(passed.body)
        assert all(0 <= at <= at + length <= size for at, length in passed.buffers)


def test_what_an_empty_column_was_cut_from_stays_behind() -> None:
    """A column of nulls may keep the places of values that it does not have."""
    whole = pa.nulls(60_000, RECORD_SCHEMA.field("headers").type)
    records = numbered(0, 10).set_column(3, RECORD_SCHEMA.field("headers"), whole.slice(0, 10))
    content = arrow_message(encode(records))
    assert content is not None
    message = stored_message(content)
    assert message is not None
    assert message.unpacked_bytes < 10_000


def test_a_damaged_batch_is_not_passed_on() -> None:
    encoded = bytearray(encode(numbered(0, 10)))
    encoded[HEADER_BYTES + 300] ^= 1
    with pytest.raises(DamagedLog, match="checksum"):
        arrow_message(bytes(encoded))


def test_offsets_go_on_beyond_32_bits(log: EmbeddedLog) -> None:
    (first, *_) = fetched(log, 0, 5 * BATCH_RECORDS).batches
    assert isinstance(first, StoredBatch)
    far = StoredPage(0, 2**40 + first.message.count, (StoredBatch(2**40, first.message),))
    offsets = table_of(far)["offset"].to_numpy()
    assert np.array_equal(offsets, np.arange(2**40, 2**40 + BATCH_RECORDS))


def test_an_empty_partition_is_an_empty_page(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        assert fetched(log, 0, 10**6) == StoredPage(0, 0, ())
