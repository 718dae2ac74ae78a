"""Keys of the column families. Big endian, so that their order is the order of the numbers."""

from __future__ import annotations

import struct

from duolog.log.model import TopicPartition

_PARTITION = struct.Struct(">II")
_RECORD = struct.Struct(">IIQ")
_TIME = struct.Struct(">IIQQ")
_TOPIC = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_SEQUENCE = struct.Struct(">Q")

LAST_OFFSET = 2**64 - 1


def topic_key(topic_id: int) -> bytes:
    return _TOPIC.pack(topic_id)


def partition_key(where: TopicPartition) -> bytes:
    return _PARTITION.pack(where.topic_id, where.partition)


def parse_partition_key(key: bytes) -> TopicPartition:
    return TopicPartition(*_PARTITION.unpack(key))


def record_key(where: TopicPartition, base_offset: int) -> bytes:
    return _RECORD.pack(where.topic_id, where.partition, base_offset)


def record_base_offset(key: bytes) -> int:
    return int(_RECORD.unpack(key)[2])


def hole_key(where: TopicPartition, base_offset: int) -> bytes:
    return b"hole" + record_key(where, base_offset)


def parse_hole_key(key: bytes) -> tuple[TopicPartition, int]:
    topic_id, partition, base_offset = _RECORD.unpack(key[4:])
    return TopicPartition(topic_id, partition), base_offset


def time_key(where: TopicPartition, running_max_ms: int, base_offset: int) -> bytes:
    return _TIME.pack(where.topic_id, where.partition, running_max_ms, base_offset)


def parse_time_key(key: bytes) -> tuple[int, int]:
    """The running maximum of the timestamps, and the batch's base offset."""
    _, _, running_max_ms, base_offset = _TIME.unpack(key)
    return running_max_ms, base_offset


def record_key_of_time(key: bytes) -> bytes:
    """The key of the batch that an entry of the index of times is for."""
    return key[: _PARTITION.size] + key[-_SEQUENCE.size :]


def group_key(group: str, where: TopicPartition) -> bytes:
    name = group.encode()
    return _LENGTH.pack(len(name)) + name + partition_key(where)


def parse_group_key(key: bytes) -> tuple[str, TopicPartition]:
    return key[2:-8].decode(), parse_partition_key(key[-8:])


def mirror_key(where: TopicPartition) -> bytes:
    return b"m" + partition_key(where)


def parse_mirror_key(key: bytes) -> TopicPartition:
    return parse_partition_key(key[1:])


def run_key(where: TopicPartition, first_log_offset: int) -> bytes:
    return b"r" + record_key(where, first_log_offset)


def skip_key(where: TopicPartition, first_log_offset: int) -> bytes:
    return b"s" + record_key(where, first_log_offset)


def mirror_mode_key(topic_id: int | None) -> bytes:
    """Of one topic, or of all that have none of their own."""
    return b"c" + (b"" if topic_id is None else topic_key(topic_id))


def parse_mirror_mode_key(key: bytes) -> int | None:
    return int(_TOPIC.unpack(key[1:])[0]) if len(key) > 1 else None


def producer_key(cluster_id: str) -> bytes:
    return b"p" + cluster_id.encode()


def epoch_key(writer: str) -> bytes:
    return b"e" + writer.encode()


def sequence_key(writer: str, sequence: int) -> bytes:
    return sequence_prefix(writer) + _SEQUENCE.pack(sequence)


def sequence_prefix(writer: str) -> bytes:
    name = writer.encode()
    return b"s" + _LENGTH.pack(len(name)) + name


def parse_sequence_prefix(key: bytes) -> tuple[str, bytes]:
    """The writer that a sequence's key is of, and the prefix of all its keys."""
    (length,) = _LENGTH.unpack_from(key, 1)
    prefix = key[: 1 + _LENGTH.size + length]
    return prefix[1 + _LENGTH.size :].decode(), prefix


def parse_sequence(key: bytes) -> int:
    return int(_SEQUENCE.unpack(key[-8:])[0])


def after_prefix(prefix: bytes) -> bytes:
    """The first key that is beyond every key with this prefix."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else b"\xff" * (len(prefix) + 1)
