"""Families of Arrow types that are treated alike."""

from __future__ import annotations

import pyarrow as pa

_STRINGS = {pa.string(), pa.large_string()}
_BINARIES = {pa.binary(), pa.large_binary()}
if hasattr(pa, "string_view"):  # since pyarrow 16
    _STRINGS.add(pa.string_view())
    _BINARIES.add(pa.binary_view())


def is_string(kind: pa.DataType) -> bool:
    return kind in _STRINGS


def is_binary(kind: pa.DataType) -> bool:
    return kind in _BINARIES or bool(pa.types.is_fixed_size_binary(kind))


def is_list_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_map(kind)
    )
