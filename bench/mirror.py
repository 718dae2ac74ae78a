"""The mirror in Kafka: how fast it is beside Kafka's own producer, how late, and how large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from bench.children import child
from bench.figures import Figure, Report, at_least_of_reference, at_most
from bench.mirror_arrivals import arrival
from bench.mirror_delays import kafka_to_native, native_to_kafka, record_delays
from bench.mirror_maker import copy_of, mirror_maker
from bench.mirror_processes import producer_performance, worker
from bench.mirror_publisher import publish_stamped
from bench.mirror_records import PARTITIONS, fill_log, write_payloads
from bench.orders import RECORD_BYTES
from bench.rounds import figure, percentile, settle_disk, take_turns
from bench.scratch import Scratch
from bench.serve_host import served
from bench.spark_session import broker
from duolog.log import open_log
from duolog.log.model import TopicSettings

_LARGE_BYTES = 1024
_MAKERS = {"MirrorMaker 2": (False, 8), "MirrorMaker 2, tuned": (True, 4)}  # and the least ratio
_PACED, _ACKED = "paced", "acked"
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is written, and how much faster than by Kafka's producer it should be."""

    name: str
    record_bytes: int
    compression: str
    least_ratio: float

    def shown(self, per_second: float) -> float:
        """Small records are counted, large ones weighed."""
        return per_second if self.unit == "/s" else per_second * self.record_bytes / 1e6

    @property
    def unit(self) -> str:
        return "/s" if self.record_bytes == RECORD_BYTES else "MB/s"


_KINDS = (
    _Kind(f"{RECORD_BYTES} B, uncompressed", RECORD_BYTES, "none", 2),
    _Kind(f"{RECORD_BYTES} B, zstd", RECORD_BYTES, "zstd", 4),
    _Kind("1 KiB, uncompressed", _LARGE_BYTES, "none", 1.3),
)


