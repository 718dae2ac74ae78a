"""A 64-bit hash of records, by which a repeated epoch is known to hold what it held before.

It guards against accidents, not against somebody who looks for collisions: it is not cryptographic.
It is stored on disk. So it is the same on every platform, and a change of it is a new
CONTENT_HASH_VERSION. Version 1, all arithmetic modulo 2**64, words little endian:

    mix(x)     x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9
               x ^= x >> 27;  x *= 0x94D049BB133111EB
               x ^= x >> 31
    LANE[i]    mix((i + 1) * STEP) | 1,  i = 0..7
    fold(c)    of 64 bytes: sum over its words of  LANE[i] * reversed_bytes(word[i] * SPREAD)
    value      mix(fold(last) + length * STEP + LAST)
               + sum over its whole 64-byte chunks i = 0, 1, … of  mix(fold(chunk) + (i + 1) * STEP)
               where `last` is what follows the whole chunks (0 to 63 bytes), filled up with zeros
    null       NULL
    record     mix(value hash of the key * KEY + value hash of the value)
    content    sum of the records

Multiplying carries a difference only upwards; reversing the bytes in between brings it down again.
Chunks are summed, not chained, so that chunks of all values are worked on at once and a few long
values cost no more than their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from duolog.errors import InvalidRows
from duolog.log.routing.words import BLOCK_ROWS, READ_BYTES, Block, hash_column

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

CONTENT_HASH_VERSION = 1

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xC6A4A7935BD1E995)
_LAST = np.uint64(0xD6E8FEB86659FD93)
_KEY = np.uint64(0xA0761D6478BD642F)
_NULL = 0xE7037ED1A0B428DB

_WORD = "<u8"
_CHUNK_BYTES = READ_BYTES
_CHUNK_WORDS = _CHUNK_BYTES // 8


def record_hashes(key: pa.Array, value: pa.Array) -> npt.NDArray[np.uint64]:
    """One hash per record. It depends on the record's key and value alone."""
    if len(key) != len(value):
        raise InvalidRows(
            f"A batch has {len(key)} keys but {len(value)} values. Give both columns of one batch."
        )
    hashes = hash_column(key, _hash_block, np.uint64, null=_NULL)
    hashes *= _KEY
    hashes += hash_column(value, _hash_block, np.uint64, null=_NULL)
    return _mix(hashes)


def content_sum(key: pa.Array, value: pa.Array) -> int:
    """The sum of the record hashes modulo 2**64, in whatever order and batches they come."""
    return int(np.add.reduce(record_hashes(key, value), dtype=np.uint64))


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble in place, one to one."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


_LANES = _mix(np.arange(1, _CHUNK_WORDS + 1, dtype=np.uint64) * _STEP) | np.uint64(1)

# Row n keeps the first n bytes of a chunk.
_KEEP = np.array(
    [
        [(1 << 8 * min(max(kept - 8 * i, 0), 8)) - 1 for i in range(_CHUNK_WORDS)]
        for kept in range(_CHUNK_BYTES)
    ],
    np.uint64,
)


def _hash_block(block: Block) -> npt.NDArray[np.uint64]:
    chunks = block.lengths // _CHUNK_BYTES
    whole_bytes = chunks * _CHUNK_BYTES
    kept = block.lengths - whole_bytes
    words = max(1, -(-int(kept.max()) // 8))  # what is zero in all values adds nothing
    last = block.words(block.starts + whole_bytes, words, _WORD)
    last &= np.take(_KEEP[:, :words], kept, axis=0)
    hashes = _fold(last)
    hashes += block.lengths.view(np.uint64) * _STEP
    hashes += _LAST
    _mix(hashes)
    if chunks.any():
        _add_chunks(block, chunks, hashes)
    return hashes


def _add_chunks(
    block: Block, chunks: npt.NDArray[np.int64], hashes: npt.NDArray[np.uint64]
) -> None:
    """Add what the whole chunks of the values give."""
    rows = np.flatnonzero(chunks)
    counts = chunks[rows]
    firsts = np.cumsum(counts) - counts
    number = np.arange(int(counts.sum())) - np.repeat(firsts, counts)
    positions = np.repeat(block.starts[rows], counts) + number * _CHUNK_BYTES
    sums = (number + 1).view(np.uint64) * _STEP
    for first in range(0, len(sums), BLOCK_ROWS):
        tile = slice(first, first + BLOCK_ROWS)
        sums[tile] += _fold(block.words(positions[tile], _CHUNK_WORDS, _WORD))
    hashes[rows] += np.add.reduceat(_mix(sums), firsts)


def _fold(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One number for each chunk. Spoils `words`."""
    words *= _SPREAD
    words.byteswap(inplace=True)
    folded: npt.NDArray[Any] = words @ _LANES[: words.shape[1]]
    return folded
