"""The records of `__consumer_offsets`, as far as they say which group has changed.

Keys of version 0 and 1 are commits. Versions 2, 3 and 5 to 8 tell of a group's members: that a
group has emptied is seen there. All others are passed over, and so is what is not understood: the
feed is a hint, and the value comes from the coordinator.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

_COMMIT_KEYS: Final = frozenset({0, 1})
_MEMBER_KEYS: Final = frozenset({2, 3, 5, 6, 7, 8})
_NEWEST_VALUE: Final = 4
_FIRST_FLEXIBLE: Final = 4
_FIRST_WITH_LEADER_EPOCH: Final = 3
_END: Final = "\0"  # librdkafka sends the end mark of its texts along


@dataclass(frozen=True, slots=True)
class OffsetCommitted:
    """A commit; `offset` is None when it was taken away, or is written in a newer form."""

    group: str
    topic: str
    partition: int
    offset: int | None
    metadata: str = ""

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """Somebody joined or left the group."""

    group: str


GroupChange = OffsetCommitted | MembersChanged


def parse_change(key: bytes | None, value: bytes | None) -> GroupChange | None:
    """What a record says, None if nothing that matters here."""
    if key is None:
        return None
    try:
        return _parse(key, value)
    except (struct.error, UnicodeDecodeError):
        return None


def _parse(key: bytes, value: bytes | None) -> GroupChange | None:
    (version,) = struct.unpack_from(">h", key)
    if version in _MEMBER_KEYS:
        return MembersChanged(_text(key, 2)[0])
    if version not in _COMMIT_KEYS:
        return None
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    offset, metadata = _commit(value)
    return OffsetCommitted(group, topic, partition, offset, metadata)


def _commit(value: bytes | None) -> tuple[int | None, str]:
    if value is None:
        return None, ""
    version, offset = struct.unpack_from(">hq", value)
    if not 0 <= version <= _NEWEST_VALUE:
        return None, ""
    at = 14 if version >= _FIRST_WITH_LEADER_EPOCH else 10
    if version < _FIRST_FLEXIBLE:
        return offset, _text(value, at)[0].rstrip(_END)
    length, at = _unsigned(value, at)
    return offset, _cut(value, at, length - 1).decode().rstrip(_END)


def _text(packed: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", packed, at)
    return _cut(packed, at + 2, length).decode(), at + 2 + length


def _cut(packed: bytes, at: int, length: int) -> bytes:
    if length < 0 or at + length > len(packed):
        raise struct.error("cut off")
    return packed[at : at + length]


def _unsigned(packed: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first."""
    number = shift = 0
    while True:
        (byte,) = struct.unpack_from("B", packed, at)
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
