"""The same records have the same content hash, and other records another."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duolog.errors import InvalidRows
from duolog.log.routing.content_hash import CONTENT_HASH_VERSION, content_sum, record_hashes

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Bytes = bytes | None
Record = tuple[Bytes, Bytes]
Draw = Any  # hypothesis' way to draw from a strategy

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15

steady = settings(deadline=None, derandomize=True)
byte_strings = st.binary(max_size=20) | st.binary(min_size=50, max_size=200)
records = st.tuples(st.none() | byte_strings, st.none() | byte_strings)
batches = st.lists(records, max_size=25)


# The algorithm once more, straight from its description.


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


LANES = [mix((i + 1) * STEP & MASK) | 1 for i in range(8)]


def fold(chunk: bytes) -> int:
    total = 0
    for i, lane in enumerate(LANES):
        word = int.from_bytes(chunk[8 * i : 8 * i + 8], "little")
        spread = (word * 0xC6A4A7935BD1E995 & MASK).to_bytes(8, "little")
        total += lane * int.from_bytes(spread, "big")
    return total


def scalar_value(value: Bytes) -> int:
    if value is None:
        return 0xE7037ED1A0B428DB
    chunks = len(value) // 64
    last = value[64 * chunks :]
    total = mix((fold(last) + len(value) * STEP + 0xD6E8FEB86659FD93) & MASK)
    for i in range(chunks):
        total += mix((fold(value[64 * i : 64 * i + 64]) + (i + 1) * STEP) & MASK)
    return total


def scalar_record(key: Bytes, value: Bytes) -> int:
    return mix((scalar_value(key) * 0xA0761D6478BD642F + scalar_value(value)) & MASK)


def columns_of(batch: list[Record], kind: pa.DataType | None = None) -> tuple[pa.Array, pa.Array]:
    kind = kind or pa.binary()
    return (
        pa.array([key for key, _ in batch], kind),
        pa.array([value for _, value in batch], kind),
    )


def hashes_of(batch: list[Record]) -> list[int]:
    hashes: list[int] = record_hashes(*columns_of(batch)).tolist()
    return hashes


def sum_of(batch: list[Record]) -> int:
    return content_sum(*columns_of(batch))


# Stored on disk: never mend these numbers, make a new version.
GOLDEN: list[tuple[Bytes, Bytes, int]] = [
    (None, None, 0xEED2B999ED9A31BD),
    (b"", b"", 0xFD4F9689D69E10C1),
    (None, b"", 0x55A70D375BCDB943),
    (b"", None, 0xC84021A2539B9FEF),
    (b"k", b"v", 0x4144E94D7E9FF7E5),
    (b"order-42", b'{"id":42}', 0x1F02B2987720AC70),
    (bytes(8), bytes(63), 0x9185CCB305431733),
    (bytes(range(64)), bytes(range(65)), 0x90235E134CB2BF9A),
    (b"\xff" * 100, bytes(range(256)) * 20, 0xBD8CA4DE347F0D3C),
    ("ключ".encode(), "значение".encode(), 0xF2E145B8BCFE7A0D),
]


def test_the_stored_numbers_never_change() -> None:
    assert CONTENT_HASH_VERSION == 1
    assert hashes_of([(key, value) for key, value, _ in GOLDEN]) == [want for *_, want in GOLDEN]
    assert sum_of([(key, value) for key, value, _ in GOLDEN]) == 0x3C683040ACD59E1B


@steady
@given(
    batches,
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 3),
    st.booleans(),
)
def test_a_batch_hashes_as_its_records_do_one_by_one(
    batch: list[Record], kind: pa.DataType, before: int, dictionary: bool
) -> None:
    around: list[Record] = [(b"around", None)] * before
    key, value = (
        (column.dictionary_encode() if dictionary else column).slice(before, len(batch))
        for column in columns_of(around + batch + around, kind)
    )
    want = [scalar_record(*record) for record in batch]
    assert record_hashes(key, value).tolist() == want
    assert content_sum(key, value) == sum(want) & MASK


def test_long_batches_and_long_values_hash_as_their_records_do_one_by_one() -> None:
    rng = np.random.default_rng(11)
    lengths = rng.integers(0, 200, 5000)
    lengths[::400] = rng.integers(4000, 9000, len(lengths[::400]))
    lengths[-1] = 300_000  # more chunks than are folded at a time
    batch: list[Record] = [
        (rng.bytes(i % 40), rng.bytes(n)) for i, n in enumerate(lengths.tolist())
    ]
    batch[2048:2050] = [(None, b""), (b"", None)]
    assert hashes_of(batch) == [scalar_record(*record) for record in batch]


def test_text_hashes_as_its_utf_8_bytes() -> None:
    texts = ["", "München", None, "日本語" * 30]
    as_bytes = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    want = record_hashes(as_bytes, as_bytes).tolist()
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(texts, kind)
        assert record_hashes(column, column).tolist() == want


@steady
@given(batches, st.randoms(use_true_random=False), st.integers(0, 25))
def test_neither_order_nor_batches_matter(batch: list[Record], random: Random, at: int) -> None:
    shuffled = list(batch)
    random.shuffle(shuffled)
    assert sum_of(shuffled) == sum_of(batch)
    assert (sum_of(shuffled[:at]) + sum_of(shuffled[at:])) & MASK == sum_of(batch)
    key, value = columns_of(shuffled)
    split = content_sum(key[:at], value[:at]) + content_sum(key[at:], value[at:])
    assert split & MASK == sum_of(batch)


def another_byte(value: bytes, draw: Draw) -> bytes:
    at = draw(st.integers(0, len(value) - 1))
    return value[:at] + bytes([value[at] ^ draw(st.integers(1, 255))]) + value[at + 1 :]


CHANGES: dict[str, Callable[[bytes, bytes, Draw], list[Record]]] = {
    "another byte in the key": lambda key, value, draw: [(another_byte(key, draw), value)],
    "another byte in the value": lambda key, value, draw: [(key, another_byte(value, draw))],
    "a record less": lambda key, value, draw: [],
    "a record twice": lambda key, value, draw: [(key, value)] * 2,
    "no key": lambda key, value, draw: [(None, value)],
    "no value": lambda key, value, draw: [(key, None)],
    "a zero more in the key": lambda key, value, draw: [(key + b"\x00", value)],
    "a zero more in the value": lambda key, value, draw: [(key, value + b"\x00")],
    "a byte moved from value to key": lambda key, value, draw: [(key + value[:1], value[1:])],
    "a byte moved from key to value": lambda key, value, draw: [(key[:-1], key[-1:] + value)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_sum_notices(change: str) -> None:
    filled = byte_strings.filter(len)

    @settings(steady, max_examples=50)
    @given(batches, filled, filled, st.data())
    def check(others: list[Record], key: bytes, value: bytes, data: st.DataObject) -> None:
        changed = CHANGES[change](key, value, data.draw)
        assert sum_of([*others, *changed]) != sum_of([*others, (key, value)])

    check()


@steady
@given(batches, records)
def test_key_and_value_are_not_interchangeable(others: list[Record], record: Record) -> None:
    key, value = record
    assume(key != value)
    assert sum_of([*others, (value, key)]) != sum_of([*others, (key, value)])


def test_null_and_empty_differ() -> None:
    batch: list[Record] = [(None, None), (b"", b""), (None, b""), (b"", None)]
    assert len(set(hashes_of(batch))) == len(batch)


@steady
@given(records, records)
def test_values_that_change_places_are_noticed(one: Record, two: Record) -> None:
    assume(one[0] != two[0] and one[1] != two[1])
    assert sum_of([(one[0], two[1]), (two[0], one[1])]) != sum_of([one, two])


MANY = 1_000_000


def numbers_as_text() -> pa.Array:
    return pa.array(np.arange(MANY)).cast(pa.string())


def numbers_as_json() -> pa.Array:
    return pc.binary_join_element_wise('{"tenant":"a","id":', numbers_as_text(), "}", "")


def numbers_as_big_endian() -> pa.Array:
    return fixed_size(np.arange(MANY).astype(">u8").view(np.uint8).reshape(MANY, 8))


def bits_far_apart() -> pa.Array:
    """Twenty bits, each the highest of its byte, the bytes 7 apart and all else zero."""
    rows = np.zeros((MANY, 140), np.uint8)
    for bit in range(20):
        rows[:, 7 * bit] = (np.arange(MANY) >> bit & 1) << 7
    return fixed_size(rows)


def fixed_size(rows: npt.NDArray[np.uint8]) -> pa.Array:
    values = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.Array.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, values])


@pytest.mark.parametrize(
    "pattern", [numbers_as_text, numbers_as_json, numbers_as_big_endian, bits_far_apart]
)
def test_a_million_records_of_a_pattern_do_not_collide(pattern: Callable[[], pa.Array]) -> None:
    column = pattern()
    nothing = pa.nulls(MANY, pa.binary())
    hashes = np.concatenate([record_hashes(column, nothing), record_hashes(nothing, column)])
    hashes.sort()
    assert np.all(hashes[1:] > hashes[:-1])


def test_what_follows_the_buffer_is_not_read() -> None:
    values = b"one", b"x" * 64, b"seventeen"
    offsets = pa.array(np.cumsum([0, *map(len, values)]), pa.int32()).buffers()[1]
    for after in (b"\x00" * 99, b"\xff" * 99):
        body = pa.py_buffer(b"".join(values) + after).slice(0, sum(map(len, values)))
        column = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, body])
        want = [scalar_record(value, value) for value in values]
        assert record_hashes(column, column).tolist() == want


@pytest.mark.parametrize(
    ("count", "length"), [(1_000_000, 0), (300_000, 10), (100_000, 100), (3, 10_000_000)]
)
def test_memory_stays_below_three_times_the_batch(count: int, length: int) -> None:
    rows = fixed_size(np.full((count, max(length, 1)), 7, np.uint8))
    value = rows.cast(pa.binary()) if length else pa.array([b""]).take(pa.array([0] * count))
    tracemalloc.start()
    content_sum(value, value)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 3 * 2 * value.nbytes


def test_columns_of_two_batches_are_refused() -> None:
    with pytest.raises(InvalidRows, match="2 keys but 1 values"):
        record_hashes(pa.array([b"a", b"b"]), pa.array([b"a"]))


def test_an_empty_batch_sums_to_nothing() -> None:
    assert content_sum(pa.array([], pa.binary()), pa.array([], pa.binary())) == 0
