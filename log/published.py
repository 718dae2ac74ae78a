"""What is remembered of a record that was published with a sequence, so that a retry is no twin."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from duolog.errors import UnsupportedFormat
from duolog.log.keys import after_prefix, parse_sequence, sequence_prefix
from duolog.log.model import Record, TopicPartition
from duolog.log.store import Store

REMEMBERED_SEQUENCES = 1024
"""So many of a writer's latest sequences can be sent again, and all of its last call."""

_VERSION_WITHOUT_TIME = 1
_VERSION = 2
_CONTENT_BYTES = 16
_WITHOUT_TIME = struct.Struct(f">BIIQ{_CONTENT_BYTES}s")
_STORED = struct.Struct(f">BIIQ{_CONTENT_BYTES}sQ")


class Published(NamedTuple):
    """Where a record went, a hash of what it was, and when; version 1 did not know when."""

    where: TopicPartition
    offset: int
    content: bytes
    at_ms: int | None


def pack_published(published: Published) -> bytes:
    where, offset, content, at_ms = published
    if at_ms is None:
        return _WITHOUT_TIME.pack(
            _VERSION_WITHOUT_TIME, where.topic_id, where.partition, offset, content
        )
    return _STORED.pack(_VERSION, where.topic_id, where.partition, offset, content, at_ms)


def unpack_published(stored: bytes) -> Published:
    at_ms: int | None
    if stored[0] == _VERSION:
        _, topic_id, partition, offset, content, at_ms = _STORED.unpack(stored)
    elif stored[0] == _VERSION_WITHOUT_TIME:
        (_, topic_id, partition, offset, content), at_ms = _WITHOUT_TIME.unpack(stored), None
    else:
        raise UnsupportedFormat(
            f"A published record is remembered as version {stored[0]}. Use a newer Duolog."
        )
    return Published(TopicPartition(topic_id, partition), offset, content, at_ms)


def content_of(record: Record) -> bytes:
    """Stands for a record's key and value."""
    content = hashlib.blake2b(digest_size=_CONTENT_BYTES)
    for part in (record.key, record.value):
        size = -1 if part is None else len(part)
        content.update(size.to_bytes(8, "big", signed=True))
        content.update(part or b"")
    return content.digest()


def highest_sequence(store: Store, writer: str) -> int | None:
    """The highest sequence that a writer has used."""
    prefix = sequence_prefix(writer)
    found = store.last_at_or_before("epochs", after_prefix(prefix), prefix)
    return None if found is None else parse_sequence(found[0])
