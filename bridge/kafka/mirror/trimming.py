"""Kafka keeps what the log keeps; and what neither keeps is forgotten."""

from __future__ import annotations

from typing import Final

from duolog.bridge.kafka.mirror.shared import Say, Shared, shown
from duolog.bridge.kafka.mirror.storing import StoredRuns
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.errors import DuologError
from duolog.log.mirror_model import Mirror
from duolog.log.model import TopicPartition

_NEVER: Final = -1


class Trimming:
    """Follows the log's start in one partition."""

    def __init__(self, shared: Shared, side: TopicSide, runs: StoredRuns, where: TopicPartition):
        self._shared = shared
        self._side = side
        self._runs = runs
        self._where = where
        self._trimmed = 0  # the log's start up to which Kafka has deleted
        self._not_trimmed = _NEVER
        self._pruned = 0  # the log's start at which runs were looked through

    async def follow(self, say: Say) -> None:
        """Delete in Kafka what the log has let go, and forget runs that nobody needs."""
        mirror = self._runs.now
        start = self._shared.heads.start(self._where)
        if mirror is None or not mirror.runs or start <= min(self._trimmed, self._pruned):
            return
        try:
            if start > self._trimmed:
                await self._delete(mirror, start)
        except DuologError as error:  # tried again as long as it is not done
            if self._not_trimmed != start:
                say("mirror.not_deleted", kafka_offset=_kafka_start(mirror, start), **shown(error))
            self._not_trimmed = start
        if start > self._pruned and mirror.prunable(start, mirror.next_kafka_offset) != (0, 0):
            place = self._side.place(self._where.partition)
            runs, skips = await self._runs.prune(start, await self._shared.port.start(place))
            if runs or skips:
                say("mirror.pruned", runs=runs, skips=skips)
        if self._trimmed == start:
            self._pruned = start

    async def _delete(self, mirror: Mirror, start: int) -> None:
        delete, topic = self._shared.topics.delete_before, self._side.kafka_topic
        upto = _kafka_start(mirror, start)
        await self._shared.in_asking_thread(delete, topic, self._where.partition, upto)
        self._trimmed = start


def _kafka_start(mirror: Mirror, start: int) -> int:
    """Where in Kafka the first record lies that the log keeps; the end when it keeps none."""
    for run in mirror.runs:
        if run.next_log_offset > start:
            return run.first_kafka_offset + max(0, start - run.first_log_offset)
    return mirror.next_kafka_offset
