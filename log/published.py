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

_WITHOUT_TIME_VERSION = 1
_KEY_AND_VALUE_VERSION = 2
VERSION = 3
_CONTENT_BYTES = 16
_WITHOUT_TIME = struct.Struct(f">BIIQ{_CONTENT_BYTES}s")
_STORED = struct.Struct(f">BIIQ{_CONTENT_BYTES}sQ")


class Published(NamedTuple):
    """Where a record went, a hash of what it was, and when.

    Version 1 did not know when. Up to version 2 the hash is of key and value alone.
    """

    where: TopicPartition
    offset: int
    content: bytes
    at_ms: int | None
    version: int = VERSION

    def is_of(self, record: Record) -> bool:
        """Whether this record was published there. Headers and time do not count: who sends a
        record again may have made them anew.
        """
        elsewhere = record.partition is not None and record.partition != self.where.partition
        is_same = self.content == content_of(record, self.version)
        return is_same and not (elsewhere and self.version == VERSION)


def pack_published(published: Published) -> bytes:
    where, offset, content, at_ms, version = published
    if at_ms is None:
        return _WITHOUT_TIME.pack(
            _WITHOUT_TIME_VERSION, where.topic_id, where.partition, offset, content
        )
    return _STORED.pack(version, where.topic_id, where.partition, offset, content, at_ms)


def unpack_published(stored: bytes) -> Published:
    at_ms: int | None
    version = stored[0]
    if version in (_KEY_AND_VALUE_VERSION, VERSION):
        _, topic_id, partition, offset, content, at_ms = _STORED.unpack(stored)
    elif version == _WITHOUT_TIME_VERSION:
        (_, topic_id, partition, offset, content), at_ms = _WITHOUT_TIME.unpack(stored), None
    else:
        raise UnsupportedFormat(
            f"A published record is remembered as version {version}. Use a newer Duolog."
        )
    return Published(TopicPartition(topic_id, partition), offset, content, at_ms, version)


def content_of(record: Record, version: int = VERSION) -> bytes:
    """Stands for a record's key and value, and from version 3 on for its operation, payload mode
    and table.
    """
    content = hashlib.blake2b(digest_size=_CONTENT_BYTES)
    parts = [record.key, record.value]
    if version == VERSION:
        content.update(bytes((int(record.op), int(record.payload))))
        parts.append(None if record.table is None else record.table.encode())
    for part in parts:
        size = -1 if part is None else len(part)
        content.update(size.to_bytes(8, "big", signed=True))
        content.update(part or b"")
    return content.digest()


def highest_sequence(store: Store, writer: str) -> int | None:
    """The highest sequence that a writer has used."""
    prefix = sequence_prefix(writer)
    found = store.last_at_or_before("epochs", after_prefix(prefix), prefix)
    return None if found is None else parse_sequence(found[0])
