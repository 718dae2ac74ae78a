"""Recovery of one partition: the log and Kafka are asked, `recovery.py` decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from duolog.bridge.kafka.mirror.pieces import unskipped, with_skips
from duolog.bridge.kafka.mirror.recovery import (
    Adopt,
    CutBack,
    GoOn,
    ReadTail,
    cut_back,
    first_step,
    placed,
    read_tail,
)
from duolog.bridge.kafka.mirror.shared import Shared
from duolog.bridge.kafka.mirror.storing import StoredRuns
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.bridge.kafka.wire.stored import StoredBatch, stored_batches
from duolog.errors import KafkaTopicRecreated, KafkaUnreachable, MirrorDiverged, MirrorOfCopy
from duolog.log.mirror_model import Mirror, MirrorTarget, Skip, SkipReason

_ROUNDS: Final = 4  # the end may be cut off and read anew; more means that it moves


class Recovery:
    """Finds out how far a partition is, and stores it."""

    def __init__(self, side: TopicSide, partition: int, shared: Shared, runs: StoredRuns) -> None:
        self._side = side
        self._partition = partition
        self._place = side.place(partition)
        self._shared = shared
        self._runs = runs

    async def run(self) -> int:
        """Afterwards the runs are all that Kafka has; how many records of others were met."""
        mirror = await self._runs.load() or await self._begin()
        self._check_target(mirror)
        foreign = 0
        for _ in range(_ROUNDS):
            seen = await self._shared.port.evidence(self._place, self._shared.producer.producer_id)
            match first_step(mirror, seen):
                case GoOn():
                    break
                case CutBack(end):
                    mirror = await self._cut(mirror, end)
                    continue
                case Adopt(count):
                    mirror = replace(mirror, runs=placed(mirror, mirror.next_kafka_offset, count))
                case ReadTail(offset, end):
                    batches = await self._tail(offset, end)
                    found = read_tail(mirror, self._shared.producer.producer_id, batches)
                    foreign += found.foreign
                    mirror = replace(mirror, runs=found.runs)
            break
        else:
            raise KafkaUnreachable(
                f"Kafka topic '{self._side.kafka_topic}' partition {self._partition} moves while "
                "it is looked at. It is asked again."
            )
        self._runs.now = await self._without_what_is_gone(mirror)
        await self._runs.store()
        return foreign

    async def _begin(self) -> Mirror:
        shared, topic = self._shared, self._side.topic
        offsets = await shared.in_thread(shared.log.offsets, topic.id)
        seen = await shared.port.evidence(self._place, shared.producer.producer_id)
        if seen.last_sequence is not None:
            raise MirrorDiverged(
                f"Kafka topic '{self._side.kafka_topic}' partition {self._partition} has records "
                "that this log has sent: of a topic that was dropped, or of a mirror that was "
                "forgotten. Delete the Kafka topic: it is made again, and what the log keeps of "
                f"'{topic.name}' is copied."
            )
        target = MirrorTarget(
            shared.producer.cluster_id,
            self._side.kafka_topic,
            self._side.topic_id,
            shared.producer.producer_id,
            shared.producer.producer_epoch,
            offsets[self._partition].start,
            seen.end,
        )
        return await self._runs.begin(target, 0)

    def _check_target(self, mirror: Mirror) -> None:
        target, producer = mirror.target, self._shared.producer
        where = f"topic '{self._side.topic.name}' partition {self._partition}"
        if (target.cluster_id, target.kafka_topic) != (
            producer.cluster_id,
            self._side.kafka_topic,
        ) or target.kafka_topic_id != self._side.topic_id:
            raise KafkaTopicRecreated(
                f"The mirror of {where} goes into Kafka topic '{target.kafka_topic}' (id "
                f"{target.kafka_topic_id}) of cluster {target.cluster_id}, not into "
                f"'{self._side.kafka_topic}' (id {self._side.topic_id}) of {producer.cluster_id}. "
                "Give the servers of that cluster, or run "
                f"`duolog mirror restart {self._side.topic.name}` to copy what the log keeps."
            )
        if target.producer_id != producer.producer_id:
            raise MirrorOfCopy(
                f"The mirror of {where} was begun by the log of which this one is a copy or a "
                "restored backup, and that log may still write into it. Stop the other one for "
                f"good, delete the Kafka topic, and run `duolog mirror restart "
                f"{self._side.topic.name}` to copy what this log keeps."
            )

    async def _cut(self, mirror: Mirror, end: int) -> Mirror:
        """Kafka has lost records: they are sent again, behind what is there."""
        self._shared.say(
            "mirror.cut_back",
            topic=mirror.topic,
            partition=self._partition,
            records=mirror.next_kafka_offset - end,
            kafka_offset=end,
        )
        if end < mirror.target.begin_kafka_offset:
            target = replace(mirror.target, begin_kafka_offset=end)
            return await self._runs.begin(target, mirror.version)
        mirror = replace(mirror, runs=cut_back(mirror, end))
        self._runs.now = mirror
        await self._runs.store()
        return await self._runs.load() or mirror

    async def _tail(self, offset: int, end: int) -> list[StoredBatch]:
        found: list[StoredBatch] = []
        while offset < end:
            fetched = await self._shared.port.fetch(self._place, offset)
            batches = list(stored_batches(fetched.batches))
            found += [batch for batch in batches if batch.next_offset > offset]
            if not batches or batches[-1].next_offset <= offset:
                raise KafkaUnreachable(
                    f"Kafka does not give what lies at offset {offset} of topic "
                    f"'{self._side.kafka_topic}' partition {self._partition}. It is asked again."
                )
            offset = batches[-1].next_offset
        return found

    async def _without_what_is_gone(self, mirror: Mirror) -> Mirror:
        """What retention took before it was sent is skipped, so that sequences have no gap."""
        offsets = await self._shared.in_thread(self._shared.log.offsets, self._side.topic.id)
        at, start = mirror.next_log_offset, offsets[self._partition].start
        if start <= at:
            return mirror
        gone = [
            Skip(first, stop - first, SkipReason.GONE)
            for first, stop in unskipped(at, start, mirror.skips)
        ]
        self._shared.say(
            "mirror.gone",
            topic=mirror.topic,
            partition=self._partition,
            offset=at,
            records=sum(skip.count for skip in gone),
        )
        return replace(mirror, skips=with_skips(mirror.skips, gone))
