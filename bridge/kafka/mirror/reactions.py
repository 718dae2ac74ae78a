"""What a broker's answer to a batch means for the mirror. Pure.

Nothing is ever sent again as it was: after anything but an acknowledgement the partition recovers,
which finds out what is there, and goes on behind it. The broker refuses what would be a duplicate
or leave a gap, so a wrong guess costs a round and never a record.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from duolog.errors import (
    KafkaTopicMissing,
    KafkaTopicRecreated,
    KafkaTopicUnfit,
    MirrorDiverged,
    MirrorHalted,
    MirrorRefused,
)

OK: Final = 0
_CORRUPT: Final = 2
_UNKNOWN_TOPIC: Final = 3
_TOO_LARGE: Final = 10
_LIST_TOO_LARGE: Final = 18
_TOPIC_NOT_ALLOWED: Final = 29
_CLUSTER_NOT_ALLOWED: Final = 31
_TIME_REFUSED: Final = 32
_INVALID_TOPIC: Final = 17
_POLICY: Final = 44
_OUT_OF_ORDER: Final = 45
_DUPLICATE: Final = 46
_INVALID_EPOCH: Final = 47
_FENCED: Final = 90
_ID_NOT_ALLOWED: Final = 53
_UNKNOWN_TOPIC_ID: Final = 100
_INVALID_RECORD: Final = 87
_UNSUPPORTED_COMPRESSION: Final = 76
_SASL_FAILED: Final = 58


class Reaction(Enum):
    """What the partition does next."""

    RECOVER = "recover"  # look what is there, and go on
    LOOK_AGAIN = "look again"  # at the topic: its id, its leader, its limits; then recover
    JUDGE = "judge"  # Kafka refuses a record: judge by the topic's limits as they are now
    HALT = "halt"


_BY_ERROR: Final = {
    _OUT_OF_ORDER: Reaction.RECOVER,
    _DUPLICATE: Reaction.RECOVER,
    _CORRUPT: Reaction.RECOVER,  # damaged on the way
    _UNKNOWN_TOPIC: Reaction.LOOK_AGAIN,
    _UNKNOWN_TOPIC_ID: Reaction.LOOK_AGAIN,
    _TOO_LARGE: Reaction.JUDGE,
    _LIST_TOO_LARGE: Reaction.JUDGE,
    _TIME_REFUSED: Reaction.JUDGE,
    _INVALID_RECORD: Reaction.JUDGE,
    _TOPIC_NOT_ALLOWED: Reaction.HALT,
    _CLUSTER_NOT_ALLOWED: Reaction.HALT,
    _ID_NOT_ALLOWED: Reaction.HALT,
    _SASL_FAILED: Reaction.HALT,
    _INVALID_TOPIC: Reaction.HALT,
    _INVALID_EPOCH: Reaction.HALT,
    _FENCED: Reaction.HALT,
    _POLICY: Reaction.HALT,
    _UNSUPPORTED_COMPRESSION: Reaction.HALT,
}


def reaction_to(error: int) -> Reaction:
    """What is done after an answer with this error. Most of them pass: a leader has moved."""
    return _BY_ERROR.get(error, Reaction.LOOK_AGAIN)


def halted_by(error: int, topic: str, partition: int, said: str | None) -> MirrorHalted:
    """Why the partition stands still, in our words."""
    where = f"Kafka topic '{topic}' partition {partition}"
    words = f" Kafka says: {said}" if said else ""
    match error:
        case 58:
            return MirrorRefused(said or f"The cluster does not let the mirror in, to {where}.")
        case 29 | 31 | 53:
            return MirrorRefused(
                f"The cluster does not let the mirror write to {where} (error {error}).{words} "
                "Allow its user to write, describe and read there; it goes on by itself then."
            )
        case 47 | 90:
            return MirrorDiverged(
                f"{where} has a newer epoch of the mirror's producer id: another program has taken "
                f"it.{words} Find that program; then begin the mirror anew in another topic."
            )
        case 76:
            return KafkaTopicUnfit(
                f"{where} does not take the compression of the mirror.{words} Set "
                "compression.type=none."
            )
        case _:
            return KafkaTopicUnfit(
                f"{where} refuses what the mirror sends (error {error}).{words} Change the topic's "
                "settings or the mirror's; it goes on by itself then."
            )


def topic_missing(log_topic: str, kafka_topic: str) -> KafkaTopicMissing:
    return KafkaTopicMissing(
        f"Kafka topic '{kafka_topic}', into which '{log_topic}' is mirrored, was deleted. Run "
        f"`duolog mirror restart {log_topic}` to make it and copy what the log keeps."
    )


def topic_recreated(log_topic: str, kafka_topic: str, was: str, now: str) -> KafkaTopicRecreated:
    return KafkaTopicRecreated(
        f"Kafka topic '{kafka_topic}' was deleted and made again (its id was {was}, now it is "
        f"{now}). Run `duolog mirror restart {log_topic}` to copy what the log keeps into it."
    )
