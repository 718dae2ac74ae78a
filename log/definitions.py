"""Topics and routes are made, changed, cleared and dropped here, each in a round of its own."""

from __future__ import annotations

from collections.abc import Callable

from duolog.errors import DuologError, InvalidSetting
from duolog.log.catalogue import Catalogue, partitions_of
from duolog.log.commits import Job
from duolog.log.heads import Heads
from duolog.log.keys import LAST_OFFSET, partition_key, topic_key
from duolog.log.model import Head, Swept, Topic, TopicPartition
from duolog.log.positions import first
from duolog.log.removals import all_below
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.topic_json import topic_from_bytes, topic_to_bytes

Change = Callable[[Catalogue, int], tuple[Catalogue, Topic]]


class ChangeCatalogue(Job):
    """A change that leaves all records as they are."""

    alone = True

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change
        self.topic: Topic

    def prepare(self, round_: Round) -> None:
        changed, self.topic = self._change(round_.catalogue, round_.now_ms)
        if changed is not round_.catalogue:
            _check_loads(self.topic)
            round_.set_catalogue(changed, self.topic)


def _check_loads(topic: Topic) -> None:
    """Refuse a topic that could be stored and not be loaded: the log would not open again."""
    try:
        topic_from_bytes(topic_to_bytes(topic))
    except (AttributeError, KeyError, TypeError, ValueError, DuologError) as error:
        raise InvalidSetting(
            f"Topic '{topic.name}' cannot be stored as it would be: {error}"
        ) from None


class GrowTopic(ChangeCatalogue):
    """More partitions. Groups that are known here begin with their first records: what is written
    there before a group looks again was written after it began.
    """

    def prepare(self, round_: Round) -> None:
        super().prepare(round_)
        topic_id = self.topic.id
        known = round_.positions_where(lambda _, where: where.topic_id == topic_id)
        before = round_.state.catalogue.topic(topic_id).partitions
        for group in {group for group, _ in known}:
            for where in partitions_of(self.topic)[before:]:
                begin = first(round_.head(where).start, round_.now_ms)
                round_.set_position((group, where), begin)


class ClearTopic(Job):
    """Remove a topic's records. Offsets go on where they were, positions stay."""

    alone = True

    def __init__(self, reference: str | int) -> None:
        super().__init__()
        self._reference = reference
        self.swept = Swept()
        self.topic: Topic

    def gates(self, state: State) -> frozenset[TopicPartition]:
        return frozenset(partitions_of(state.catalogue.topic(self._reference)))

    def prepare(self, round_: Round) -> None:
        self.topic = round_.catalogue.topic(self._reference)
        self.swept = held_by(self.topic, round_.state.heads)
        for where in partitions_of(self.topic):
            head = round_.head(where)
            # The highest time goes with the index of times: a wrong one is not carried on.
            after = Head(head.next_offset, head.next_offset, 0, last_ts_ms=0)
            if after == head:  # it has nothing
                continue
            round_.set_head(where, after)
            round_.remove_records(all_below(where, head.next_offset))
        cleared = partitions_of(self.topic)
        round_.afterwards(lambda: round_.state.latest_changes.forget(cleared))


class DropTopic(ClearTopic):
    """Remove a topic with its records, times and positions."""

    def prepare(self, round_: Round) -> None:
        self.topic = topic = round_.catalogue.topic(self._reference)
        gone = partitions_of(topic)
        self.swept = held_by(topic, round_.state.heads)
        for where in gone:
            round_.remove_records(all_below(where, LAST_OFFSET))
            round_.batch.delete("heads", partition_key(where))
            round_.set_mirror(where, None)
        round_.set_mirror_modes(round_.mirror_modes.without(topic.id))
        round_.batch.delete("topics", topic_key(topic.id))
        for key in round_.positions_where(lambda _, where: where.topic_id == topic.id):
            round_.set_position(key, None)
        round_.set_catalogue(round_.catalogue.without_topic(topic), None)
        round_.afterwards(lambda: round_.state.heads.forget(gone))
        round_.afterwards(lambda: round_.state.latest_changes.forget(gone))
        round_.afterwards(lambda: round_.state.oldest_batches.forget(gone))
        round_.afterwards(lambda: round_.state.merges.forget(gone))


def held_by(topic: Topic, heads: Heads) -> Swept:
    """What the topic holds now."""
    kept = [heads.get(where) for where in partitions_of(topic)]
    return Swept(sum(head.records for head in kept), sum(head.bytes for head in kept))
