"""Families of Arrow types that are treated alike."""

from __future__ import annotations

import pyarrow as pa

_VIEWS = {}
if hasattr(pa, "string_view"):  # since pyarrow 16
    _VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_view(kind: pa.DataType) -> pa.DataType:
    """The plain form of a view type: most of pyarrow, take and filter too, knows only that."""
    if isinstance(kind, pa.BaseExtensionType):  # those defined in Python cannot be hashed
        return kind
    return _VIEWS.get(kind, kind)


def is_string(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


def is_binary(kind: pa.DataType) -> bool:
    plain = kind in (pa.binary(), pa.large_binary())
    return plain or bool(pa.types.is_fixed_size_binary(kind))


def is_list_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_map(kind)
    )
