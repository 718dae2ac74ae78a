"""A whole log's mirror in one Kafka cluster: all its topics, those that come, those that go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from duolog.bridge.kafka.mirror.budget import Budget
from duolog.bridge.kafka.mirror.heads import Heads
from duolog.bridge.kafka.mirror.partition import PartitionMirror, Phase
from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.mirror.refused import SUFFIX
from duolog.bridge.kafka.mirror.shared import MirrorOptions, Say, Shared, shown
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.bridge.kafka.mirror.topics import KafkaTopics
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.clock import Clock, SystemClock
from duolog.errors import DuologError, KafkaRefused, KafkaUnreachable
from duolog.log.access import LogAccess
from duolog.log.mirror_model import Mirror
from duolog.log.mirror_modes import MirrorMode, MirrorReport
from duolog.log.model import Topic, TopicPartition

_THREADS: Final = 6  # two encode at a time on two cores; the others wait for the log
_ASKING_THREADS: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.2
_REPORTS_AT_ONCE: Final = 1000
_LONGEST_TROUBLE: Final = 1000  # characters
_TELL_AGAIN_SECONDS: Final = 5.0  # also when nothing has changed: silence means that it stands


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """How one partition's mirror is doing. `behind`: records that are not in Kafka yet."""

    topic: str
    partition: int
    kafka_topic: str
    phase: Phase
    behind: int
    next_log_offset: int
    next_kafka_offset: int
    skipped: int
    foreign: int
    trouble_code: str | None = None
    trouble: str | None = None


