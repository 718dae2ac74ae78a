"""Strings, bytes, fixed bytes and enums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.avro.encode.buffers import binary_parts, fixed_bytes
from duolog.avro.encode.node import Unfit
from duolog.avro.encode.pieces import constant, lengths_where, spans_where
from duolog.avro.varint import varint
from duolog.log.routing.kinds import is_string, without_view

if TYPE_CHECKING:
    import numpy.typing as npt

    from duolog.avro.encode.pieces import Piece, Presence

_SHOWN = 40  # characters of a value, in messages


@dataclass(frozen=True, slots=True)
class Text:
    """A length and the bytes, of strings or binaries. `is_text`: they must be UTF-8."""

    path: str
    is_text: bool
    weight: int = 2

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        values = plain(values)
        content, parts = binary_parts(values)
        if self.is_text:
            self._check(values, content, present)
        longest = int(parts.sizes.max())
        return [
            *lengths_where(present, parts.sizes, longest),
            spans_where(present, content, parts.starts, parts.sizes, longest),
        ]

    def _check(
        self, values: pa.Array, content: npt.NDArray[np.uint8], present: Presence | None
    ) -> None:
        """Arrow does not look at what it is given as a string."""
        if not len(content) or content.max() < 0x80:
            return
        if not is_string(values.type):
            wide = pa.types.is_large_binary(values.type)
            values = values.view(pa.large_string() if wide else pa.string())
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            row = first_not_utf8(values, present)
            if row is not None:
                raise Unfit(
                    row,
                    self.path,
                    "the bytes are not UTF-8, as a string must be. Make it a binary column, or "
                    "correct what fills it.",
                ) from None


def first_not_utf8(values: pa.Array, present: Presence | None) -> int | None:
    """The first row that is present and not UTF-8. Slow: for what is known to hold one."""
    content, parts = binary_parts(values)
    rows = np.arange(len(values)) if present is None else np.flatnonzero(present.flags)
    for row in rows.tolist():
        begin = int(parts.starts[row])
        try:
            content[begin : begin + int(parts.sizes[row])].tobytes().decode()
        except UnicodeDecodeError:
            return int(row)
    return None


def plain(values: pa.Array) -> pa.Array:
    """Views as ordinary strings and binaries."""
    kind = without_view(values.type)
    return values if kind == values.type else values.cast(kind)


@dataclass(frozen=True, slots=True)
class FixedAsBytes:
    """Values of one size: behind its length where Avro has bytes, alone where it has a fixed."""

    path: str
    size: int
    has_length: bool
    is_text: bool = False
    weight: int = 2

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        content = fixed_bytes(values, self.size).reshape(-1)
        if self.is_text and len(content) and content.max() >= 0x80:
            Text(self.path, is_text=True).pieces(values.cast(pa.binary()), present)
        starts = np.arange(len(values), dtype=np.int64) * self.size
        length = constant(varint(self.size), present, len(values)) if self.has_length else []
        return [*length, spans_where(present, content, starts, self.size, self.size)]


@dataclass(frozen=True, slots=True)
class BytesAsFixed:
    """Values of any size that must all have the one of the fixed."""

    path: str
    size: int
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        content, parts = binary_parts(plain(values))
        wrong = parts.sizes != self.size
        if wrong.any():
            rows = np.flatnonzero(wrong if present is None else wrong & present.flags)
            if len(rows):
                row = int(rows[0])
                raise Unfit(
                    row,
                    self.path,
                    f"{int(parts.sizes[row])} bytes, where the schema has a fixed of {self.size}.",
                )
        sizes = parts.sizes if present is None else present.mask & parts.sizes
        return [spans_where(None, content, parts.starts, sizes, self.size)]


_DIGITS = np.frombuffer(
    b"".join(b"%02x" % byte for byte in range(256)), np.uint16
)  # two characters for each byte
_UUID_BYTES, _UUID_TEXT_BYTES = 16, 36
_DASHES = (8, 13, 18, 23)
_BETWEEN = np.setdiff1d(np.arange(_UUID_TEXT_BYTES), _DASHES)


@dataclass(frozen=True, slots=True)
class UuidAsText:
    """Sixteen bytes as the 36 characters of a UUID."""

    weight: int = 2

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        storage = values.storage if isinstance(values, pa.ExtensionArray) else values
        digits = _DIGITS[fixed_bytes(storage, _UUID_BYTES)].view(np.uint8)
        text = np.full((len(values), _UUID_TEXT_BYTES), ord("-"), np.uint8)
        text[:, _BETWEEN] = digits
        starts = np.arange(len(values), dtype=np.int64) * _UUID_TEXT_BYTES
        length = constant(varint(_UUID_TEXT_BYTES), present, len(values))
        size = _UUID_TEXT_BYTES
        return [*length, spans_where(present, text.reshape(-1), starts, size, size)]


@dataclass(frozen=True, slots=True)
class Symbols:
    """Strings that are the words of an enum, as their places in it."""

    path: str
    name: str
    symbols: tuple[str, ...]
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        words = plain(values)
        places = pc.index_in(words, pa.array(self.symbols, words.type))
        if places.null_count:
            unknown = places.is_null().to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(unknown if present is None else unknown & present.flags)
            if len(rows):
                row = int(rows[0])
                raise Unfit(row, self.path, self._refusal(words, row))
            places = places.fill_null(0)
        numbers = places.to_numpy().astype(np.int64)
        return lengths_where(present, numbers, len(self.symbols))

    def _refusal(self, words: pa.Array, row: int) -> str:
        content, parts = binary_parts(words.slice(row, 1))
        word = content[: int(parts.sizes[0])].tobytes().decode(errors="replace")
        return (
            f"{word[:_SHOWN]!r} is no symbol of the enum '{self.name}', which has "
            f"{', '.join(self.symbols)[:200]}."
        )
