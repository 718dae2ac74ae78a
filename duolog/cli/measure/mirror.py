"""The mirror, beside Kafka's own producer in C with the same records."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.cli.measure.bars import Measured, Measurement
from duolog.cli.measure.records import TOPIC, append, batches
from duolog.errors import DuologError, KafkaUnreachable
from duolog.log import EmbeddedLog, open_log
from duolog.log.model import TopicSettings

if TYPE_CHECKING:
    from duolog.bridge.kafka.mirror.mirroring import KafkaMirror
    from duolog.bridge.kafka.settings import KafkaSettings

_DEADLINE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.005


def measure_mirror(folder: Path, records: int, settings: KafkaSettings) -> Measurement:
    """Each writes into a topic of its own, which is deleted afterwards."""
    ours, theirs = (f"duolog-bench-{uuid.uuid4().hex[:12]}" for _ in range(2))
    try:
        mirrored = records / _mirror(folder, records, settings, ours)
        produced = records / _produce(records, settings, theirs)
    finally:
        _delete(settings, ours, theirs)
    return Measurement(
        "mirror",
        f"{records:,} records into Kafka, one partition, idempotent, {settings.compression.value}",
        "/s",
        (
            Measured("the mirror, from the log", mirrored),
            Measured("librdkafka's producer", produced, is_ours=False),
        ),
    )


def _mirror(folder: Path, records: int, settings: KafkaSettings, kafka_topic: str) -> float:
    from duolog.bridge.kafka.mirror.mirroring import KafkaMirror

    with open_log(folder / "log") as log:
        log.create_topic(TOPIC, TopicSettings(kafka_topic=kafka_topic))
        append(log, 1, folder / "parts")
        mirror = KafkaMirror(log, settings)
        with _running(mirror) as failed:
            _caught_up(log, mirror, failed)
            append(log, records, folder / "parts", epoch=1)
            began = time.perf_counter()
            before = _mirrored(mirror)
            _caught_up(log, mirror, failed)
            seconds = time.perf_counter() - began
    return seconds * records / max(1, records + 1 - before)


@contextmanager
def _running(mirror: KafkaMirror) -> Iterator[Future[BaseException]]:
    loop = asyncio.new_event_loop()
    task: list[asyncio.Task[None]] = []
    began, failed = threading.Event(), Future[BaseException]()

    def run() -> None:
        async def main() -> None:
            task.append(asyncio.create_task(mirror.run()))
            began.set()
            try:
                await task[0]
            except asyncio.CancelledError:
                pass
            except Exception as error:  # noqa: BLE001 - told to who waits for the mirror
                failed.set_result(error)

        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=run, name="duolog-bench-mirror")
    thread.start()
    began.wait()
    try:
        yield failed
    finally:
        if not failed.done():
            loop.call_soon_threadsafe(task[0].cancel)
        thread.join()


def _mirrored(mirror: KafkaMirror) -> int:
    return sum(each.next_log_offset for each in mirror.status())


def _caught_up(log: EmbeddedLog, mirror: KafkaMirror, failed: Future[BaseException]) -> None:
    end = log.offsets(TOPIC)[0].next_offset
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while _mirrored(mirror) < end:
        if failed.done():
            raise failed.result()
        if time.monotonic() > deadline:
            said = [each.trouble for each in mirror.status() if each.trouble]
            raise KafkaUnreachable(
                f"The mirror has not come to its end within {_DEADLINE_SECONDS:g} s"
                f"{': ' + said[0] if said else '. Measure fewer records with --records.'}"
            )
        time.sleep(_LOOK_SECONDS)


def _produce(records: int, settings: KafkaSettings, kafka_topic: str) -> float:
    from confluent_kafka import Producer

    from duolog.bridge.kafka.mirror.topics import KafkaTopics

    KafkaTopics(settings).make(kafka_topic, 1, {})
    producer = Producer(
        {
            **settings.for_confluent(),
            "enable.idempotence": True,
            "compression.type": settings.compression.value,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    prepared = [
        (batch.column("key").to_pylist(), batch.column("value").to_pylist())
        for batch in batches(records)
    ]
    began = time.perf_counter()
    for keys, values in prepared:
        for key, value in zip(keys, values, strict=True):
            while True:
                try:
                    producer.produce(kafka_topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.05)
    left = producer.flush(_DEADLINE_SECONDS)
    if left:
        raise KafkaUnreachable(f"Kafka has not taken {left:,} records in time.")
    return time.perf_counter() - began


def _delete(settings: KafkaSettings, *topics: str) -> None:
    from contextlib import suppress

    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({**settings.for_confluent(), "log_level": 0})
    for answer in admin.delete_topics(list(topics)).values():
        with suppress(KafkaException, TimeoutError, DuologError):  # one was perhaps never made
            answer.result(_DEADLINE_SECONDS)