class KafkaMirror:
    """Mirrors a log while `run` is not cancelled. One at a time for a log and a cluster."""

    def __init__(
        self,
        log: LogAccess,
        settings: KafkaSettings,
        *,
        options: MirrorOptions | None = None,
        say: Say = lambda *_, **__: None,
        clock: Clock | None = None,
    ) -> None:
        self._log = log
        self._settings = settings
        self._options = options or MirrorOptions()
        self._say = say
        self._clock = clock or SystemClock()
        self._partitions: dict[TopicPartition, PartitionMirror] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._heads: Heads | None = None
        self._told: dict[TopicPartition, MirrorReport] = {}
        self._told_at: float | None = None
        self._has_looked = False  # what there is to mirror is known
        self.cluster_id = ""
        self.trouble: DuologError | None = None  # why it does not find the cluster

    async def run(self) -> None:
        """Find the cluster, and mirror. What fails on the way is tried again."""
        threads = ThreadPoolExecutor(_THREADS, "duolog-mirror")
        asking = ThreadPoolExecutor(_ASKING_THREADS, "duolog-mirror-asking")
        port = KafkaPort(self._settings)
        self._heads = Heads(self._log)
        watching: asyncio.Task[None] | None = None
        try:
            shared = await self._begin(port, self._heads, threads, asking)
            watching = asyncio.create_task(self._heads.run())
            while True:
                await self._look(shared)
                await self._tell(shared)
                await asyncio.sleep(self._options.look_every_seconds)
        finally:
            if watching is not None:
                watching.cancel()
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await port.close()
            self._heads.close()
            threads.shutdown(cancel_futures=True)
            asking.shutdown(wait=False, cancel_futures=True)  # Kafka may be away for long

    def mirrors(self) -> Iterator[Mirror]:
        """How far each partition is, as of now: what the log has stored may be a moment behind.

        Left out are those whose Kafka topic is another one, or gone. From any thread.
        """
        for partition in list(self._partitions.values()):
            if partition.settled and partition.mirror is not None:
                yield replace(partition.mirror, topic=partition.side.topic.name)

    def is_being_found_out(self, topic: str) -> bool:
        """Whether it is not known yet, or for now, how far some of a topic's partitions are."""
        partitions = [p for p in self._partitions.values() if p.side.topic.name == topic]
        return not self._has_looked or any(
            not each.settled and each.phase is Phase.RECOVERING for each in partitions
        )

    def status(self) -> list[PartitionStatus]:
        """All partitions, in order."""
        return [
            self._status(where, partition) for where, partition in sorted(self._partitions.items())
        ]

    def _status(self, where: TopicPartition, partition: PartitionMirror) -> PartitionStatus:
        mirror, trouble = partition.mirror, partition.trouble
        at = 0 if mirror is None else mirror.next_log_offset
        head = 0 if self._heads is None else self._heads.next_offset(where)
        return PartitionStatus(
            partition.side.topic.name,
            where.partition,
            partition.side.kafka_topic,
            partition.phase,
            max(0, head - at),
            at,
            0 if mirror is None else mirror.next_kafka_offset,
            0 if mirror is None else mirror.skipped,
            partition.foreign,
            None if trouble is None else type(trouble).__name__,
            None if trouble is None else str(trouble),
        )

    async def _begin(
        self, port: KafkaPort, heads: Heads, threads: ThreadPoolExecutor, asking: ThreadPoolExecutor
    ) -> Shared:
        """Find the cluster, and the log's producer id in it."""
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                self.cluster_id = (await port.look(())).cluster_id
                known = partial(self._log.mirror_producer, self.cluster_id)
                producer = await loop.run_in_executor(threads, known)
                if producer is None:
                    made = await port.new_producer(self.cluster_id)
                    keep = partial(self._log.keep_mirror_producer, made)
                    producer = await loop.run_in_executor(threads, keep)
            except (KafkaUnreachable, KafkaRefused) as error:
                await port.close()
                self._say("mirror.waits", **shown(error))
                self.trouble = error
                await asyncio.sleep(pause)
                pause = min(2 * pause, self._options.longest_pause_seconds)
            else:
                break
        self.trouble = None
        topics = await loop.run_in_executor(asking, KafkaTopics, self._settings)
        self._say("mirror.begins", cluster=self.cluster_id, producer=producer.producer_id)
        return Shared(
            self._log,
            port,
            topics,
            self._settings,
            self._options,
            producer,
            heads,
            Budget(self._options.bytes_in_flight),
            threads,
            asking,
            self._say,
            self._clock,
        )

    async def _look(self, shared: Shared) -> None:
        """Begin with new topics and partitions, leave those that are gone or detached."""
        try:
            topics = await shared.in_thread(self._log.topics)
            modes = await shared.in_thread(self._log.mirror_modes)
        except DuologError as error:
            self._say("mirror.waits", **shown(error))
            return
        wanted = {
            topic.id: topic
            for topic in topics
            if not topic.name.endswith(SUFFIX) and modes.of(topic.name) is not MirrorMode.DETACHED
        }
        for where, task in list(self._tasks.items()):
            topic = wanted.get(where.topic_id)
            if topic is None or task.done() or self._has_changed(where, topic):
                await self._leave(shared, where, task)
        for topic in wanted.values():
            missing = [
                where
                for number in range(topic.partitions)
                if (where := TopicPartition(topic.id, number)) not in self._tasks
            ]
            side = TopicSide(topic, shared) if missing else None
            for where in missing:
                assert side is not None  # noqa: S101 - there are some
                shared.heads.watch(where)
                partition = PartitionMirror(side, where.partition, shared)
                partition.pause(modes.of(topic.name) is MirrorMode.PAUSED)
                self._partitions[where] = partition
                self._tasks[where] = asyncio.create_task(partition.run())

        for where, partition in self._partitions.items():
            mode = modes.of(wanted[where.topic_id].name)
            partition.pause(mode is MirrorMode.PAUSED)
        self._has_looked = True

    async def _tell(self, shared: Shared) -> None:
        """The log is told how partitions are, for those who ask it: what has changed, mostly."""
        now = asyncio.get_running_loop().time()
        reports = {w: _report(self._status(w, p)) for w, p in self._partitions.items()}
        anew = self._told_at is None or bool(self._told.keys() - reports.keys())
        changed = {w: each for w, each in reports.items() if anew or self._told.get(w) != each}
        if not changed and not anew and now - (self._told_at or 0.0) < _TELL_AGAIN_SECONDS:
            return
        told = list(changed.values())
        try:
            for first in range(0, max(1, len(told)), _REPORTS_AT_ONCE):
                some = tuple(told[first : first + _REPORTS_AT_ONCE])
                is_anew = anew and first == 0
                await shared.in_thread(partial(self._log.tell_mirror, some, anew=is_anew))
        except DuologError:  # the next time tells all of it
            self._told_at = None
        else:
            self._told, self._told_at = reports, now

    def _has_changed(self, where: TopicPartition, topic: Topic) -> bool:
        """Whether the topic is another one now for Kafka; more partitions change all of them."""
        before = self._partitions[where].side.topic
        return before.settings.partitions != topic.settings.partitions or (
            before.settings.kafka_topic != topic.settings.kafka_topic
        )

    async def _leave(self, shared: Shared, where: TopicPartition, task: asyncio.Task[None]) -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            try:
                await task
            except Exception as error:  # noqa: BLE001 - the next look begins anew
                self._say("mirror.failed", partition=where.partition, **shown(error))
        del self._tasks[where], self._partitions[where]
        shared.heads.forget(where)


def _report(status: PartitionStatus) -> MirrorReport:
    said = None if status.trouble is None else status.trouble[:_LONGEST_TROUBLE]
    phase = status.phase.value
    return MirrorReport(status.topic, status.partition, phase, status.trouble_code, said)
