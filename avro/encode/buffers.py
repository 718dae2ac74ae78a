"""The memory of Arrow columns, as numpy sees it. Nothing is copied that need not be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from duolog.log.routing.kinds import without_view

if TYPE_CHECKING:
    import numpy.typing as npt


class Parts(NamedTuple):
    """Where in a content each row's part begins, and how long it is."""

    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


def validity(values: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values are not null; None when all are. Of a dictionary, either half may say null."""
    kind = values.type
    if pa.types.is_null(kind):
        return np.zeros(len(values), np.bool_) if len(values) else None
    valid = _bitmap(values) if values.null_count else None
    if pa.types.is_dictionary(kind) and values.dictionary.null_count:
        known = _bitmap(values.dictionary)
        indices = index_numbers(values)
        if valid is None:
            return known[indices]
        indices[~valid] = 0
        return valid & known[indices]
    return valid


def _bitmap(values: pa.Array) -> npt.NDArray[np.bool_]:
    buffer = values.buffers()[0]
    begin = values.offset // 8
    skipped = values.offset - 8 * begin
    length = -(-(skipped + len(values)) // 8)
    packed = np.frombuffer(buffer, np.uint8, length, begin)
    bits = np.unpackbits(packed, count=skipped + len(values), bitorder="little")
    return bits[skipped:].view(np.bool_)


def numbers(values: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """The values of a column of fixed width; where it is null, anything."""
    kind = np.dtype(kind)
    if not len(values):
        return np.empty(0, kind)
    return np.frombuffer(values.buffers()[1], kind, len(values), values.offset * kind.itemsize)


def numpy_name(kind: pa.DataType) -> str:
    """What numpy calls a type of numbers. (Older versions of pyarrow ask pandas for that.)"""
    if pa.types.is_floating(kind):
        return f"float{kind.bit_width}"
    return f"{'int' if pa.types.is_signed_integer(kind) else 'uint'}{kind.bit_width}"


def index_numbers(values: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Of a dictionary column, which of its entries each row has. A copy."""
    indices = values.indices
    return numbers(indices, numpy_name(indices.type)).astype(np.int64)


def binary_parts(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Parts]:
    """The bytes of strings or binaries, from the first row's to the last row's."""
    if not len(values):
        return np.empty(0, np.uint8), Parts(np.empty(0, np.int64), np.empty(0, np.int64))
    _, offsets, content = values.buffers()
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    width = np.dtype(np.int64 if wide else np.int32)
    bounds = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize)
    begin, end = int(bounds[0]), int(bounds[-1])
    all_bytes = np.empty(0, np.uint8) if content is None else np.frombuffer(content, np.uint8)
    places = bounds.astype(np.int64)
    places -= begin
    return all_bytes[begin:end], Parts(places[:-1], np.diff(places))


def fixed_bytes(values: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """The bytes of a column of so many bytes a row, by row."""
    if not len(values):
        return np.empty((0, size), np.uint8)
    content = np.frombuffer(values.buffers()[1], np.uint8, len(values) * size, values.offset * size)
    return content.reshape(len(values), size)


def list_parts(values: pa.Array) -> tuple[pa.Array, Parts]:
    """The items of lists of any kind, from the first that is used to the last.

    A map's items are struct<key, value>. Where a list is null, its part is anything.
    """
    kind = values.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        starts = np.arange(len(values), dtype=np.int64) * size
        items = values.values.slice(values.offset * size, len(values) * size)
        return items, Parts(starts, np.full(len(values), size, np.int64))
    if is_list_view(kind):
        starts = _int64(values.offsets)
        sizes = _int64(values.sizes)
        valid = validity(values)
        if valid is not None:
            starts[~valid], sizes[~valid] = 0, 0
        used = sizes > 0
        begin = int(starts[used].min()) if used.any() else 0
        end = int((starts + sizes)[used].max()) if used.any() else 0
        starts -= begin
        starts[~used] = 0
        return values.values.slice(begin, end - begin), Parts(starts, sizes)
    bounds = _int64(values.offsets)
    begin, end = int(bounds[0]), int(bounds[-1])
    bounds -= begin
    if pa.types.is_map(kind):
        items = pa.StructArray.from_arrays(
            [values.keys.slice(begin, end - begin), values.items.slice(begin, end - begin)],
            names=["key", "value"],
        )
    else:
        items = values.values.slice(begin, end - begin)
    return items, Parts(bounds[:-1], np.diff(bounds))


def stored_kind(kind: pa.DataType) -> pa.DataType:
    """The plain form of a view type; any other as it is, even one that cannot be hashed."""
    return kind if isinstance(kind, pa.BaseExtensionType) else without_view(kind)


def is_list_view(kind: pa.DataType) -> bool:
    """Whether this is a list whose parts may lie anywhere; pyarrow has them since 16."""
    names = ("is_list_view", "is_large_list_view")
    return any(getattr(pa.types, name)(kind) for name in names if hasattr(pa.types, name))


def _int64(offsets: pa.Array) -> npt.NDArray[np.int64]:
    width = np.int64 if offsets.type == pa.int64() else np.int32
    return numbers(offsets, width).astype(np.int64)
