"""Who made a commit. Ours say so in their metadata, so that an echo is never a movement.

The mark names the log, the write and the offset. A consumer that commits what it was told, with its
metadata and another offset, is not taken for us; neither is another log, such as a restored copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_PREFIX: Final = "duolog"
_SHOWN_LOG_ID: Final = 12  # characters of it, since every commit carries them


class Author(StrEnum):
    """Whose commit it is, and what may be done about it."""

    OURS = "ours"
    CONSUMER = "consumer"
    ONE_WAY = "one_way"  # its metadata belongs to an application, such as Kafka Streams


@dataclass(frozen=True, slots=True)
class KafkaCommit:
    """A group's offset in one Kafka partition, as Kafka holds it."""

    offset: int
    author: Author = Author.CONSUMER
    nonce: str | None = None  # of our own ones


def mark(log_id: str, nonce: str, offset: int) -> str:
    """The metadata of a commit of ours."""
    return f"{_PREFIX} {log_id[:_SHOWN_LOG_ID]} {nonce} {offset}"


def commit_of(offset: int, metadata: str | None, log_id: str) -> KafkaCommit:
    """A commit with its author."""
    if not metadata:
        return KafkaCommit(offset)
    match metadata.split(" "):
        case [prefix, log, nonce, marked] if prefix == _PREFIX:
            is_ours = log == log_id[:_SHOWN_LOG_ID] and marked == str(offset)
            return KafkaCommit(offset, Author.OURS, nonce) if is_ours else KafkaCommit(offset)
    return KafkaCommit(offset, Author.ONE_WAY)
