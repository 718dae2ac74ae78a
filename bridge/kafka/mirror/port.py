"""How the mirror talks to brokers: its own requests over the connections of aiokafka.

What is sent is `wire/requests.py`, over `connections.py`. Whatever goes wrong on the way is
KafkaUnreachable, and tried again by those who ask.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final, TypeVar
from uuid import UUID

from duolog.bridge.kafka.mirror.connections import Connections
from duolog.bridge.kafka.mirror.recovery import Evidence
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.record_batch import KafkaBatch
from duolog.bridge.kafka.wire.requests import (
    EARLIEST,
    LATEST,
    ClusterMetadata,
    DescribeProducers,
    Fetch,
    Fetched,
    InitProducerId,
    ListOffsets,
    Place,
    Produce,
    Produced,
)
from duolog.errors import KafkaRefused, KafkaUnreachable
from duolog.log.mirror_model import MirrorProducer

A = TypeVar("A")

_FETCH_BYTES: Final = 4 << 20
_ASK_AGAIN_SECONDS: Final = 0.1
_NO_LEADER: Final = -1


class KafkaPort:
    """Requests to one cluster, for one event loop."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._connections = Connections(settings)
        self._leaders: dict[tuple[UUID, int], int] = {}
        self._asked_over: dict[tuple[UUID, int], object] = {}  # connections

    async def close(self) -> None:
        await self._connections.close()

    async def look(self, topics: tuple[str, ...]) -> ClusterMetadata:
        """The cluster, and those of these topics that it has. Remembers who leads."""
        seen = await self._connections.look(topics)
        for topic in seen.topics.values():
            for partition, leader in topic.leaders.items():
                self._leaders[topic.topic_id, partition] = leader
        return seen

    async def new_producer(self, cluster_id: str) -> MirrorProducer:
        """A producer id that nobody has. The coordinator may still be loading: ask again."""
        deadline = asyncio.get_running_loop().time() + self._settings.request_timeout_seconds
        while True:
            given = await self._connections.send_to_any(InitProducerId())
            if not given.error:
                return MirrorProducer(cluster_id, given.producer_id, given.producer_epoch)
            if asyncio.get_running_loop().time() > deadline:
                raise KafkaRefused(
                    f"The Kafka cluster gives no producer id (error {given.error}). The mirror's "
                    "user needs the right to write (IdempotentWrite on older clusters).",
                    error=given.error,
                )
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    async def produce(self, place: Place, batch: KafkaBatch) -> Produced:
        """Send one batch. Batches of a place arrive in the order of the calls.

        Raises Reconnected when there was no evidence over this very connection: a broker that has
        lost all of a partition since takes any sequence for the first.
        """
        timeout_ms = int(self._settings.request_timeout_seconds * 1000)
        request, leader = Produce(place, batch, timeout_ms), self._leader(place)
        over = self._asked_over.get((place.topic_id, place.partition))
        return await self._connections.send_in_turn(leader, request, over)

    async def evidence(self, place: Place, producer_id: int) -> Evidence:
        """What the leader says of a partition, and of our producer in it."""
        leader = self._leader(place)
        over = await self._connections.to(leader)
        described = await self._connections.send(leader, DescribeProducers(place))
        _check(described.error, f"who has written to {_named(place)}")
        found = [p.last_sequence for p in described.producers if p.producer_id == producer_id]
        evidence = Evidence(
            await self._offset(leader, place, EARLIEST),
            await self._offset(leader, place, LATEST),
            found[0] if found and found[0] >= 0 else None,
        )
        self._asked_over[place.topic_id, place.partition] = over
        return evidence

    async def start(self, place: Place) -> int:
        """The first offset that Kafka has of a partition."""
        return await self._offset(self._leader(place), place, EARLIEST)

    async def _offset(self, leader: int, place: Place, at: int) -> int:
        listed = await self._connections.send(leader, ListOffsets(place, at))
        _check(listed.error, f"the offsets of {_named(place)}")
        return listed.offset

    async def fetch(self, place: Place, offset: int) -> Fetched:
        """Stored batches from the one that holds the offset on."""
        request = Fetch(place, offset, _FETCH_BYTES)
        fetched = await self._connections.send(self._leader(place), request)
        _check(fetched.error, f"what is stored in {_named(place)}")
        return fetched

    def _leader(self, place: Place) -> int:
        leader = self._leaders.get((place.topic_id, place.partition), _NO_LEADER)
        if leader == _NO_LEADER:
            raise KafkaUnreachable(f"{_named(place)} has no leader now. Look at its brokers.")
        return leader


def topic_id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka's own tools write it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def _named(place: Place) -> str:
    return f"Kafka topic '{place.topic}' partition {place.partition}"


def _check(error: int, what: str) -> None:
    if error:
        raise KafkaRefused(f"Kafka does not say {what} (error {error}).", error=error)
