"""What a mirror in Kafka asks the log to remember. All synced, by compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

from duolog.errors import InvalidRequest, MirrorChanged, MirrorDetached, NotFound
from duolog.log.catalogue import partition_of, partitions_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import producer_key
from duolog.log.mirror_model import (
    ALL_THAT_IS_THERE,
    Mirror,
    MirrorChange,
    MirrorProducer,
    MirrorTarget,
)
from duolog.log.mirror_modes import MirrorMode, MirrorModes, MirrorReport
from duolog.log.mirrors import VERSION, StoredMirror
from duolog.log.model import Topic, TopicPartition
from duolog.log.names import check_text_name
from duolog.log.rounds import Round
from duolog.log.state import State

REPORTS_HOLD_SECONDS = 15.0
"""What a worker has said holds for so long after it said anything at all."""

Decide = Callable[[StoredMirror | None], StoredMirror | None]


class Mirrors:
    """The mirrors of an opened log."""

    def __init__(self, state: State, committer: Committer, log_id: str) -> None:
        self._state = state
        self._committer = committer
        self._log_id = log_id
        self._reports: dict[TopicPartition, MirrorReport] = {}
        self._heard_at_ms: int | None = None

    def of(self, topic: Topic, partition: int) -> Mirror | None:
        """A partition's mirror; None when it has none."""
        stored = self._state.mirrors.get(partition_of(topic, partition))
        return None if stored is None else replace(stored, topic=topic.name)

    def all(self, topic: Topic | None) -> tuple[Mirror, ...]:
        """All mirrors, of one topic if given."""
        topics = self._state.catalogue.by_id
        return tuple(
            replace(stored, topic=topics[where.topic_id].name)
            for where, stored in sorted(self._state.mirrors.copy().items())
            if where.topic_id in topics and (topic is None or where.topic_id == topic.id)
        )

    def begin(self, topic: Topic, partition: int, target: MirrorTarget, version: int) -> Mirror:
        """Begin a mirror, in place of the one with this version."""
        if target.begin_log_offset < 0 or target.begin_kafka_offset < 0:
            raise InvalidRequest(f"A mirror begins at offsets from 0; got {target}.")
        where = partition_of(topic, partition)

        def decide(current: StoredMirror | None) -> StoredMirror:
            if self._state.mirror_modes.of(topic.id) is MirrorMode.DETACHED:
                raise MirrorDetached(
                    f"The mirror of topic '{topic.name}' was detached. Run `duolog mirror resume "
                    f"{topic.name}` to begin it again."
                )
            _check_version(topic, where, current, version)
            return Mirror("", partition, version + 1, target)

        made = self._change(topic, where, decide)
        assert made is not None  # noqa: S101 - decide made it
        return replace(made, topic=topic.name)

    def change(self, topic: Topic, partition: int, change: MirrorChange) -> int:
        """Change runs and skips; the new version."""
        where = partition_of(topic, partition)

        def decide(current: StoredMirror | None) -> StoredMirror:
            _check_version(topic, where, current, change.version)
            if current is None:
                raise NotFound(f"Topic '{topic.name}' partition {partition} has no mirror.")
            changed = current.changed(change)
            return current if replace(changed, version=current.version) == current else changed

        changed = self._change(topic, where, decide)
        return 0 if changed is None else changed.version

    def forget(self, topic: Topic, partition: int) -> bool:
        """Forget a partition's mirror; what Kafka has, stays there."""
        where = partition_of(topic, partition)
        if where not in self._state.mirrors:
            return False
        self._change(topic, where, lambda _: None)
        return True

    def modes(self) -> MirrorModes:
        """What is wanted of each topic's mirror."""
        modes, topics = self._state.mirror_modes, self._state.catalogue.by_id
        return MirrorModes(
            modes.usual, {topics[i].name: mode for i, mode in modes.of_topic.items() if i in topics}
        )

    def set_mode(self, topic: Topic | None, mode: MirrorMode) -> tuple[str, ...]:
        """Pause, resume or detach the mirror of a topic, or of all; those that it changed."""
        job = _SetMode(None if topic is None else topic.id, mode)
        self._committer.run(job)
        return job.changed

    def tell(self, reports: tuple[MirrorReport, ...], *, anew: bool) -> None:
        """A worker says how its partitions are; anew: what was said before does not hold."""
        topics = self._state.catalogue.by_name
        told = {
            TopicPartition(topics[each.topic].id, each.partition): each
            for each in reports
            if each.topic in topics
        }
        self._reports = told if anew else {**self._reports, **told}
        self._heard_at_ms = self._state.options.clock.now_ms()

    def told(self, topic: Topic | None) -> tuple[MirrorReport, ...]:
        """What a worker has said; nothing when it has been silent for too long."""
        heard_at_ms, now_ms = self._heard_at_ms, self._state.options.clock.now_ms()
        if heard_at_ms is None or now_ms - heard_at_ms > REPORTS_HOLD_SECONDS * 1000:
            return ()
        topics = self._state.catalogue.by_id
        return tuple(
            replace(report, topic=topics[where.topic_id].name)
            for where, report in sorted(self._reports.items())
            if where.topic_id in topics and (topic is None or where.topic_id == topic.id)
        )

    def _change(self, topic: Topic, where: TopicPartition, decide: Decide) -> StoredMirror | None:
        job = _ChangeMirror(topic, where, decide)
        self._committer.run(job)
        return job.result

    def producer(self, cluster_id: str) -> MirrorProducer | None:
        """This log's producer id in a cluster. One that a copy has brought along is not its own."""
        key = producer_key(check_text_name(cluster_id, "Kafka cluster"))
        stored = self._state.store.get("mirror", key)
        if stored is None:
            return None
        fields = json.loads(stored)
        return MirrorProducer(**fields["producer"]) if fields["log_id"] == self._log_id else None

    def keep_producer(self, producer: MirrorProducer) -> MirrorProducer:
        """Keep a producer id, unless there is one; the one that is kept."""
        self._committer.run(_KeepProducer(self, self._log_id, producer))
        return self.producer(producer.cluster_id) or producer


