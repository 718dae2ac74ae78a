"""How subjects are named."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import (
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.serialization import MessageField, SerializationContext

from duolog.avro.registry.subject_names import SubjectNameStrategy, strategy_of, subject_name
from duolog.errors import InvalidSetting
from duolog.log.routing.codec import Part

MESSAGE_FIELDS = {Part.KEY: MessageField.KEY, Part.VALUE: MessageField.VALUE}
THEIRS = {
    SubjectNameStrategy.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategy.RECORD: record_subject_name_strategy,
    SubjectNameStrategy.TOPIC_RECORD: topic_record_subject_name_strategy,
}


@pytest.mark.parametrize("part", [Part.KEY, Part.VALUE])
@pytest.mark.parametrize("strategy", SubjectNameStrategy)
def test_subjects_are_named_as_confluents_client_names_them(
    strategy: SubjectNameStrategy, part: Part
) -> None:
    context = SerializationContext("orders", MESSAGE_FIELDS[part])
    theirs = THEIRS[strategy](context, "com.shop.Order")
    assert subject_name(strategy, "orders", part, "com.shop.Order") == theirs


@pytest.mark.parametrize("strategy", [SubjectNameStrategy.RECORD, SubjectNameStrategy.TOPIC_RECORD])
def test_a_schema_without_a_name_cannot_be_named_after_it(strategy: SubjectNameStrategy) -> None:
    with pytest.raises(InvalidSetting, match="topic 'orders' has a schema without a name"):
        subject_name(strategy, "orders", Part.KEY, None)
    assert subject_name(SubjectNameStrategy.TOPIC, "orders", Part.KEY, None) == "orders-key"


def test_bytes_that_are_only_hashed_have_no_subject() -> None:
    with pytest.raises(InvalidSetting, match="only hashed"):
        subject_name(SubjectNameStrategy.TOPIC, "orders", Part.PLACE, "r")


@pytest.mark.parametrize(
    ("word", "strategy"),
    [
        ("Topic", SubjectNameStrategy.TOPIC),
        ("topic", SubjectNameStrategy.TOPIC),
        ("TopicNameStrategy", SubjectNameStrategy.TOPIC),
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", SubjectNameStrategy.TOPIC),
        ("topic_subject_name_strategy", SubjectNameStrategy.TOPIC),
        ("RECORD", SubjectNameStrategy.RECORD),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", SubjectNameStrategy.RECORD),
        ("record_subject_name_strategy", SubjectNameStrategy.RECORD),
        ("TOPIC_RECORD", SubjectNameStrategy.TOPIC_RECORD),
        ("topic-record", SubjectNameStrategy.TOPIC_RECORD),
        (
            "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy",
            SubjectNameStrategy.TOPIC_RECORD,
        ),
        ("topic_record_subject_name_strategy", SubjectNameStrategy.TOPIC_RECORD),
    ],
)
def test_every_spelling_of_a_strategy_is_understood(
    word: str, strategy: SubjectNameStrategy
) -> None:
    assert strategy_of(word) is strategy


@pytest.mark.parametrize("word", ["", "ASSOCIATED", "com.mine.NamedAfterMyDog", "NameStrategy"])
def test_a_strategy_that_is_not_known_is_refused_with_those_that_are(word: str) -> None:
    with pytest.raises(InvalidSetting, match="Use one of Topic, Record, TopicRecord"):
        strategy_of(word)
