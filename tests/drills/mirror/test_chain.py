"""From a stream of Spark through the log into Kafka, exactly once, whatever is killed on the way.

In one run the Spark driver with its JVM, the host, the Kafka worker and the broker are killed with
-9, in any order and at any place. In the end a checker that knows only the source's rows reads the
Kafka topic: each change is there once, and each key's changes in their order.

Mutant: without_a_producer, in a second log beside the first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from duolog.bridge.kafka.local import LocalKafka
from duolog.errors import DuologError
from duolog.reach import reach
from tests.drills.connector.checker import differences, told_by
from tests.drills.connector.driver import GO, KILL, Driver, Report
from tests.drills.connector.streams import PARTITIONS, Stream, add_files, make_log
from tests.drills.mirror import served
from tests.drills.mirror.judging import audit_says
from tests.support.children import ROOT, Child
from tests.support.groups import until
from tests.support.mirror_runner import read_all

_BATCHES = 4  # that each driver finds to do
_MOST_REPORTS = 8  # of all processes of Spark, between two kills
_MORE_DRIVERS = 4
_PATIENCE_SECONDS = 120.0


class Chain:
    """A stream, its log, and the host and worker that this has now."""

    def __init__(self, folder: Path, broker: LocalKafka, mutant: str | None = None) -> None:
        name = f"source-{uuid4().hex[:8]}"
        own = folder / name
        self.stream = Stream(name, "source", own, folder / "files", folder / f"{name}.checkpoint")
        make_log([self.stream])
        self._broker = broker
        self._arguments = {
            "folder": str(own),
            "bootstrap_servers": broker.bootstrap_servers,
            "mutant": mutant,
        }
        asking = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"asks-{name}"}
        self._asking = Consumer({**asking, "log_level": 0})
        self._running = ExitStack()
        self._running.callback(self._asking.close)
        self.start()

    def start(self) -> None:
        """A host, which waits while the sink has the log; the one before has ended."""
        paths = {"PYTHONPATH": str(ROOT)}
        self.host = self._running.enter_context(
            Child(served.__name__, self._arguments, environment=paths)
        )

    def kill_host(self) -> bool:
        """Whether it had got so far as to have a worker."""
        if not self._workers():
            return False
        self.host.kill()
        self.host.wait()
        self.start()
        return True

    def kill_worker(self) -> bool:
        """Its host starts another. Whether there was one, and Kafka had more than was noted."""
        workers = self._workers()
        if not workers or self._end_in_kafka() <= self._end_noted():
            return False
        for worker in workers:
            worker.kill()
        return True

    def _end_noted(self) -> float:
        """What the worker has stored of how far Kafka is."""
        try:
            with reach(self.stream.log) as log:
                return sum(mirror.next_kafka_offset for mirror in log.mirrors(self.stream.topic))
        except DuologError:  # the host is not there yet
            return math.inf

    def _end_in_kafka(self) -> int:
        places = [TopicPartition(self.stream.topic, number) for number in range(PARTITIONS)]
        try:
            edges = [self._asking.get_watermark_offsets(place, timeout=1) for place in places]
        except KafkaException:  # the topic or the broker is not there yet
            return 0
        return sum(end for _, end in edges)

    def _workers(self) -> list[psutil.Process]:
        return [
            child
            for child in psutil.Process(self.host.pid).children()
            if served.__name__ in child.cmdline()
        ]

    def wrong_in_kafka(self, batches: int) -> list[str]:
        """Wait until all is mirrored; in what the topic is not the source."""
        topic, servers = self.stream.topic, self._broker.bootstrap_servers
        assert self.host.said() == "started"
        with reach(self.stream.log) as log:
            head = sum(offsets.next_offset for offsets in log.offsets(topic))

            def reached() -> bool:
                return sum(mirror.next_log_offset for mirror in log.mirrors(topic)) >= head

            until(reached, "mirror all", _PATIENCE_SECONDS)
        records = (
            (partition, read.key, read.value)
            for partition in range(PARTITIONS)
            for read in read_all(servers, topic, partition)
        )
        wrong = differences(topic, told_by(records), batches)
        return wrong or audit_says(self.stream.log, topic, servers)

    def close(self) -> None:
        self._running.close()


class Killer:
    """Kills each of them once in the life of a Spark driver, and this one in the end.

    In any order, at random places of Spark's.
    """

    def __init__(self, chains: Sequence[Chain], broker: LocalKafka, chance: random.Random) -> None:
        self.killed: set[str] = set()
        self._broker = broker
        self._chance = chance
        self._kills = [
            self._kill_broker,
            *(kill for chain in chains for kill in (chain.kill_worker, chain.kill_host)),
        ]

    def in_one_life(self) -> Callable[[Report], str]:
        """What a new driver's processes are answered."""
        coming = self._chance.sample(self._kills, len(self._kills))
        left = self._chance.randint(1, _MOST_REPORTS)

        def decide(report: Report) -> str:
            nonlocal left
            left -= 1
            if left > 0 or report.place == "ended":
                return GO
            if not coming:
                self.killed.add("driver")
                return KILL
            for kill in coming:
                if kill():
                    coming.remove(kill)
                    self.killed.add(kill.__name__)
                    left = self._chance.randint(1, _MOST_REPORTS)
                    break
            return GO

        return decide

    @property
    def has_killed_all(self) -> bool:
        return self.killed == {"driver", *(kill.__name__ for kill in self._kills)}

    def _kill_broker(self) -> bool:
        self._broker.kill()
        self._broker.start()
        return True


def killed_all_over(
    folder: Path,
    broker: LocalKafka,
    chance: random.Random,
    *,
    drivers: int,
    mutants: Sequence[str | None],
) -> list[list[str]]:
    """What is wrong with each chain, after so many lives of Spark with kills in each."""
    with ExitStack() as ending:
        chains = [Chain(folder, broker, mutant) for mutant in mutants]
        for chain in chains:
            ending.callback(chain.close)
        streams = [chain.stream for chain in chains]
        killer, lives = Killer(chains, broker, chance), 0
        while lives < drivers or not killer.has_killed_all:
            assert lives < drivers + _MORE_DRIVERS, killer.killed
            lives += 1
            add_files(folder / "files", _BATCHES * lives)
            with Driver(folder / f"driver{lives}") as driver:
                driver.run(streams, killer.in_one_life())
        last, ends = lives, dict[str, str | None](all="not yet")
        while any(ends.values()):  # a query may end with an error where its host was killed
            assert last < lives + _MORE_DRIVERS, ends
            last += 1
            with Driver(folder / f"driver{last}") as driver:
                ends = driver.run(streams)
        return [chain.wrong_in_kafka(_BATCHES * lives) for chain in chains]


@pytest.mark.timeout(900)
def test_kills_lose_and_double_nothing_but_for_the_mutant(
    tmp_path: Path, broker: LocalKafka, chance: random.Random
) -> None:
    mutants = [None, "without_a_producer"]
    product, mutant = killed_all_over(tmp_path, broker, chance, drivers=1, mutants=mutants)
    assert product == []
    assert any("events, not" in each for each in mutant)


@pytest.mark.full
@pytest.mark.timeout(4 * 3600)
def test_many_kills_lose_and_double_nothing(
    tmp_path: Path, broker: LocalKafka, chance: random.Random
) -> None:
    (product,) = killed_all_over(tmp_path, broker, chance, drivers=20, mutants=[None])
    assert product == []
