"""Columns of bytes as little-endian words, so that hashes need no Python loop per value.

A column is walked some thousand rows at a time: what a hash works on stays in the CPU's cache, and
its scratch memory stays small however long the column is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Hash = TypeVar("Hash", bound=np.generic)

READ_BYTES = 64  # the most that Block.words reads at one place
BLOCK_ROWS = 2048  # at 128 KiB of such reads, malloc does not yet map its memory anew each time


class Block:
    """Consecutive values of one column. Arrow lets any bytes lie under a null."""

    def __init__(
        self,
        values: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        nulls: npt.NDArray[np.bool_] | None,
    ) -> None:
        self.values = values
        self.starts = offsets[:-1]
        self.lengths = np.diff(offsets)
        self.nulls = nulls
        # From the edge on, a read would leave the buffer. What is left there is read from a copy.
        self._edge = max(0, len(values) - READ_BYTES + 1)
        self._ending = np.zeros(2 * READ_BYTES - 1, np.uint8)
        self._ending[: len(values) - self._edge] = values[self._edge :]

    def words(self, positions: npt.NDArray[np.int64], count: int, word: str) -> npt.NDArray[Any]:
        """`count` words from each position, one row each; zeros follow the buffer's last byte.

        `word` is "<u4" or "<u8". Positions need no alignment, and words may reach into the next
        value: the caller knows how many of them are its own.
        """
        beyond = positions >= self._edge
        if not beyond.any():
            read = _reads_of(self.values, count, word)[positions]
        else:
            read = np.empty(len(positions), _item_of(count, word))
            inside = ~beyond
            if inside.any():
                read[inside] = _reads_of(self.values, count, word)[positions[inside]]
            read[beyond] = _reads_of(self._ending, count, word)[positions[beyond] - self._edge]
        return read.view(word).reshape(len(positions), count)

    def words_of_even(self, depth: int, count: int, word: str) -> npt.NDArray[Any]:
        """`count` words from `depth` bytes into each value, if all are of one length.

        The words must be the values' own. Reads 10 to 25 % faster than by positions.
        """
        first, length = int(self.starts[0]), int(self.lengths[0])
        item = _item_of(count, word)
        shape = (len(self.starts),)
        read = np.ndarray(shape, item, self.values, first + depth, (length,)).copy()
        return read.view(word).reshape(len(read), count)


def _reads_of(values: npt.NDArray[np.uint8], count: int, word: str) -> npt.NDArray[np.void]:
    """A view with one item per byte position: numpy copies an item much faster than its words."""
    item = _item_of(count, word)
    places = len(values) - item.itemsize + 1
    return np.ndarray((places,), item, buffer=values, strides=(1,))


def _item_of(count: int, word: str) -> np.dtype[np.void]:
    return np.dtype((np.void, count * np.dtype(word).itemsize))


def hash_column(
    column: pa.Array,
    hash_block: Callable[[Block], npt.NDArray[Hash]],
    dtype: type[Hash],
    *,
    null: int,
) -> npt.NDArray[Hash]:
    """`hash_block` of every value, and `null` where there is none."""
    if pa.types.is_dictionary(column.type):
        if len(column.dictionary) <= len(column):
            return _hash_dictionary(column, hash_block, dtype, null=null)
        column = column.dictionary_decode()
    hashes = np.empty(len(column), dtype)
    for first in range(0, len(column), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        block = _block_of(column[rows])
        if block.nulls is None:
            hashes[rows] = hash_block(block)
        elif block.nulls.all():  # often: records without keys
            hashes[rows] = null
        else:
            hashes[rows] = np.where(block.nulls, np.array(null, dtype), hash_block(block))
    return hashes


def _hash_dictionary(
    column: pa.Array,
    hash_block: Callable[[Block], npt.NDArray[Hash]],
    dtype: type[Hash],
    *,
    null: int,
) -> npt.NDArray[Hash]:
    """Each distinct value is hashed once; one hash more stands for the rows that have none."""
    distinct = hash_column(column.dictionary, hash_block, dtype, null=null)
    indices = column.indices.cast(pa.int64()).fill_null(len(distinct))
    hashes: npt.NDArray[Hash] = np.append(distinct, np.array([null], dtype))[indices.to_numpy()]
    return hashes


def _block_of(part: pa.Array) -> Block:
    if not _has_bytes(part.type):
        part = _as_binary(part)
    values_buffer = part.buffers()[-1]
    if values_buffer is None or not values_buffer.size:
        values = np.zeros(0, np.uint8)
    else:
        values = np.frombuffer(values_buffer, np.uint8)
    nulls = part.is_null().to_numpy(zero_copy_only=False) if part.null_count else None
    return Block(values, _offsets_of(part), nulls)


def _has_bytes(kind: pa.DataType) -> bool:
    is_any = (
        pa.types.is_binary,
        pa.types.is_string,
        pa.types.is_large_binary,
        pa.types.is_large_string,
        pa.types.is_fixed_size_binary,
    )
    return any(is_kind(kind) for is_kind in is_any)


def _offsets_of(part: pa.Array) -> npt.NDArray[np.int64]:
    first, count = part.offset, len(part) + 1
    if pa.types.is_fixed_size_binary(part.type):
        return np.arange(first, first + count, dtype=np.int64) * int(part.type.byte_width)
    wide = pa.types.is_large_binary(part.type) or pa.types.is_large_string(part.type)
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(part.buffers()[1], kind, count, first * kind.itemsize)
    return offsets.astype(np.int64)


def _as_binary(part: pa.Array) -> pa.Array:
    """Views, and columns of nothing but nulls. Arrow refuses to cast what is no bytes."""
    try:
        return part.cast(pa.large_binary())
    except pa.ArrowNotImplementedError as error:
        raise InvalidRows(
            f"A column of type {part.type} cannot be hashed: it holds no bytes. "
            "Encode its values to binary or string first."
        ) from error
