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
"""So many of a writer's latest sequences can be sent again."""

_VERSION = 1
_CONTENT_BYTES = 16
_STORED = struct.Struct(f">BIIQ{_CONTENT_BYTES}s")


class Published(NamedTuple):
    """Where a record went, and a hash of what it was."""

    where: TopicPartition
    offset: int
    content: bytes


def pack_published(published: Published) -> bytes:
    where, offset, content = published
    return _STORED.pack(_VERSION, where.topic_id, where.partition, offset, content)


def unpack_published(stored: bytes) -> Published:
    if stored[0] != _VERSION:
        raise UnsupportedFormat(
            f"A published record is remembered as version {stored[0]}. Use a newer Duolog."
        )
    _, topic_id, partition, offset, content = _STORED.unpack(stored)
    return Published(TopicPartition(topic_id, partition), offset, content)


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
