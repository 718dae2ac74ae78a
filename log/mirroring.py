"""What a mirror in Kafka asks the log to remember. All synced, by compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

from duolog.errors import InvalidRequest, MirrorChanged, NotFound
from duolog.log.catalogue import partition_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import producer_key
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorProducer, MirrorTarget
from duolog.log.mirrors import VERSION, StoredMirror
from duolog.log.model import Topic, TopicPartition
from duolog.log.rounds import Round
from duolog.log.state import State

Decide = Callable[[StoredMirror | None], StoredMirror | None]


class Mirrors:
    """The mirrors of an opened log."""

    def __init__(self, state: State, committer: Committer, log_id: str) -> None:
        self._state = state
        self._committer = committer
        self._log_id = log_id

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
            return current.changed(change)

        changed = self._change(topic, where, decide)
        return 0 if changed is None else changed.version

    def forget(self, topic: Topic, partition: int) -> bool:
        """Forget a partition's mirror; what Kafka has, stays there."""
        where = partition_of(topic, partition)
        if where not in self._state.mirrors:
            return False
        self._change(topic, where, lambda _: None)
        return True

    def _change(self, topic: Topic, where: TopicPartition, decide: Decide) -> StoredMirror | None:
        job = _ChangeMirror(topic, where, decide)
        self._committer.run(job)
        return job.result

    def producer(self, cluster_id: str) -> MirrorProducer | None:
        """This log's producer id in a cluster. One that a copy has brought along is not its own."""
        stored = self._state.store.get("mirror", producer_key(cluster_id))
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
