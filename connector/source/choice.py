"""Which topics and partitions are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from duolog.connector.option_text import partitions_by_topic
from duolog.errors import InvalidSetting, UnknownPartition

if TYPE_CHECKING:
    from duolog.log.access import LogAccess
    from duolog.log.model import Topic


class Place(NamedTuple):
    """One partition. A topic that was dropped and made again has other places."""

    topic: str
    topic_id: int
    partition: int

    def __str__(self) -> str:
        return f"topic '{self.topic}' partition {self.partition}"


class Kept(NamedTuple):
    """What a partition has: from the first offset kept up to the next one written."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Topics by name or alias, all their partitions."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """Topics whose whole name matches, also those made later."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others."""

    partitions: Mapping[str, tuple[int, ...]]


Choice: TypeAlias = Subscribe | SubscribePattern | Assign

CHOICES = ("subscribe", "subscribePattern", "assign")


def choice_of(known: Mapping[str, str]) -> Choice:
    """The one of the three options that is given."""
    given = [name for name in CHOICES if name in known]
    if len(given) != 1:
        raise InvalidSetting(
            f"Say what to read with one of the options {', '.join(CHOICES)}; got "
            f"{' and '.join(given) or 'none'}."
        )
    words = known[given[0]]
    if given[0] == "assign":
        return Assign(partitions_by_topic("assign", words))
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in words.split(",") if name.strip()))
        if not topics:
            raise InvalidSetting(f"Option 'subscribe' is '{words}'. Name topics, comma between.")
        return Subscribe(topics)
    try:
        re.compile(words)
    except re.error as error:
        raise InvalidSetting(
            f"Option 'subscribePattern' is '{words}', which is no regular expression: {error}."
        ) from None
    return SubscribePattern(words)


def chosen_topics(log: LogAccess, choice: Choice) -> tuple[Topic, ...]:
    """The topics as they are now. UnknownTopic for one that is named and not there."""
    match choice:
        case Subscribe(topics):
            found = {log.topic(name) for name in topics}
        case Assign(partitions):
            found = {log.topic(name) for name in partitions}
        case SubscribePattern(pattern):
            found = {topic for topic in log.topics() if re.fullmatch(pattern, topic.name)}
    return tuple(sorted(found, key=lambda topic: topic.name))


def chosen_places(log: LogAccess, choice: Choice) -> dict[Place, Kept]:
    """The partitions, and what they have now, in the order of their names."""
    wanted = _assigned(log, choice) if isinstance(choice, Assign) else None
    places: dict[Place, Kept] = {}
    for topic in chosen_topics(log, choice):
        for offsets in log.offsets(topic.id):
            if wanted is None or (topic.id, offsets.partition) in wanted:
                place = Place(topic.name, topic.id, offsets.partition)
                places[place] = Kept(offsets.start, offsets.next_offset)
    return places


def _assigned(log: LogAccess, choice: Assign) -> set[tuple[int, int]]:
    wanted = set()
    for name, partitions in choice.partitions.items():
        topic = log.topic(name)
        if partitions[-1] >= topic.partitions:
            raise UnknownPartition(
                f"Option 'assign' names partition {partitions[-1]} of topic '{name}', which has "
                f"{topic.partitions}: 0 to {topic.partitions - 1}."
            )
        wanted |= {(topic.id, partition) for partition in partitions}
    return wanted
