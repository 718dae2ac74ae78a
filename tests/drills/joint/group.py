"""A host with its worker, and consumers of one group of both kinds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from duolog import open_log
from duolog.errors import DuologError
from duolog.log.model import Record, TopicSettings
from duolog.reach import reach
from tests.drills.joint.consumers import KafkaReading, Ledger, NativeReading, Reading, until
from tests.drills.joint.java import JavaReading
from tests.drills.joint.plain import PlainMember
from tests.drills.joint.processes import KafkaProcess
from tests.support.kafka import DEADLINE_SECONDS, Kafka, admin_of

ROOT = Path(__file__).parents[3]
PARTITIONS = 4
# One that is closed while it joins has no way to say so: the others wait for its session to end.
CLASSIC = {
    "group.protocol": "classic",
    "partition.assignment.strategy": "range",
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 2000,
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": CLASSIC,
    "cooperative-sticky": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "kip-848": {"group.protocol": "consumer"},
}
_ASSIGNORS = "org.apache.kafka.clients.consumer"
JAVA = {
    "java-range": ["--assignment-strategy", f"{_ASSIGNORS}.RangeAssignor"],
    "java-sticky": ["--assignment-strategy", f"{_ASSIGNORS}.StickyAssignor"],
    "java-kip-848": ["--group-protocol", "consumer"],
}


class JointHost:
    """`duolog serve` in a process, which may be killed; with a mutant if asked."""

    def __init__(self, folder: Path, kafka: Kafka, mutant: str = "") -> None:
        self.folder = folder
        self._kafka = kafka
        self._mutant = mutant
        self._listen = "127.0.0.1:0"
        self.journal = folder.with_suffix(".journal")
        with open_log(folder):
            pass
        self.start()

    def start(self) -> None:
        """Again on the same port, after a kill."""
        variables = {n: text for n, text in os.environ.items() if not n.startswith("DUOLOG_")}
        paths = f"{ROOT}{os.pathsep}{variables.get('PYTHONPATH', '')}"
        with self.journal.open("ab") as journal:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.drills.joint.host"),
                    *("serve", "--log", str(self.folder), "--listen", self._listen),
                    *("--bootstrap-servers", self._kafka.bootstrap_servers),
                ],
                stdout=subprocess.PIPE,
                stderr=journal,
                cwd=self.folder.parent,
                env={**variables, "JOINT_MUTANT": self._mutant, "PYTHONPATH": paths},
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        self._listen = self.url.removeprefix("http://")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def tells(self, line: str) -> bool:
        """Whether /metrics has this line."""
        with urlopen(f"{self.url}/metrics", timeout=DEADLINE_SECONDS) as answer:
            return line in answer.read().decode().splitlines()

    def kill_worker(self) -> bool:
        for child in psutil.Process(self.process.pid).children():
            if any("kafka.worker" in word or "joint.worker" in word for word in child.cmdline()):
                os.kill(child.pid, signal.SIGKILL)
                return True
        return False


@contextmanager
def joint_host(folder: Path, kafka: Kafka, mutant: str = "") -> Iterator[JointHost]:
    host = JointHost(folder, kafka, mutant)
    try:
        yield host
    finally:
        host.kill()


@dataclass
class Joint:
    """A host with its worker, and consumers of one group of both kinds."""

    kafka: Kafka
    host: JointHost
    ends: ExitStack
    partitions: int = PARTITIONS
    topic: str = ""
    group: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    published: int = 0
    patience_seconds: float = DEADLINE_SECONDS
    all: list[Reading] = field(default_factory=list)
    _asking: Any = None

    def begin(self) -> None:
        """A new topic and group, with the mirror at work."""
        self.topic = self.kafka.new_group().replace("group", "joint")
        self.group = self.kafka.new_group()
        self.ledger, self.published = Ledger(), 0
        with reach(self.host.folder) as log:
            log.create_topic(self.topic, TopicSettings(partitions=self.partitions))
            self.publish(self.partitions)
            self.until(lambda: len(log.mirrors(self.topic)) == self.partitions, "it is mirrored")

    def publish(self, count: int) -> None:
        """Numbers that go on, in turn to all partitions."""
        with reach(self.host.folder) as log:
            numbers = range(self.published, self.published + count)
            log.publish(
                self.topic, [Record(b"%d" % n, partition=n % self.partitions) for n in numbers]
            )
        self.published += count

    def native(self, name: str, **options: Any) -> NativeReading:
        reading = NativeReading(name, self.ledger, self.host.url, self.topic, self.group, **options)
        self.ends.callback(reading.close)
        self.all.append(reading)
        return reading

    def in_kafka(self, name: str, settings: dict[str, Any]) -> KafkaReading:
        reading = KafkaReading(
            name, self.ledger, self.kafka.bootstrap_servers, self.topic, self.group, settings
        )
        self.ends.callback(reading.close)
        self.all.append(reading)
        return reading

    def in_process(self, name: str, settings: dict[str, Any]) -> KafkaProcess:
        told = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": self.group,
            "client.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
        reading = KafkaProcess(name, self.ledger, self.topic, told)
        self.ends.callback(reading.close)
        self.all.append(reading)
        return reading

    def plain(self, name: str) -> PlainMember:
        """It has not joined yet."""
        return PlainMember(name, self.ledger, self.host.url, self.topic, self.group)

    def in_java(self, name: str, *options: str) -> JavaReading:
        reading = JavaReading(
            name,
            self.ledger,
            self.kafka.bootstrap_servers,
            self.topic,
            self.group,
            self.partitions,
            options,
        )
        self.ends.callback(reading.close)
        self.all.append(reading)
        return reading

    def until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, lambda: f"{what}; {self._as_it_is()}", self.patience_seconds)

    def _as_it_is(self) -> str:
        """For who has to find out why it stands still."""
        missing = set(range(self.published)) - set(self.ledger.counts())
        told: dict[str, Any] = {
            "failed": [each.failed for each in self.all if each.failed is not None],
            "not processed, by partition": Counter(n % self.partitions for n in missing),
        }
        try:
            with reach(self.host.folder) as log:
                told["positions"] = log.group_positions(self.group)
                told["members"] = log.group_members(self.group)
        except DuologError as error:
            told["the log"] = error
        return ", ".join(f"{name}: {value}" for name, value in told.items())

    def is_so_within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Whether something comes about that may not."""
        try:
            until(condition, "", seconds)
        except AssertionError:
            return False
        return True

    def until_processed(self, count: int) -> None:
        """So many records at least."""
        self.until(lambda: len(self.ledger.counts()) >= count, "it goes on")

    def until_nothing_is_left(self) -> None:
        done = self.ledger.counts
        self.until(lambda: len(done()) == self.published, "all records are processed")

    def check(self) -> None:
        """Nothing is skipped, and nothing came again that was acknowledged."""
        assert set(self.ledger.counts()) == set(range(self.published)), "records are skipped"
        self.check_acks()

    def check_acks(self) -> None:
        """Nobody has failed, and what was acknowledged came to nobody again."""
        failed = [each.failed for each in self.all if each.failed is not None]
        assert not failed, failed
        again = self.ledger.after_ack
        assert not again, f"processed again after they were acknowledged: {again}"

    def until_all_are_done(self, *owners: str) -> None:
        """All is processed, and each of these processes something."""
        self.until_nothing_is_left()

        def each_has_some() -> bool:
            self.publish(self.partitions)
            return all(
                any(who.startswith(owner) for who in self.ledger.owners().values())
                for owner in owners
            )

        self.until(each_has_some, f"{owners} have partitions: {self.ledger.owners()}")
        self.until_nothing_is_left()

    def until_only(self, owner: str) -> None:
        """One consumer processes all."""

        def is_so() -> bool:
            self.publish(self.partitions)
            return set(self.ledger.owners().values()) == {owner}

        self.until(is_so, f"{owner} has all: {self.ledger.owners()}")

    def kafka_end(self, partition: int) -> int:
        """The offset that Kafka's next record gets."""
        from confluent_kafka import Consumer, TopicPartition

        if self._asking is None:
            settings = {"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": "ends"}
            self._asking = Consumer(settings)
            self.ends.callback(self._asking.close)
        where = TopicPartition(self.topic, partition)
        found = self._asking.get_watermark_offsets(where, timeout=DEADLINE_SECONDS)
        assert found is not None
        return int(found[1])

    def number(self, partition: int, offset: int) -> int:
        """The record at a place, while the topic keeps its partitions."""
        return offset * self.partitions + partition

    def until_at_the_end(self, *partitions: int) -> dict[int, int]:
        """Both sides are behind the last record of these; where the group is."""
        end = self.published // self.partitions

        def is_there() -> bool:
            native, kafka = self.positions(), self.committed()
            return all(native.get(at) == kafka.get(at) == end for at in partitions)

        self.until(is_there, f"partitions {partitions} are acknowledged on both sides")
        return self.committed()

    def positions(self) -> dict[int, int]:
        with reach(self.host.folder) as log:
            return {each.partition: each.position for each in log.group_positions(self.group)}

    def committed(self) -> dict[int, int]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        admin = admin_of(self.kafka.bootstrap_servers)  # kept: what it was asked ends with it
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])
        found = asked[self.group].result(DEADLINE_SECONDS).topic_partitions
        return {each.partition: each.offset for each in found or () if each.offset >= 0}
