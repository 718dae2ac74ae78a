"""Whether a topic is still the one that was meant: a name may come to mean another topic."""

from __future__ import annotations

from duolog.errors import InvalidRequest, TopicRecreated
from duolog.log.model import Topic


def check_topic_id(topic: Topic, topic_id: int | None) -> Topic:
    """The topic, if it has this id or none is named. Raises TopicRecreated."""
    if topic_id is None or (topic.id == topic_id and not isinstance(topic_id, bool)):
        return topic
    if isinstance(topic_id, bool) or not isinstance(topic_id, int) or topic_id < 0:
        raise InvalidRequest(f"A topic's id is a whole number from 0; got {topic_id!r}.")
    raise TopicRecreated(
        f"Topic '{topic.name}' has id {topic.id} now, not {topic_id}: it was dropped and made "
        "again, or another topic has its name. Offsets of the one before mean nothing here. Read "
        f"this one from its first record on, and name topic_id {topic.id}.",
        topic=topic.name,
        topic_id=topic.id,
    )
