"""Thousands of groups in Kafka: how long until the log knows them, and what they cost when idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import psutil

from bench.figures import Figure, Report, at_most
from bench.mirror_arrivals import arrival
from bench.mirror_processes import Writing, worker
from bench.mirror_records import fill_log
from bench.orders import RECORD_BYTES
from bench.scratch import Scratch
from bench.serve_host import ServedHost, served
from bench.spark_session import broker

_TOPIC = "watched"
_RECORDS = 400
_COMMITTED = 1
_LOOK_EVERY_SECONDS = 0.2
_PATIENCE_SECONDS = 600
_QUIET_SHARE, _QUIET_TIMES = 0.05, 3  # of a core, so many seconds one after the other


class NotKnown(Exception):
    """The log did not get to know all groups."""


@dataclass(frozen=True, slots=True)
class MirrorGroupsBenchmark:
    """A host, its Kafka worker and a broker with groups that have committed once."""

    name: ClassVar[str] = "mirror-groups"
    by_itself: ClassVar[bool] = True

    groups: int = 10_000
    idle_seconds: float = 30.0

    @property
    def disk_bytes(self) -> int:
        return 100 << 20

    def run(self, scratch: Scratch) -> Report:
        from duolog.reach import reach

        with scratch.folder("groups") as folder, broker(folder) as kafka:
            fill_log(folder, _TOPIC, _RECORDS, RECORD_BYTES)
            log_folder = folder / "log"
            with served(log_folder) as host:
                with worker(log_folder, kafka, "none") as writing:
                    arrival(kafka, _TOPIC, _RECORDS, writing)
                self._commit(kafka)
                with reach(log_folder) as log:

                    def known() -> int:
                        return sum(each.position == _COMMITTED for each in log.group_positions())

                    with worker(log_folder, kafka, "none") as writing:
                        first_seconds = self._until_known(known, writing)
                with worker(log_folder, kafka, "none") as writing:
                    again_seconds = _until_quiet(writing, host)
                    of_worker, of_host = self._idle(writing, host)
                    rss_bytes = writing.rss_bytes()
        return Report(
            self.name,
            f"{self.groups:,} groups that have each committed once on a mirrored topic. Known: "
            "from the worker's start until the log has all positions. Known already: from its "
            "start until it has looked at all of them. Idle: over "
            f"{self.idle_seconds:g} s after that.",
            "none: what it takes by itself.",
            (
                Figure("until all are known", first_seconds, "s"),
                Figure("known already", again_seconds, "s"),
                Figure("idle, worker", of_worker, "% of a core", target=at_most(1)),
                Figure("idle, host", of_host, "% of a core"),
                Figure("worker's memory", rss_bytes / (1 << 20), "MiB"),
            ),
        )

    def _commit(self, kafka: str) -> None:
        """As many consumers would that come one after the other."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": kafka})
        place = TopicPartition(_TOPIC, 0, _COMMITTED)
        for number in range(self.groups):
            asked = [ConsumerGroupTopicPartitions(f"group-{number:06}", [place])]
            for future in admin.alter_consumer_group_offsets(asked).values():
                future.result()

    def _until_known(self, known: Callable[[], int], writing: Writing) -> float:
        began = time.perf_counter()
        while (count := known()) < self.groups:
            writing.check()
            if time.perf_counter() > began + _PATIENCE_SECONDS:
                raise NotKnown(f"The log knows {count:,} of {self.groups:,} groups.")
            time.sleep(_LOOK_EVERY_SECONDS)
        return time.perf_counter() - began

    def _idle(self, writing: Writing, host: ServedHost) -> tuple[float, float]:
        before = _cpu_seconds(writing), host.cpu_seconds()
        began = time.perf_counter()
        time.sleep(self.idle_seconds)
        took = time.perf_counter() - began
        return (
            100 * (_cpu_seconds(writing) - before[0]) / took,
            100 * (host.cpu_seconds() - before[1]) / took,
        )


def _until_quiet(writing: Writing, host: ServedHost) -> float:
    """Seconds from now until the worker has come to rest, and the host that it asks."""

    def used() -> float:
        return _cpu_seconds(writing) + host.cpu_seconds()

    began = time.perf_counter()
    quiet_since, quiet = began, 0
    while quiet < _QUIET_TIMES:
        writing.check()
        at, before = time.perf_counter(), used()
        time.sleep(1.0)
        share = (used() - before) / (time.perf_counter() - at)
        if share > _QUIET_SHARE:
            quiet = 0
        elif quiet == 0:
            quiet_since, quiet = at, 1
        else:
            quiet += 1
        if at > began + _PATIENCE_SECONDS:
            raise NotKnown("The worker does not come to rest.")
    return quiet_since - began


def _cpu_seconds(writing: Writing) -> float:
    times = psutil.Process(writing.process.pid).cpu_times()
    return float(times.user + times.system)
