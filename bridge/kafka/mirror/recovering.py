"""Recovery of one partition: the log and Kafka are asked, `recovery.py` decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from duolog.bridge.kafka.mirror.pieces import unskipped, with_skips
from duolog.bridge.kafka.mirror.recovery import (
    Adopt,
    CutBack,
    Evidence,
    GoOn,
    ReadTail,
    cut_back,
    deleted_meanwhile,
    first_step,
    placed,
    read_tail,
)
from duolog.bridge.kafka.mirror.shared import Shared
from duolog.bridge.kafka.mirror.storing import StoredRuns
from duolog.bridge.kafka.mirror.suspicion import LOOKED_AT, copied_before, look_for_copies
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.bridge.kafka.wire.stored import StoredBatch, stored_batches
from duolog.errors import KafkaTopicRecreated, KafkaUnreachable, MirrorDiverged, MirrorOfCopy
from duolog.log.mirror_model import (
    ALL_THAT_IS_THERE,
    Mirror,
    MirrorTarget,
    Skip,
    SkipReason,
    with_offset_header,
)

_ROUNDS: Final = 4  # the end may be cut off and read anew; more means that it moves


@dataclass(frozen=True, slots=True)
class Met:
    """Records of others behind the last one of ours: how many, and where the first is."""

    foreign: int = 0
    first: int | None = None

    def and_more(self, foreign: int, first: int | None) -> Met:
        return Met(self.foreign + foreign, first if self.first is None else self.first)


@dataclass(frozen=True, slots=True)
class Recovered:
    """`is_known`: the leader remembers our last sequence, and takes nothing but the next one."""

    met: Met
    is_known: bool


class Recovery:
    """Finds out how far a partition is, and stores it."""

    def __init__(self, side: TopicSide, partition: int, shared: Shared, runs: StoredRuns) -> None:
        self._side = side
        self._partition = partition
        self._place = side.place(partition)
        self._shared = shared
        self._runs = runs

    async def run(self) -> Recovered:
        """Afterwards the runs are all that Kafka has."""
        mirror = await self._runs.load() or await self._begin()
        self._check_target(mirror)
        met = Met()
        for _ in range(_ROUNDS):
            seen = await self._shared.port.evidence(self._place, self._shared.producer.producer_id)
            match first_step(mirror, seen):
                case GoOn():
                    if seen.end > mirror.next_kafka_offset:  # others have written since
                        met = met.and_more(0, mirror.next_kafka_offset)  # counted when it goes on
                    break
                case CutBack(end):
                    mirror = await self._cut(mirror, end)
                    continue
                case Adopt(count):
                    mirror = replace(mirror, runs=placed(mirror, mirror.next_kafka_offset, count))
                case ReadTail(offset, end):
                    batches = await self._tail(offset, end)
                    ours = self._shared.producer.producer_id
                    runs = deleted_meanwhile(mirror, ours, seen, batches)
                    found = read_tail(replace(mirror, runs=runs), ours, batches)
                    met = met.and_more(found.foreign, found.first_foreign)
                    mirror = replace(mirror, runs=found.runs)
            break
        else:
            raise KafkaUnreachable(
                f"Kafka topic '{self._side.kafka_topic}' partition {self._partition} moves while "
                "it is looked at. It is asked again."
            )
        if mirror.settled_upto == ALL_THAT_IS_THERE:
            mirror = replace(mirror, settled_upto=seen.end)
        mirror = await self._without_what_is_gone(mirror)
        headers = with_offset_header(
            mirror.offset_headers, mirror.next_log_offset, self._shared.options.offset_header
        )
        self._runs.now = replace(mirror, offset_headers=headers)
        await self._runs.store()
        return Recovered(met, seen.last_sequence is not None)

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
        for sister in await shared.in_thread(shared.log.mirrors, topic.id):
            if sister.target.kafka_topic_id == self._side.topic_id:
                self._check_target(sister)  # a copy's partitions may be new where others are not
        target = MirrorTarget(
            shared.producer.cluster_id,
            self._side.kafka_topic,
            self._side.topic_id,
            shared.producer.producer_id,
            shared.producer.producer_epoch,
            offsets[self._partition].start,
            seen.end,
        )
        await self._check_no_copies(target, seen)
        return await self._runs.begin(target, 0)

    async def _check_no_copies(self, target: MirrorTarget, seen: Evidence) -> None:
        """What is there already is not to be what would be copied."""
        if seen.end <= seen.start:
            return
        topic, at = self._side.topic, max(seen.start, seen.end - LOOKED_AT)
        none_yet = Mirror(topic.name, self._partition, 0, target)
        found = await look_for_copies(self._shared, self._side, none_yet, at, own=None)
        if found is not None:
            raise copied_before(topic.name, self._side.kafka_topic, self._partition, found)

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
        if end < mirror.begin_kafka_offset:
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
