"""Under which subject a schema is registered, named as Confluent's serializers name it."""

from __future__ import annotations

from enum import StrEnum

from duolog.errors import InvalidSetting
from duolog.log.routing.codec import Part


class SubjectNameStrategy(StrEnum):
    """What a subject's name is made of."""

    TOPIC = "Topic"  # orders-value: one kind of record a topic
    RECORD = "Record"  # com.shop.Order, the same in every topic
    TOPIC_RECORD = "TopicRecord"  # orders-com.shop.Order: several kinds of records in one topic


def subject_name(
    strategy: SubjectNameStrategy, topic: str, part: Part, record_name: str | None
) -> str:
    """The subject of a schema. `record_name` is its full name, None where it has none."""
    if part is Part.PLACE:
        raise InvalidSetting("Bytes that are only hashed are written without a schema's id.")
    if strategy is SubjectNameStrategy.TOPIC:
        return f"{topic}-{part.value}"
    if record_name is None:
        raise InvalidSetting(
            f"The {part} of topic '{topic}' has a schema without a name, which "
            f"{strategy}NameStrategy needs. Use TopicNameStrategy for it."
        )
    if strategy is SubjectNameStrategy.RECORD:
        return record_name
    return f"{topic}-{record_name}"


_WORDS = {
    "topic": SubjectNameStrategy.TOPIC,
    "record": SubjectNameStrategy.RECORD,
    "topicrecord": SubjectNameStrategy.TOPIC_RECORD,
}
_ENDINGS = ("subjectnamestrategy", "namestrategy", "strategy")


def strategy_of(word: str) -> SubjectNameStrategy:
    """A strategy by any name that a client calls it.

    Topic, TOPIC_RECORD, TopicRecordNameStrategy, topic_record_subject_name_strategy, or the full
    name of Confluent's Java class.
    """
    plain = word.strip().rpartition(".")[2].replace("_", "").replace("-", "").lower()
    for ending in _ENDINGS:
        if plain.endswith(ending):
            plain = plain.removesuffix(ending)
            break
    if plain not in _WORDS:
        raise InvalidSetting(
            f"'{word}' is no subject name strategy that is known here. Use one of "
            f"{', '.join(SubjectNameStrategy)}."
        )
    return _WORDS[plain]
