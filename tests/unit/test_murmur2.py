"""Keys go to the partitions that Kafka's Java client would choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.errors import InvalidRows, InvalidSetting
from duolog.log.routing.murmur2 import murmur2, partition_of_keys

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "murmur2.json").read_text()
)
PARTITION_COUNTS: list[int] = VECTORS["partition_counts"]
VECTOR_KEYS = [bytes.fromhex(vector["key"]) for vector in VECTORS["vectors"]]

steady = settings(deadline=None, derandomize=True)


def scalar_murmur2(key: bytes) -> int:
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def expected(keys: list[bytes | None]) -> list[int]:
    return [0 if key is None else scalar_murmur2(key) for key in keys]


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, list[bytes | None]]:
    """A column in any of Arrow's forms, often a slice, and its values."""
    kind = draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]))
    if kind in (pa.string(), pa.large_string()):
        texts = draw(st.lists(st.none() | st.text(max_size=40), max_size=30))
        rows: list[bytes | None] = [None if text is None else text.encode() for text in texts]
    else:
        rows = draw(st.lists(st.none() | st.binary(max_size=150), max_size=30))
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    around = pa.array([b"around"] * before + rows + [None] * after, pa.large_binary())
    column = around.cast(kind).slice(before, len(rows))
    return (column.dictionary_encode() if draw(st.booleans()) else column), rows


def test_every_vector_of_the_java_client_is_met() -> None:
    column = pa.array(VECTOR_KEYS, pa.binary())
    assert murmur2(column).tolist() == [vector["murmur2"] for vector in VECTORS["vectors"]]


@pytest.mark.parametrize("which", range(len(PARTITION_COUNTS)), ids=map(str, PARTITION_COUNTS))
def test_every_key_goes_where_the_java_client_sends_it(which: int) -> None:
    column = pa.array(VECTOR_KEYS, pa.large_binary())
    partitions = partition_of_keys(column, PARTITION_COUNTS[which])
    assert partitions.dtype == np.int32
    assert partitions.tolist() == [vector["partitions"][which] for vector in VECTORS["vectors"]]


def test_every_vector_is_met_by_a_key_alone() -> None:
    alone = [murmur2(pa.array([key], pa.binary())).tolist() for key in VECTOR_KEYS]
    assert alone == [[vector["murmur2"]] for vector in VECTORS["vectors"]]


@steady
@given(columns())
def test_a_column_hashes_as_its_keys_do_one_by_one(
    column_and_keys: tuple[pa.Array, list[bytes | None]],
) -> None:
    column, keys = column_and_keys
    assert murmur2(column).tolist() == expected(keys)


@steady
@given(st.integers(0, 70), st.integers(1, 40), st.randoms(use_true_random=False))
def test_keys_of_one_length_hash_as_they_do_one_by_one(
    length: int, count: int, random: Any
) -> None:
    keys: list[bytes | None] = [random.randbytes(length) for _ in range(count)]
    assert murmur2(pa.array(keys, pa.binary())).tolist() == expected(keys)
    assert murmur2(pa.array(keys, pa.binary())[1:]).tolist() == expected(keys[1:])
    if length:
        assert murmur2(pa.array(keys, pa.binary(length))).tolist() == expected(keys)


def test_long_columns_and_long_keys_hash_as_they_do_one_by_one() -> None:
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 90, 10_000)
    lengths[::500] = 3000  # a few long ones in a block
    lengths[4096:4196] = rng.integers(2000, 2300, 100)  # and many
    lengths[8999:9001] = 30_001, 70_001  # further apart than 16 bits
    keys: list[bytes | None] = [rng.bytes(length) for length in lengths.tolist()]
    keys[9001] = None
    assert murmur2(pa.array(keys, pa.binary())).tolist() == expected(keys)


def test_records_without_a_key_take_turns_by_batch() -> None:
    keys = pa.array([None, b"a", None, b""], pa.binary())
    keyed = [(scalar_murmur2(key) & 0x7FFFFFFF) % 3 for key in (b"a", b"")]
    for turn in range(7):
        got = partition_of_keys(keys, 3, turn=turn).tolist()
        assert got == [turn % 3, keyed[0], turn % 3, keyed[1]]


def test_a_column_of_nulls_is_a_column_without_keys() -> None:
    assert partition_of_keys(pa.nulls(3), 4, turn=6).tolist() == [2, 2, 2]
    assert partition_of_keys(pa.nulls(3, pa.binary()), 4, turn=6).tolist() == [2, 2, 2]
    no_keys = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([b""])[:0])
    assert partition_of_keys(no_keys, 4, turn=6).tolist() == [2, 2]


def test_bytes_under_a_null_mean_nothing() -> None:
    offsets = pa.array([0, 3, 9], pa.int32()).buffers()[1]
    only_second = pa.py_buffer(b"\x02")
    column = pa.Array.from_buffers(
        pa.binary(), 2, [only_second, offsets, pa.py_buffer(b"abcdefghi")]
    )
    assert murmur2(column).tolist() == [0, scalar_murmur2(b"defghi")]
    assert partition_of_keys(column, 5, turn=4)[0] == 4


def test_a_null_in_a_dictionary_is_no_key() -> None:
    dictionary = pa.array([b"a", None], pa.binary())
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), dictionary)
    assert murmur2(column).tolist() == expected([None, b"a", None, None])
    assert murmur2(column[:1]).tolist() == [0]


def test_what_follows_the_buffer_is_not_read() -> None:
    keys = b"one", b"four", b"seventeen"
    offsets = pa.array(np.cumsum([0, *map(len, keys)]), pa.int32()).buffers()[1]
    for after in (b"\x00" * 99, b"\xff" * 99):
        body = pa.py_buffer(b"".join(keys) + after).slice(0, sum(map(len, keys)))
        column = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, body])
        assert murmur2(column).tolist() == expected(list(keys))


def test_an_empty_column_has_no_hashes() -> None:
    for kind in (pa.binary(), pa.large_string(), pa.null(), pa.dictionary(pa.int8(), pa.string())):
        assert murmur2(pa.array([], kind)).tolist() == []


def test_a_column_without_bytes_is_refused() -> None:
    with pytest.raises(InvalidRows, match="type int64 cannot be hashed"):
        murmur2(pa.array([1, 2]))


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="0 partitions"):
        partition_of_keys(pa.array([b"a"]), 0)
