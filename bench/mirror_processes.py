"""Who writes into Kafka, each as a process of its own: our worker, and Kafka's own measure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from duolog.jars import fetch_jars, find_java

_ENDS_WITHIN_SECONDS = 60


class WriterFailed(Exception):
    """A process that writes into Kafka ended before it was done."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A process that writes into Kafka. What it says is in a file."""

    process: subprocess.Popen[bytes]
    said: Path

    def check(self) -> None:
        """Raise WriterFailed if it has failed."""
        if self.process.poll():
            raise WriterFailed(f"{self.process.args!r} has ended: {self.said.read_text()[-2000:]}")

    def rss_bytes(self) -> int:
        """Its memory; nothing of one that has ended."""
        try:
            return int(psutil.Process(self.process.pid).memory_info().rss)
        except psutil.Error:
            return 0


@contextmanager
def worker(log: Path, bootstrap_servers: str, compression: str) -> Iterator[Writing]:
    """The Kafka worker as `duolog serve` starts it, for a log that a host serves."""
    told = {
        "folder": str(log),
        "bootstrap_servers": bootstrap_servers,
        "settings": {"compression.type": compression},
    }
    command = [sys.executable, "-m", "duolog.bridge.kafka.worker"]
    with started(command, log.with_name("worker.log"), stdin=subprocess.PIPE) as writing:
        stdin = writing.process.stdin
        assert stdin is not None
        with stdin:  # closed, it tells the worker that its host is gone
            stdin.write(json.dumps(told).encode() + b"\n")
            stdin.flush()
            yield writing
            writing.process.terminate()
            writing.process.wait(_ENDS_WITHIN_SECONDS)
            writing.check()


@contextmanager
def producer_performance(
    folder: Path, bootstrap_servers: str, topic: str, records: int, payloads: Path, compression: str
) -> Iterator[Writing]:
    """What `kafka-producer-perf-test` runs, as fast as it can."""
    command = [find_java(), "-Xmx512m", "-cp", class_path()]
    command += ["org.apache.kafka.tools.ProducerPerformance", "--topic", topic]
    command += ["--num-records", str(records), "--throughput", "-1"]
    command += ["--payload-file", str(payloads), "--producer-props"]
    command += [f"bootstrap.servers={bootstrap_servers}", "acks=all", "enable.idempotence=true"]
    command += [f"compression.type={compression}"]
    with started(command, folder / "performance.log") as writing:
        yield writing
        writing.process.wait(_ENDS_WITHIN_SECONDS)
        writing.check()


@contextmanager
def started(
    command: Sequence[str], said: Path, stdin: int = subprocess.DEVNULL
) -> Iterator[Writing]:
    with said.open("wb") as file:
        process = subprocess.Popen(command, stdin=stdin, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield Writing(process, said)
    finally:
        process.kill()
        process.wait()


def class_path() -> str:
    """The tools' jar, fetched once; all that it needs is among the broker's."""
    from duolog.bridge.kafka.local import KAFKA_VERSION, kafka_jars

    (tools,) = fetch_jars("org.apache.kafka", "kafka-tools", KAFKA_VERSION, transitive=False)
    return f"{tools}:{kafka_jars()[0].parent / '*'}"
