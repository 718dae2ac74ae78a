"""A mirror at work beside a test, and an independent reader of what it wrote."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, TopicPartition

from duolog.bridge.kafka.mirror.mirroring import KafkaMirror, PartitionStatus
from duolog.bridge.kafka.mirror.shared import MirrorOptions
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.clock import SystemClock
from duolog.errors import DuologError
from duolog.log.access import LogAccess
from duolog.log.mirror_model import Mirror

DEADLINE_SECONDS = 60.0
QUICK = MirrorOptions(
    store_every_seconds=0.05,
    look_every_seconds=0.05,
    suspect_every_seconds=0.1,
    retry_halted_seconds=0.1,
    longest_pause_seconds=0.2,
)


class Read(NamedTuple):
    """One record as a Kafka consumer sees it."""

    offset: int
    ts_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class _Ahead(SystemClock):
    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


class RunningMirror:
    """A mirror in a thread of its own, stopped when its block is left."""

    def __init__(
        self,
        log: LogAccess,
        bootstrap_servers: str,
        settings: dict[str, str] | KafkaSettings | None = None,
        options: MirrorOptions = QUICK,
        clock_ahead_ms: int = 0,
    ) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._log = log
        self._mirror = KafkaMirror(
            log,
            settings
            if isinstance(settings, KafkaSettings)
            else KafkaSettings.of(bootstrap_servers, settings),
            options=options,
            clock=_Ahead(clock_ahead_ms),
            say=lambda event, **fields: self.events.append((event, fields)),
        )
        self.loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="duolog-test-mirror")
        self._failure: BaseException | None = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._mirror.run())
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._failure = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def status(self, topic: str, partition: int = 0) -> PartitionStatus:
        for status in self._mirror.status():
            if (status.topic, status.partition) == (topic, partition):
                return status
        raise AssertionError(f"{topic}/{partition} is not mirrored")

    @property
    def trouble(self) -> DuologError | None:
        """Why it does not find the cluster."""
        return self._mirror.trouble

    @property
    def mirrors(self) -> Callable[[], Iterator[Mirror]]:
        return self._mirror.mirrors

    def topics(self) -> set[str]:
        return {status.topic for status in self._mirror.status()}

    def wait(self, done: Callable[[], Any], what: str) -> Any:
        """Wait for something, with a deadline; what it is then."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            if self._failure is not None:
                raise self._failure
            try:
                found = done()
            except AssertionError:  # not mirrored yet
                found = None
            if found:
                return found
            time.sleep(0.005)
        raise AssertionError(f"not within {DEADLINE_SECONDS:g} s: {what}\n{self._told()}")

    def caught_up(self, topic: str) -> None:
        """Wait until everything that is in the log now is in Kafka."""
        for head in self._log.offsets(topic):
            place, upto = (topic, head.partition), head.next_offset
            reached = partial(self._has_reached, *place, upto)
            self.wait(reached, f"{place} mirrored up to {upto}")

    def _has_reached(self, topic: str, partition: int, offset: int) -> bool:
        return self.status(topic, partition).next_log_offset >= offset

    def halted(self, topic: str, partition: int = 0) -> PartitionStatus:
        """Wait until it stands still; why."""
        self.wait(
            lambda: self.status(topic, partition).phase == "halted", f"{topic}/{partition} halted"
        )
        return self.status(topic, partition)

    def said(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    def _told(self) -> str:
        lines = [str(status) for status in self._mirror.status()]
        return "\n".join(lines + [f"{name} {fields}" for name, fields in self.events[-20:]])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive(), "the mirror did not stop"
        if self._failure is not None:
            raise self._failure


def until(done: Callable[[], Any]) -> None:
    """Wait for something, with a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not done():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:g} s"
        time.sleep(0.02)


def read_all(bootstrap_servers: str, topic: str, partition: int = 0) -> list[Read]:
    """All records of a partition in the order of reading, by librdkafka, checksums checked."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"reader-of-{topic}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    try:
        place = TopicPartition(topic, partition)
        start, end = consumer.get_watermark_offsets(place, timeout=DEADLINE_SECONDS)
        if start == end:
            return []
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Read] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while consumer.position([place])[0].offset < end:
            assert time.monotonic() < deadline, f"{topic}/{partition} is not readable up to {end}"
            for message in consumer.consume(10_000, 0.1):
                assert message.error() is None, message.error()
                found.append(
                    Read(
                        message.offset() or 0,
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),  # type: ignore[arg-type] # pairs
                    )
                )
        return found
    finally:
        consumer.close()


def read_log(log: LogAccess, topic: str, partition: int = 0) -> list[Read]:
    """The same from the log."""
    found: list[Read] = []
    (head,) = (each for each in log.offsets(topic) if each.partition == partition)
    at = head.start
    while at < head.next_offset:
        fetched = log.fetch(topic, partition, at)
        found += [Read(r.offset, r.ts_ms, r.key, r.value, r.headers) for r in fetched]
        at = fetched.next_offset
    return found
