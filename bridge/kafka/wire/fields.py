"""Fields of Kafka's flexible messages: how they are written and read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

NO_TAGS = b"\x00"

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

int8 = _INT8.pack
int16 = _INT16.pack
int32 = _INT32.pack
int64 = _INT64.pack


def varint(number: int) -> bytes:
    """An unsigned one."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def text(value: str | None) -> bytes:
    return blob(None if value is None else value.encode())


def blob(value: bytes | None) -> bytes:
    return b"\x00" if value is None else varint(len(value) + 1) + value


def array(items: Iterable[bytes]) -> bytes:
    """Items that are written already; a structure ends with its tags."""
    written = list(items)
    return varint(len(written) + 1) + b"".join(written)


def old_text(value: str) -> bytes:
    """As messages write it that are not flexible."""
    encoded = value.encode()
    return int16(len(encoded)) + encoded


def old_array(items: Iterable[bytes]) -> bytes:
    written = list(items)
    return int32(len(written)) + b"".join(written)


def one_item() -> bytes:
    """What begins an array of one item."""
    return varint(2)


class Reader:
    """Reads one answer from its first byte to its last."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 0

    def int8(self) -> int:
        return self._number(_INT8)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._message[self._at]
            self._at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def uuid(self) -> UUID:
        return UUID(bytes=self._take(16))

    def blob(self) -> bytes | None:
        length = self.varint() - 1
        return None if length < 0 else self._take(length)

    def text(self) -> str | None:
        found = self.blob()
        return None if found is None else found.decode()

    def array(self, item: Callable[[], T]) -> list[T]:
        """As many items as there are; a null array has none."""
        return [item() for _ in range(max(0, self.varint() - 1))]

    def old_text(self) -> str:
        return self._take(max(0, self.int16())).decode()

    def old_array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(max(0, self.int32()))]

    def tags(self) -> None:
        """What newer brokers add is passed over."""
        for _ in range(self.varint()):
            self.varint()
            self._take(self.varint())

    def _number(self, kind: struct.Struct) -> int:
        (number,) = kind.unpack_from(self._message, self._at)
        self._at += kind.size
        return int(number)

    def _take(self, length: int) -> bytes:
        taken = self._message[self._at : self._at + length]
        if len(taken) < length:
            raise ValueError("The message ends too early.")
        self._at += length
        return taken
