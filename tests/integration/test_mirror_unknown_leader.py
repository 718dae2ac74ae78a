"""A leader that does not know the mirror's producer takes any batch for the first one.

It has lost the partition, or has forgotten who wrote into it. So a batch must not come there when
the one before it did not, and nothing is sent before such a leader was asked what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import duolog
from duolog.bridge.kafka.mirror import partition
from duolog.bridge.kafka.mirror.connections import Reconnected
from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.record_batch import KafkaBatch, encode_batch
from duolog.bridge.kafka.wire.requests import Place, Produced
from duolog.errors import KafkaUnreachable
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Record
from tests.support.kafka import Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log

_LOST_AFTER_SECONDS = 0.2  # long enough for those behind it to be sent, were they allowed to


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def lost_batches(monkeypatch: pytest.MonkeyPatch) -> list[KafkaBatch]:
    """The first batch that is sent does not arrive, and what is behind it is not held up."""
    lost: list[KafkaBatch] = []
    produce = KafkaPort.produce

    async def produce_all_but_the_first(port: KafkaPort, place: Place, batch: KafkaBatch) -> Any:
        if not lost:
            lost.append(batch)
            await asyncio.sleep(_LOST_AFTER_SECONDS)
            raise KafkaUnreachable("It was lost on its way.")
        return await produce(port, place, batch)

    monkeypatch.setattr(KafkaPort, "produce", produce_all_but_the_first)
    return lost


@pytest.mark.parametrize("sends_ahead", [False, True])
def test_nothing_overtakes_a_batch_that_is_lost(
    log: EmbeddedLog,
    kafka: Kafka,
    lost_batches: list[KafkaBatch],
    monkeypatch: pytest.MonkeyPatch,
    sends_ahead: bool,
) -> None:
    if sends_ahead:  # the mutant: each leader is thought to know us, for ever
        monkeypatch.setattr(partition, "_NEVER", float("inf"))
    topic = f"orders-{uuid4().hex[:12]}"
    log.create_topic(topic)
    for first in range(0, 6000, 1000):
        log.publish(topic, [Record(b"%1000d" % (first + n)) for n in range(1000)])
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        if sends_ahead:
            mirror.wait(lambda: mirror.said("mirror.halted"), "it stands still")
            (code,) = {said["code"] for said in mirror.said("mirror.halted")}
            assert code == "MirrorDiverged"
            return
        mirror.caught_up(topic)
        assert not mirror.said("mirror.halted")
    assert len(lost_batches) == 1
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)


def test_nothing_is_sent_over_a_connection_over_which_nothing_was_asked(kafka: Kafka) -> None:
    asyncio.run(_connection_is_made_anew(kafka))


async def _connection_is_made_anew(kafka: Kafka) -> None:
    port = KafkaPort(KafkaSettings.of(kafka.bootstrap_servers))
    topic = kafka.new_topic()
    try:
        seen = await port.look((topic,))
        place = Place(topic, seen.topics[topic].topic_id, 0)
        producer = await port.new_producer(seen.cluster_id)

        async def sent(sequence: int) -> Produced:
            batch = encode_batch(_one_record(), producer, sequence, Compression.NONE)
            return await port.produce(place, batch)

        with pytest.raises(Reconnected):
            await sent(0)
        assert (await port.evidence(place, producer.producer_id)).last_sequence is None
        assert (await sent(0)).base_offset == 0

        await port.close()
        await port.look((topic,))  # and there is another connection
        with pytest.raises(Reconnected):
            await sent(1)
        assert (await port.evidence(place, producer.producer_id)).last_sequence == 0
        assert (await sent(1)).base_offset == 1
    finally:
        await port.close()


def _one_record() -> Any:
    row = {"ts": 1, "key": None, "value": b"x", "headers": None, "op": 0, "payload": 0}
    return pa.RecordBatch.from_pylist([{**row, "table": None}], schema=RECORD_SCHEMA)