@dataclass(frozen=True, slots=True)
class MirrorBenchmark:
    """A host, its Kafka worker and a broker on one machine, each a process of its own."""

    name: ClassVar[str] = "mirror"
    by_itself: ClassVar[bool] = True

    records: int = 2_000_000
    rounds: int = 3
    paced_per_second: int = 1000
    paced_records: int = 4000
    acks: int = 200

    @property
    def disk_bytes(self) -> int:
        topics = (2 * len(_KINDS) + len(_MAKERS)) * (self.rounds + 1)
        return self.records * RECORD_BYTES * topics * 3 // 2

    def run(self, scratch: Scratch) -> Report:
        small = _KINDS[0]
        with scratch.folder("mirror") as folder, broker(folder) as kafka:
            rates = _Rates(scratch, folder, kafka, self.records)
            contenders = {
                f"{way} {kind.name}": partial(measured, kind)
                for kind in _KINDS
                for way, measured in (("mirror", rates.mirror), ("kafka", rates.kafka))
            }
            take_turns(1, contenders)  # the broker warms up: each of them has its own way there
            makers = {
                name: partial(rates.mirror_maker, tuned) for name, (tuned, _) in _MAKERS.items()
            }
            samples = take_turns(self.rounds, {**contenders, **makers})
            delays = list(self._delay_figures(folder / "delays", kafka))
        return Report(
            self.name,
            f"{self.records:,} records of {RECORD_BYTES} B, or as many bytes in records of 1 KiB, "
            f"from a log that was filled before into {PARTITIONS} partitions, counted at the "
            "broker after the first quarter. Readable in Kafka: from when a publish of one record "
            f"is due, {self.paced_per_second:,} of them a second, until a confluent-kafka "
            f"consumer has it. Positions: one after the other, {self.acks} times.",
            "kafka-producer-perf-test on the same broker, acks=all, idempotent, the same "
            "compression, otherwise its defaults; lines with the same content. MirrorMaker 2 "
            "copies what the mirror has written into another topic of the same broker; tuned: four "
            "tasks, large reads and batches.",
            (
                *(
                    figure(
                        kind.name,
                        kind.unit,
                        samples[f"mirror {kind.name}"],
                        samples[f"kafka {kind.name}"],
                        at_least_of_reference(kind.least_ratio),
                    )
                    for kind in _KINDS
                ),
                *(
                    figure(
                        f"{small.name}, to {name}",
                        small.unit,
                        samples[f"mirror {small.name}"],
                        samples[name],
                        at_least_of_reference(least),
                    )
                    for name, (_, least) in _MAKERS.items()
                ),
                Figure("worker meanwhile", max(rates.peaks) / _MIB, "MiB", target=at_most(300)),
                *delays,
            ),
        )

    def _delay_figures(self, folder: Path, kafka: str) -> Iterator[Figure]:
        from duolog.reach import reach

        folder.mkdir()
        fill_log(folder, _ACKED, PARTITIONS * (self.acks + 1), RECORD_BYTES)
        with open_log(folder / "log") as log:
            log.create_topic(_PACED, TopicSettings(partitions=PARTITIONS))
        with (
            served(folder / "log") as host,
            worker(folder / "log", kafka, "zstd") as writing,
            reach(folder / "log") as log,
        ):
            arrival(kafka, _ACKED, PARTITIONS * (self.acks + 1), writing)
            with child(publish_stamped, host.port, _PACED, self.paced_per_second) as publisher:
                publisher.hear()
                readable = record_delays(kafka, _PACED, publisher, self.paced_records, self.rounds)
            yield from _percentiles("readable in Kafka", readable, 100)
            acked = native_to_kafka(log, kafka, _ACKED, self.acks)
            yield from _percentiles("native ack in Kafka", [acked], 200)
            committed = kafka_to_native(log, kafka, _ACKED, self.acks)
            yield from _percentiles("Kafka commit in the log", [committed], 100)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Writes as fast as can be, each time into a new topic."""

    scratch: Scratch
    folder: Path
    kafka_servers: str
    records: int
    peaks: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    mirrored: list[str] = field(default_factory=list)  # with records of the first kind

    def mirror(self, kind: _Kind) -> float:
        topic, records = self._topic(), self._records(kind)
        with self.scratch.folder("mirrored") as folder:
            fill_log(folder, topic, records, kind.record_bytes)
            settle_disk()
            with (
                served(folder / "log"),
                worker(folder / "log", self.kafka_servers, kind.compression) as writing,
            ):
                arrived = arrival(self.kafka_servers, topic, records, writing)
        self.peaks.append(arrived.peak_bytes)
        if kind is _KINDS[0]:
            self.mirrored.append(topic)
        return kind.shown(arrived.per_second)

    def kafka(self, kind: _Kind) -> float:
        topic, records = self._topic(), self._records(kind)
        payloads = self.folder / f"{kind.record_bytes}.txt"
        if not payloads.exists():
            write_payloads(payloads, kind.record_bytes)
        with producer_performance(
            self.folder, self.kafka_servers, topic, records, payloads, kind.compression
        ) as writing:
            arrived = arrival(self.kafka_servers, topic, records, writing)
        return kind.shown(arrived.per_second)

    def mirror_maker(self, tuned: bool) -> float:
        """Out of a topic that the mirror has filled: the same records, keys and all."""
        topic, source, kind = self.mirrored[0], self._topic(), _KINDS[0]
        with mirror_maker(self.folder, self.kafka_servers, topic, source, tuned=tuned) as writing:
            copy = copy_of(topic, source)
            arrived = arrival(self.kafka_servers, copy, self._records(kind), writing)
        return kind.shown(arrived.per_second)

    def _topic(self) -> str:
        self.topics.append(f"round-{len(self.topics)}")
        return self.topics[-1]

    def _records(self, kind: _Kind) -> int:
        """As many bytes of each kind, in four equal parts."""
        return self.records * RECORD_BYTES // kind.record_bytes // PARTITIONS * PARTITIONS


def _percentiles(name: str, rounds: list[list[float]], most: float) -> Iterator[Figure]:
    for share, target in ((0.5, None), (0.99, at_most(most))):
        values = [percentile(delays, share) for delays in rounds]
        yield figure(f"{name}, p{share * 100:g}", "ms", values, target=target)
