"""Puts batches into a log that nothing can decode, as a bad disk or an older Duolog left them."""

from __future__ import annotations

import zlib
from enum import Enum

from duolog.log.embedded import EmbeddedLog
from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import TopicPartition
from duolog.log.store import WriteBatch


class Poison(Enum):
    """What is wrong with a batch."""

    WRONG_SUM = "wrong sum"
    WRONG_INSIDES = "wrong insides"  # below a right checksum
    NO_HEADER = "no header"
    MISSING = "missing"


def poison(log: EmbeddedLog, topic: str, partition: int, offset: int, kind: Poison) -> None:
    """Damage the stored batch that holds an offset; readers do not have it in memory any more."""
    state = log._state
    where = TopicPartition(log.topic(topic).id, partition)
    found = state.store.last_at_or_before(
        "records", record_key(where, offset), record_key(where, 0)
    )
    assert found is not None
    key, encoded = found
    batch = WriteBatch()
    if kind is Poison.MISSING:
        batch.delete("records", key)
    else:
        batch.put("records", key, _damaged(encoded, kind))
    state.store.commit(batch)
    base_offset = record_base_offset(key)
    state.cache.forget(where, base_offset, base_offset + 1)


def _damaged(encoded: bytes, kind: Poison) -> bytes:
    match kind:
        case Poison.NO_HEADER:
            return encoded[:1] + b"\x09" + encoded[2:]
        case Poison.WRONG_SUM:
            return encoded[:-1] + bytes([encoded[-1] ^ 1])
        case _:
            cut = encoded[: 28 + (len(encoded) - 28) // 2]
            crc32 = zlib.crc32(cut[8:], zlib.crc32(cut[:4]))
            return cut[:4] + crc32.to_bytes(4) + cut[8:]
