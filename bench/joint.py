"""Groups of native and Kafka members: how quick a handover is, what members cost, how one reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import psutil

from bench.figures import Figure, Report, at_least_of_reference, at_most
from bench.rounds import figure, percentile, take_turns
from bench.scratch import Scratch
from bench.serve_host import ServedHost, served
from bench.spark_session import broker
from duolog.client import Consumer
from duolog.log import open_log
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Record, TopicSettings
from duolog.reach import reach

_PARTITIONS: Final = 4
_DEADLINE_SECONDS: Final = 120.0
_MIB: Final = 1 << 20
_RECORD: Final = b"x" * 100
_HEARTBEAT: Final = "heartbeat.interval.ms"
_BROKERS_HEARTBEAT: Final = "group.consumer.heartbeat.interval.ms"
_KINDS: Final[dict[str, tuple[dict[str, Any], float]]] = {
    "classic": (
        {
            "group.protocol": "classic",
            "partition.assignment.strategy": "range",
            _HEARTBEAT: 3000,  # the default, of Java's consumer too
        },
        3.0,
    ),
    "KIP-848": ({"group.protocol": "consumer"}, 1.0),
}
_SPREAD: Final = 0.618  # of beginnings over a heartbeat: evenly, however many there are


class NotInTime(Exception):
    """Something that was to be measured did not happen."""


@dataclass(frozen=True, slots=True)
class JointBenchmark:
    """A host, its Kafka worker and a broker; the consumers are in this process."""

    name: ClassVar[str] = "joint"
    by_itself: ClassVar[bool] = True

    handovers: int = 20
    members: int = 50
    idle_seconds: float = 20.0
    records: int = 4_000_000
    rounds: int = 3

    @property
    def disk_bytes(self) -> int:
        return self.records * len(_RECORD) * 8

    def run(self, scratch: Scratch) -> Report:
        figures: list[Figure] = []
        with scratch.folder("joint") as folder, broker(folder) as kafka:
            log = folder / "log"
            with open_log(log) as opened:
                for name in ("handed", "idle", "read", "apart"):
                    opened.create_topic(name, TopicSettings(partitions=_PARTITIONS))
                opened.set_mirror_mode("apart", MirrorMode.DETACHED)
            with served(log, "--bootstrap-servers", kafka) as host:
                _until_mirrored(log)
                for kind, (settings, most) in _KINDS.items():
                    figures += self._handovers(host, kafka, kind, settings, most)
                figures += self._idle(host, kafka)
                figures += self._throughput(log, host, kafka)
        return Report(
            self.name,
            f"{_PARTITIONS} partitions, shared by a Python consumer and one of confluent-kafka, "
            f"{self.handovers} times: from the call that joins or leaves until each has what is "
            "its own, after one that is not counted. They begin at any time of a heartbeat, by "
            "which the Kafka consumer hears of a change. The broker is `duolog kafka`. Memory and "
            "processor time are those of the host and its worker together.",
            "a member of a group in a topic that is not mirrored",
            tuple(figures),
        )

    def _handovers(
        self, host: ServedHost, kafka: str, kind: str, settings: dict[str, Any], most: float
    ) -> Iterator[Figure]:
        group = f"handed-{kind}"
        heartbeat = settings.get(_HEARTBEAT) or _of_broker(kafka, _BROKERS_HEARTBEAT)
        yield Figure(f"{kind}: heartbeats of the Kafka consumer", heartbeat, "ms")
        to_native, to_kafka = [], []
        with _KafkaMember(kafka, "handed", group, settings) as other:
            for number in range(-1, self.handovers):  # the first one warms all up
                pause = heartbeat / 1000 * ((number + 0.5) * _SPREAD % 1)
                threading.Event().wait(pause)
                began = time.perf_counter()
                with _Native(host, "handed", group) as native:
                    _until(lambda: bool(native.assigned), "the native member has partitions")
                    _until(lambda: 0 < len(other.assigned) < _PARTITIONS, "they share")
                    joined = time.perf_counter() - began
                    threading.Event().wait(pause)
                _until(lambda: len(other.assigned) == _PARTITIONS, "Kafka has all")
                if number >= 0:
                    to_native.append(joined)
                    to_kafka.append(time.perf_counter() - native.left_at)
        for way, seconds in (("Kafka to native", to_native), ("native to Kafka", to_kafka)):
            yield Figure(f"{kind}: {way}, p50", percentile(seconds, 0.5), "s")
            yield Figure(f"{kind}: {way}, p99", percentile(seconds, 0.99), "s", None, at_most(most))

    def _idle(self, host: ServedHost, kafka: str) -> Iterator[Figure]:
        before = _rss(host)
        with ExitStack() as ends:
            natives = [
                ends.enter_context(_Native(host, "idle", "idle", poll_seconds=10.0))
                for _ in range(self.members)
            ]
            for each in natives:
                ends.callback(each.stop)  # all of them before the first is waited for
            _until(lambda: _members(kafka, "idle") == self.members, "all are members in Kafka")
            _until(lambda: _is_shared_out(natives), "each has as many partitions as others")
            cpu, began = _cpu(host), time.perf_counter()
            threading.Event().wait(self.idle_seconds)
            share = (_cpu(host) - cpu) / (time.perf_counter() - began)
            grown = max(1, _rss(host) - before)
        yield Figure(f"{self.members} idle members", grown / _MIB, "MiB", None, at_most(300))
        yield Figure(
            f"{self.members} idle members, host and worker",
            100 * share,
            "% of a core",
            None,
            at_most(10),
        )

    def _throughput(self, log: Path, host: ServedHost, kafka: str) -> Iterator[Figure]:
        with reach(log) as opened:
            for first in range(0, self.records, 5000):
                count = min(5000, self.records - first)
                numbered = range(count)
                records = [Record(_RECORD, partition=n % _PARTITIONS) for n in numbered]
                for topic in ("read", "apart"):
                    opened.publish(topic, records)
            _until(lambda: _mirrored(opened, "read") == self.records, "all is in Kafka")
        settings = _KINDS["KIP-848"][0]
        numbers = iter(range(1 << 30))

        def joint() -> float:
            group = f"joint-{next(numbers)}"
            with _KafkaMember(kafka, "idle", group, settings):
                return self._read(host, group, "read")

        def outside() -> float:
            return self._read(host, f"outside-{next(numbers)}", "apart")

        def by_partition() -> float:
            return self._read(host, f"named-{next(numbers)}", {"apart": range(_PARTITIONS)})

        contenders = {"joint": joint, "outside": outside, "by partition": by_partition}
        rates = take_turns(self.rounds, contenders)
        yield figure(
            "records read by a member",
            "/s",
            rates["joint"],
            rates["outside"],
            at_least_of_reference(0.9),
        )
        yield figure("records read by who names each partition", "/s", rates["by partition"])

    def _read(self, host: ServedHost, group: str, topics: str | dict[str, Any]) -> float:
        with Consumer(
            topics,
            url=f"http://127.0.0.1:{host.port}",
            group=group,
            start="earliest",
            max_records=min(20_000, max(100, self.records // 20)),
            value_format="raw",
        ) as consumer:
            _until(lambda: bool(consumer.poll_tables(1)), "it reads")
            began, count = time.perf_counter(), 0
            last = began
            while time.perf_counter() - last < 1.0:
                found = sum(table.table.num_rows for table in consumer.poll_tables(0.2))
                if found:
                    count, last = count + found, time.perf_counter()
            return count / max(1e-9, last - began)


@dataclass
class _Native:
    """A native member in a thread, which polls and nothing else."""

    host: ServedHost
    topic: str
    group: str
    poll_seconds: float = 0.5
    left_at: float = 0.0  # when it was told to close
    _stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def assigned(self) -> frozenset[int]:
        return self._consumer.assigned(self.topic)

    def __enter__(self) -> Self:
        url = f"http://127.0.0.1:{self.host.port}"
        self._consumer = Consumer(
            self.topic, url=url, group=self.group, start="earliest", value_format="raw"
        )
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        self._stopping.set()

    def _poll(self) -> None:
        with self._consumer as consumer:
            while not self._stopping.is_set():
                consumer.poll(self.poll_seconds)
            self.left_at = time.perf_counter()


def _is_shared_out(natives: Sequence[_Native]) -> bool:
    counts = [len(each.assigned) for each in natives]
    return sum(counts) == _PARTITIONS and max(counts) - min(counts) <= 1


@dataclass
class _KafkaMember:
    """A consumer in Kafka, in a thread."""

    kafka: str
    topic: str
    group: str
    settings: dict[str, Any]
    assigned: frozenset[int] = frozenset()
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        if self.topic == "handed":
            _until(lambda: len(self.assigned) == _PARTITIONS, "Kafka has all")
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _poll(self) -> None:
        from confluent_kafka import Consumer as KafkaConsumer

        told = {"bootstrap.servers": self.kafka, "group.id": self.group, **self.settings}
        consumer = KafkaConsumer({**told, "auto.offset.reset": "earliest"})
        consumer.subscribe([self.topic])
        while not self._stopping.is_set():
            consumer.poll(0.02)
            self.assigned = frozenset(each.partition for each in consumer.assignment())
        consumer.close()


def _members(kafka: str, group: str) -> int:
    """How many there are in Kafka, when they are not about to change."""
    from confluent_kafka import ConsumerGroupState
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": kafka})
    found = admin.describe_consumer_groups([group])[group].result(_DEADLINE_SECONDS)
    return len(found.members) if found.state is ConsumerGroupState.STABLE else 0


def _of_broker(kafka: str, setting: str) -> int:
    """What the broker runs with."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._config import ConfigResource
    from confluent_kafka.admin._resource import ResourceType

    admin = AdminClient({"bootstrap.servers": kafka})
    (node,) = admin.list_topics(timeout=_DEADLINE_SECONDS).brokers
    asked = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node))])
    (found,) = asked.values()
    return int(found.result(_DEADLINE_SECONDS)[setting].value)


def _processes(host: ServedHost) -> list[psutil.Process]:
    return [host.process, *host.process.children(recursive=True)]


def _rss(host: ServedHost) -> int:
    return sum(int(each.memory_info().rss) for each in _processes(host))


def _cpu(host: ServedHost) -> float:
    times = [each.cpu_times() for each in _processes(host)]
    return sum(float(each.user + each.system) for each in times)


def _mirrored(log: Any, topic: str) -> int:
    return sum(mirror.next_log_offset for mirror in log.mirrors(topic))


def _until_mirrored(log: Path) -> None:
    with reach(log) as opened:
        _until(lambda: len(opened.mirrors()) == 3 * _PARTITIONS, "the topics are mirrored")


def _until(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise NotInTime(f"Not within {_DEADLINE_SECONDS:g} s: {what}.")
        time.sleep(0.005)
