"""How fast a host gives out records, as JSON and as Arrow, against a consumer of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.children import asked, child
from bench.figures import Report, at_least, at_least_of_reference
from bench.orders import RECORD_BYTES, TASK_ROWS, batches_of, stage
from bench.rounds import figure, take_turns
from bench.scratch import Scratch
from bench.serve_host import served
from bench.serve_readers import read_arrow, read_json, read_kafka
from duolog.log import open_log

_TOPIC = "orders"


@dataclass(frozen=True, slots=True)
class ServeConsumeBenchmark:
    """One consumer in a process of its own reads a partition from start to end."""

    name: ClassVar[str] = "serve-consume"
    by_itself: ClassVar[bool] = False

    records: int = 2_000_000
    json_records: int = 300_000
    json_at_once: int = 10_000
    arrow_at_once: int = 100_000
    rounds: int = 3
    with_kafka: bool = True

    @property
    def disk_bytes(self) -> int:
        return 4 * self.records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("serve") as folder, ExitStack() as running:
            with open_log(folder / "log") as log:
                parts = stage(log.create_topic(_TOPIC), self.records, folder / "parts")
                log.append(WRITER, 0, parts)
            host = running.enter_context(served(folder / "log"))
            begun = {
                "json": child(read_json, host.port, _TOPIC, self.json_records, self.json_at_once),
                "arrow": child(read_arrow, host.port, _TOPIC, self.records, self.arrow_at_once),
            }
            if self.with_kafka:
                kafka = running.enter_context(_filled_broker(folder, self.records))
                begun["kafka"] = child(read_kafka, kafka, _TOPIC, self.records)
            contenders: dict[str, Callable[[], float]] = {}
            for name, reader in begun.items():
                started = running.enter_context(reader)
                started.hear()
                contenders[name] = asked(started, "go")
                contenders[name]()  # a round that warms up
            samples = take_turns(self.rounds, contenders)
        return Report(
            self.name,
            f"{self.records:,} records of {RECORD_BYTES} B read by one consumer and unpacked: "
            f"{self.arrow_at_once:,} a request as Arrow (the next answer comes while one is "
            f"unpacked), {self.json_at_once:,} as JSON ({self.json_records:,} in all).",
            "confluent-kafka's consumer, 10,000 records a call, the same records from one real "
            "broker, lz4.",
            (
                figure(
                    "Arrow",
                    "/s",
                    samples["arrow"],
                    samples.get("kafka"),
                    at_least_of_reference(10) if self.with_kafka else None,
                ),
                figure("JSON", "/s", samples["json"], samples.get("kafka"), at_least(50_000)),
            ),
        )


@contextmanager
def _filled_broker(folder: Path, records: int) -> Iterator[str]:
    """A real broker that has the same records in one partition; where it listens."""
    from duolog.bridge.kafka.local import LocalKafka

    with LocalKafka(folder / "kafka", properties={"num.partitions": "1"}) as kafka:
        _fill(kafka.bootstrap_servers, records)
        yield kafka.bootstrap_servers


def _fill(bootstrap_servers: str, records: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": "lz4",
            "linger.ms": 20,
            "queue.buffering.max.messages": 2 * TASK_ROWS,
        }
    )
    for batch in batches_of(records):
        keys, values = batch["key"].to_pylist(), batch["value"].to_pylist()
        for key, value in zip(keys, values, strict=True):
            producer.produce(_TOPIC, value, key)
        producer.flush()