def _check_version(
    topic: Topic, where: TopicPartition, current: StoredMirror | None, expected: int
) -> None:
    found = 0 if current is None else current.version
    if found != expected:
        raise MirrorChanged(
            f"The mirror of topic '{topic.name}' partition {where.partition} has version {found}, "
            f"not {expected}: another worker changed it. Read it again and decide anew."
        )


class _ChangeMirror(Job):
    def __init__(self, topic: Topic, where: TopicPartition, decide: Decide) -> None:
        super().__init__()
        self._topic = topic
        self._where = where
        self._decide = decide
        self.result: StoredMirror | None = None

    def prepare(self, round_: Round) -> None:
        round_.catalogue.topic(self._topic.id)  # raises when it was dropped meanwhile
        self.result = self._decide(round_.mirror(self._where))
        round_.set_mirror(self._where, self.result)


class _SetMode(Job):
    alone = True  # so that no mirror begins in the round in which it is detached

    def __init__(self, topic_id: int | None, mode: MirrorMode) -> None:
        super().__init__()
        self._topic_id = topic_id
        self._mode = mode
        self.changed: tuple[str, ...] = ()

    def prepare(self, round_: Round) -> None:
        catalogue, before = round_.catalogue, round_.mirror_modes
        if self._topic_id is None:
            after = before.with_all(self._mode, catalogue.by_id)
            meant = tuple(t for t in catalogue.by_id.values() if after.of(t.id) is self._mode)
        else:
            meant = (catalogue.topic(self._topic_id),)
            after = before.with_topic(self._topic_id, self._mode)
        round_.set_mirror_modes(after)
        changed = {topic.name for topic in meant if before.of(topic.id) is not self._mode}
        for topic in meant:
            if self._mode is MirrorMode.DETACHED:
                _detach(round_, topic)
            elif self._mode is MirrorMode.ON and _settle_copies(round_, topic):
                changed.add(topic.name)
        self.changed = tuple(sorted(changed))


def _detach(round_: Round, topic: Topic) -> None:
    """Forget a topic's mirror, and what groups were last seen at in Kafka."""
    for where in partitions_of(topic):
        round_.set_mirror(where, None)
    for key in round_.positions_where(lambda _, where: where.topic_id == topic.id):
        position = round_.position(key)
        if position is not None and position.kafka is not None:
            round_.set_position(key, replace(position, kafka=None))


def _settle_copies(round_: Round, topic: Topic) -> bool:
    """Copies that a mirror was halted by are left where they are."""
    settled = False
    for where in partitions_of(topic):
        mirror = round_.mirror(where)
        if mirror is not None and mirror.copied_at is not None:
            after = replace(mirror, copied_at=None, settled_upto=ALL_THAT_IS_THERE)
            round_.set_mirror(where, replace(after, version=mirror.version + 1))
            settled = True
    return settled


class _KeepProducer(Job):
    alone = True  # so that what is stored is all that there is

    def __init__(self, mirrors: Mirrors, log_id: str, producer: MirrorProducer) -> None:
        super().__init__()
        self._mirrors = mirrors
        self._log_id = log_id
        self._producer = producer

    def prepare(self, round_: Round) -> None:
        if self._mirrors.producer(self._producer.cluster_id) is None:
            fields = {"v": VERSION, "log_id": self._log_id, "producer": asdict(self._producer)}
            key = producer_key(self._producer.cluster_id)
            round_.batch.put("mirror", key, json.dumps(fields).encode())
