"""The hash by which Kafka's Java client chooses a key's partition, over whole columns.

murmur2 takes a key word by word, and each step needs the one before. So one step is done for all
keys of a block at once, with the longest keys in front: those that have words left come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duolog.errors import InvalidSetting
from duolog.log.routing.words import READ_BYTES, Block, hash_column

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD = "<u4"
_TILE_WORDS = READ_BYTES // 4

# Measured: a step takes numpy 1.9 µs however few keys it is for, and plain Python 0.1 µs per key.
_FEW_KEYS = 16
_SLICE_WORDS = 4096  # of a long key at a time: a word takes 40 bytes as a Python number


def murmur2(column: pa.Array) -> npt.NDArray[np.int32]:
    """`Utils.murmur2` of each value of a binary or string column; 0 where it is null."""
    return hash_column(column, _hash_block, np.int32, null=0)


def partition_of_keys(keys: pa.Array, partitions: int, *, turn: int = 0) -> npt.NDArray[np.int32]:
    """The partition of each key as the Java client chooses it.

    Records without a key all go to partition `turn % partitions`: count turns by batch.
    """
    if partitions < 1:
        raise InvalidSetting(f"A topic cannot have {partitions} partitions. Give it 1 or more.")

    def partition_block(block: Block) -> npt.NDArray[np.int32]:
        return (_hash_block(block) & np.int32(0x7FFFFFFF)) % np.int32(partitions)

    return hash_column(keys, partition_block, np.int32, null=turn % partitions)


def _hash_block(block: Block) -> npt.NDArray[np.int32]:
    starts, lengths = block.starts, block.lengths
    longest = int(lengths.max())
    even = longest == int(lengths.min())
    order = None if even else _longest_first(lengths, longest)
    if order is not None:
        starts, lengths = starts[order], lengths[order]

    words = lengths >> 2
    hashes = lengths.astype(np.uint32) ^ np.uint32(_SEED)
    _take_words(block, starts, words, hashes, even=even)
    _take_rest(block, starts + 4 * words, lengths & 3, hashes)
    _finish(hashes)

    if order is None:
        return hashes.view(np.int32)
    unsorted = np.empty_like(hashes)
    unsorted[order] = hashes
    return unsorted.view(np.int32)


def _longest_first(lengths: npt.NDArray[np.int64], longest: int) -> npt.NDArray[np.intp]:
    missing = longest - lengths
    # numpy sorts 16 bits by radix, several times faster than it sorts 64.
    narrow = missing.astype(np.uint16) if longest <= 0xFFFF else missing
    return np.argsort(narrow, kind="stable")


def _take_words(
    block: Block,
    starts: npt.NDArray[np.int64],
    words: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint32],
    *,
    even: bool,
) -> None:
    """Take in every whole word. `words` descends."""
    m = np.uint32(_M)
    ascending = -words
    most = int(words[0])
    for first in range(0, most, _TILE_WORDS):
        count = min(_TILE_WORDS, most - first)
        # How many keys have a word `first`, `first + 1` and so on.
        active = np.searchsorted(ascending, -np.arange(first, first + count)).tolist()
        keys = active[0]
        if keys < _FEW_KEYS:
            for i in range(keys):
                start = int(starts[i])
                whole = block.values[start + 4 * first : start + 4 * int(words[i])]
                hashes[i] = _take_long(whole.view(_WORD), int(hashes[i]))
            return
        if even:
            tile = block.words_of_even(4 * first, count, _WORD)
        else:
            tile = block.words(starts[:keys] + 4 * first, count, _WORD)
        mixed = _mix(tile)
        for i, having in enumerate(active):
            some = hashes[:having]
            some *= m
            some ^= mixed[:having, i]


def _take_long(words: npt.NDArray[np.uint32], h: int) -> int:
    """Take one key's words in plain Python; only the part that needs no order is numpy's."""
    for first in range(0, len(words), _SLICE_WORDS):
        for k in _mix(words[first : first + _SLICE_WORDS]).tolist():
            h = (h * _M & _MASK) ^ k
    return h


def _mix(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    mixed = words * np.uint32(_M)
    mixed ^= mixed >> np.uint32(24)
    mixed *= np.uint32(_M)
    return mixed


def _take_rest(
    block: Block,
    positions: npt.NDArray[np.int64],
    rest_bytes: npt.NDArray[np.int64],
    hashes: npt.NDArray[np.uint32],
) -> None:
    """Take in the last one to three bytes of those keys that have them."""
    if not rest_bytes.any():
        return
    own = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)[rest_bytes]
    taken = hashes ^ (block.words(positions, 1, _WORD)[:, 0] & own)
    taken *= np.uint32(_M)
    np.copyto(hashes, taken, where=rest_bytes > 0)


def _finish(hashes: npt.NDArray[np.uint32]) -> None:
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(_M)
    hashes ^= hashes >> np.uint32(15)
