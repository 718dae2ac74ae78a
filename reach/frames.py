"""Encoded batches on the wire, as they are stored: nobody between the disk and the reader decodes.

An answer is:

    u32 length of the head | head, JSON |
    for each batch: u64 base offset | u32 count | u32 length | bytes
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Final

from duolog.errors import HostFailed
from duolog.log.fetched import EncodedBatch, FetchedEncoded

_LENGTH: Final = struct.Struct(">I")
_BATCH: Final = struct.Struct(">QII")


def to_frames(fetched: FetchedEncoded) -> bytes:
    """An answer to a fetch."""
    head = json.dumps(
        [
            fetched.topic,
            fetched.topic_id,
            fetched.partition,
            fetched.offset,
            fetched.earliest,
            fetched.latest,
        ]
    ).encode()
    pieces = [_LENGTH.pack(len(head)), head]
    for batch in fetched.batches:
        pieces.append(_BATCH.pack(batch.base_offset, batch.count, len(batch.encoded)))
        pieces.append(batch.encoded)
    return b"".join(pieces)


def from_frames(content: bytes) -> FetchedEncoded:
    """The batches of an answer; each carries its own checksum, checked when it is decoded."""
    try:
        (length,) = _LENGTH.unpack_from(content)
        head = json.loads(content[_LENGTH.size : _LENGTH.size + length])
        topic, topic_id, partition, offset, earliest, latest = head
        batches = tuple(_batches(content, _LENGTH.size + length))
    except (struct.error, ValueError, TypeError):
        raise HostFailed(
            f"An answer of {len(content)} bytes to a fetch is not readable. Is there something "
            "between this program and the host that changes what it sends?"
        ) from None
    return FetchedEncoded(topic, topic_id, partition, offset, earliest, latest, batches)


def _batches(content: bytes, at: int) -> Iterator[EncodedBatch]:
    while at < len(content):
        base_offset, count, length = _BATCH.unpack_from(content, at)
        at += _BATCH.size
        encoded = content[at : at + length]
        if len(encoded) != length:
            raise ValueError
        yield EncodedBatch(base_offset, count, encoded)
        at += length
