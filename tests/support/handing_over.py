"""A host that mirrors, as processes, and consumers of both sides that take turns in one group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition

from duolog import open_log
from duolog.log.model import Record, TopicSettings
from duolog.reach import reach
from tests.support.groups import until
from tests.support.kafka import DEADLINE_SECONDS, Kafka

PARTITIONS = 4
DUOLOG = [sys.executable, "-m", "duolog.cli"]
Place = tuple[int, int]


class Mirrored:
    """`duolog serve` with its worker, and one topic of its log in Kafka."""

    def __init__(
        self, folder: Path, kafka: Kafka, partitions: int = PARTITIONS, mutant: str = ""
    ) -> None:
        """`mutant`: a line that changes the product before it runs."""
        self.folder, self.kafka = folder, kafka
        self.topic = f"turns-{uuid4().hex[:12]}"
        self.group = kafka.new_group()
        with open_log(folder) as log:
            log.create_topic(self.topic, TopicSettings(partitions=partitions))
        variables = {n: text for n, text in os.environ.items() if not n.startswith("DUOLOG_")}
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", f"{mutant}\nfrom duolog.cli import main\nmain()"),
                *("serve", "--log", str(folder), "--listen", "127.0.0.1:0"),
                *("--bootstrap-servers", kafka.bootstrap_servers),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder.parent,
            env=variables,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    # -- the host

    def worker(self) -> psutil.Process | None:
        for child in psutil.Process(self.process.pid).children():
            if "duolog.bridge.kafka.worker" in child.cmdline():
                return child
        return None

    def kill_worker(self) -> None:
        until(lambda: self.worker() is not None, "have a worker", DEADLINE_SECONDS)
        worker = self.worker()
        assert worker is not None
        worker.send_signal(signal.SIGKILL)

    def ask(self, path: str, content: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            f"{self.url}/v1/api/{path}",
            json.dumps(content).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=DEADLINE_SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def publish(self, records: int) -> None:
        with reach(self.folder) as log:
            partitions = log.topic(self.topic).partitions
            log.publish(
                self.topic,
                [
                    Record(b"%d" % number, partition=number % partitions)
                    for number in range(records)
                ],
            )

    def publish_and_mirror(self, records: int) -> None:
        self.publish(records)
        until(lambda: self.behind() == 0, "mirror", DEADLINE_SECONDS)

    def behind(self) -> int:
        with reach(self.folder) as log:
            heads = {each.partition: each.next_offset for each in log.offsets(self.topic)}
            known = {each.partition: each.next_log_offset for each in log.mirrors(self.topic)}
        return sum(heads.values()) - sum(known.values()) if known.keys() == heads.keys() else -1

    # -- the group

    def native(self, partition: int = 0) -> int | None:
        with reach(self.folder) as log:
            position = log.group_position(self.group, self.topic, partition)
        return None if position is None else position.position

    def in_kafka(self, partition: int = 0) -> int | None:
        with closing(self.consumer()) as asking:
            place = TopicPartition(self.topic, partition)
            (found,) = asking.committed([place], timeout=DEADLINE_SECONDS)
        return None if found.offset < 0 else int(found.offset)

    def ack(self, upto: int, partition: int = 0, **more: Any) -> dict[str, Any]:
        asked = {"topic": self.topic, "group_id": self.group, "partition_id": partition}
        status, answer = self.ask("topics/ack", {**asked, "upto_offset": upto, **more})
        assert status == 200, answer
        return answer

    def poll(self, limit: int, **more: Any) -> dict[str, Any]:
        asked = {"topic": self.topic, "group_id": self.group, "start": "Earliest", "limit": limit}
        status, answer = self.ask("topics/consume", {**asked, "timeout_seconds": 0, **more})
        assert status == 200, answer
        return answer

    def native_turn(self, portion: int) -> list[Place]:
        """Poll, process, acknowledge, and hand over."""
        answer = self.poll(portion)
        assert "unsettled" not in answer, answer
        taken = [(each["partition_id"], each["offset"]) for each in answer["messages"]]
        for partition in {each for each, _ in taken}:
            last = max(offset for each, offset in taken if each == partition)
            settled = self.ack(last, partition, wait="settled")
            assert settled["settled"], settled
        return taken

    def kafka_turn(self, portion: int, **settings: str) -> list[Place]:
        """Join, read, commit, and leave."""
        taken: list[Place] = []
        with closing(self.consumer(**settings)) as reader:
            reader.subscribe([self.topic])
            until(lambda: _joined(reader, taken), "join the group", DEADLINE_SECONDS)
            left = self._left(reader)
            while len(taken) < min(portion, left):
                message = reader.poll(1)
                if message is not None:
                    assert message.error() is None, message.error()
                    taken.append((message.partition() or 0, message.offset() or 0))
            ends = {partition: offset + 1 for partition, offset in taken}
            for partition, end in ends.items():
                reader.commit(
                    offsets=[TopicPartition(self.topic, partition, end)], asynchronous=False
                )
        return taken

    def _left(self, reader: Consumer) -> int:
        """How many records the group has still to read."""
        places = [TopicPartition(self.topic, each.partition) for each in reader.assignment()]
        known = reader.committed(places, timeout=DEADLINE_SECONDS)
        left = 0
        for place in known:
            low, high = reader.get_watermark_offsets(place, timeout=DEADLINE_SECONDS)
            left += high - max(low, int(place.offset))
        return left

    @contextmanager
    def member(self, **settings: str) -> Iterator[Consumer]:
        """A Kafka consumer that is a member of the group until the block is left."""
        with closing(self.consumer(**settings)) as reader:
            reader.subscribe([self.topic])
            until(lambda: _joined(reader, []), "join the group", DEADLINE_SECONDS)
            yield reader

    def commit(self, reader: Consumer, offset: int, partition: int = 0) -> None:
        place = TopicPartition(self.topic, partition, offset)
        reader.commit(offsets=[place], asynchronous=False)

    def consumer(self, **settings: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": self.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
                **settings,
            }
        )

    # -- the end

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE_SECONDS)
        finally:
            self.process.kill()
            self.process.wait(DEADLINE_SECONDS)
            assert self.process.stdout is not None
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def duolog(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DUOLOG, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def each_once(taken: list[Place], records: int, partitions: int = PARTITIONS) -> None:
    """No record twice, none left out, and each partition in its order."""
    twice = [place for place, times in Counter(taken).items() if times > 1]
    assert not twice, f"processed twice: {sorted(twice)[:10]}"
    wanted = {(n % partitions, n // partitions) for n in range(records)}
    assert set(taken) == wanted, f"left out: {sorted(wanted - set(taken))[:10]}"
    for partition in range(partitions):
        offsets = [offset for each, offset in taken if each == partition]
        assert offsets == sorted(offsets)


def _joined(reader: Consumer, taken: list[Place]) -> bool:
    """Poll until there is an assignment. A record that comes with it is one that was taken."""
    try:
        message = reader.poll(0.05)
    except KafkaException:
        return False
    if message is not None and message.error() is None:
        taken.append((message.partition() or 0, message.offset() or 0))
    return bool(reader.assignment())


def wait_until(done: Callable[[], bool], what: str) -> None:
    until(done, what, DEADLINE_SECONDS)
