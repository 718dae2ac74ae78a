"""Rows that come in over the wire: nothing becomes larger than it is said to be."""

from __future__ import annotations

import contextlib
import datetime
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duolog.errors import InvalidRows
from duolog.reach.rows import MAX_ROWS_BYTES, rows_from_bytes, rows_to_bytes


def stream(*batches: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    options = {"options": pa.ipc.IpcWriteOptions(**options)}
    with pa.ipc.new_stream(sink, batches[0].schema, **options) as out:
        for batch in batches:
            out.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def batch(column: Any) -> Any:
    return pa.record_batch({"id": column})


NUMBERS = batch(pa.array([1, 2, None]))
TEXTS = pa.array(["x" * 100, None, ""])


@pytest.mark.parametrize(
    "column",
    [
        NUMBERS.column(0),
        TEXTS,
        TEXTS.cast(pa.large_string()),
        TEXTS.cast(pa.string_view()),
        TEXTS.dictionary_encode(),
        pa.array([1, None, 1]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string())),
        pa.nulls(3),
        pa.array([], pa.binary()),
        pa.array([{"a": 1, "b": ["x", None]}, None]),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
        pa.array([b"12", None], pa.binary(2)),
        pa.array([datetime.date(2024, 1, 1), None]),
        pa.array([True, None]),
        pa.array([None], pa.decimal128(10, 2)),
        pa.array([{}, {}], pa.struct([])),
    ],
)
def test_rows_come_as_they_were_sent(column: Any) -> None:
    for rows in (batch(column), batch(column).slice(1)):
        assert rows_from_bytes("orders", rows_to_bytes(rows)).equals(rows)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_packed_rows_are_refused_before_they_are_unpacked(compression: str) -> None:
    content = stream(batch(pa.array(np.zeros(1 << 24, np.int64))), compression=compression)
    assert len(content) < 1 << 20
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(InvalidRows, match="packed"):
        rows_from_bytes("orders", content)
    assert pa.default_memory_pool().max_memory() == before


def test_packed_dictionaries_are_refused_too() -> None:
    with pytest.raises(InvalidRows, match="packed"):
        rows_from_bytes("orders", stream(batch(TEXTS.dictionary_encode()), compression="zstd"))


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(1 << 23),
        pa.array([None] * 5, pa.list_(pa.null(), 1 << 26)),
        pa.DictionaryArray.from_arrays(np.zeros(30_000, np.int8), ["x" * 10_000]),
        pa.DictionaryArray.from_arrays(np.zeros(30_000, np.int8), pa.array([b"x" * 10_000])),
        pa.DictionaryArray.from_arrays(
            np.zeros(30_000, np.int8), pa.array(["x" * 10_000], pa.string_view())
        ),
        pa.DictionaryArray.from_arrays(
            np.zeros(30_000, np.int8), pa.array([b"x" * 10_000], pa.binary(10_000))
        ),
        pa.Array.from_buffers(
            pa.string_view(),
            30_000,
            [
                None,
                pa.py_buffer(struct.pack("<i4sii", 10_000, b"xxxx", 0, 0) * 30_000),
                pa.py_buffer(b"x" * 10_000),
            ],
        ),
    ],
    ids=["nulls", "nulls in lists", "words", "bytes", "views", "fixed", "one for all views"],
)
def test_rows_that_name_more_than_they_carry_are_refused(column: Any) -> None:
    content = stream(batch(column))
    assert len(content) < MAX_ROWS_BYTES // 100
    with pytest.raises(InvalidRows, match="Send fewer rows"):
        rows_from_bytes("orders", content)


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int32()), pa.array(["x"])),
        pa.array([[1]], pa.list_view(pa.int64())),
        pa.UnionArray.from_dense(
            pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array(["x"])]
        ),
        pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([["x"]])),
    ],
)
def test_columns_whose_size_nobody_can_tell_are_refused(column: Any) -> None:
    with pytest.raises(InvalidRows, match="Cast them"):
        rows_from_bytes("orders", stream(batch(column)))


def test_a_stream_is_a_schema_and_one_batch() -> None:
    whole = stream(NUMBERS)
    schema_alone = whole[: 8 + int.from_bytes(whole[4:8], "little")]
    for content in (b"", b"\0" * 8, schema_alone, stream(NUMBERS, NUMBERS), whole[8:], b"x" * 100):
        with pytest.raises(InvalidRows, match="damaged"):
            rows_from_bytes("orders", content)
    for no_bytes in (None, 5, "text"):
        with pytest.raises(InvalidRows, match="damaged"):
            rows_from_bytes("orders", no_bytes)


def test_no_cut_and_no_changed_byte_does_worse_than_a_refusal() -> None:
    whole = stream(
        pa.record_batch(
            {"id": TEXTS, "word": TEXTS.dictionary_encode(), "more": pa.array([[1], None, []])}
        )
    )
    for at in range(len(whole)):
        for content in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
            with contextlib.suppress(InvalidRows):
                rows_from_bytes("orders", content).validate(full=True)
