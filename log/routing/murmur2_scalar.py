"""The Java client's hash for a single key, where numpy would cost more than the hash."""

from __future__ import annotations

import struct

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition that Kafka's Java client chooses for this key."""
    return (hash_of_key(key) & 0x7FFFFFFF) % partitions


def hash_of_key(key: bytes) -> int:
    """`Utils.murmur2`, as an unsigned number."""
    size = len(key)
    hashed = _SEED ^ size
    words = size >> 2
    for word in struct.unpack_from(f"<{words}I", key):
        mixed = word * _M & _MASK
        mixed = (mixed ^ mixed >> 24) * _M & _MASK
        hashed = hashed * _M & _MASK ^ mixed
    rest = key[words * 4 :]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15
