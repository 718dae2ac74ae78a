"""How soon, and how many, single records are durable when many publish at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from bench.append import WRITER
from bench.figures import Figure, Report, Target, at_least, at_most
from bench.orders import RECORD_BYTES, stage
from bench.raw import commit_groups, raw_database
from bench.rounds import figure, percentile, settle_disk, take_turns
from bench.scratch import Scratch
from duolog.log import EmbeddedLog, open_log
from duolog.log.model import Record, TopicSettings


def _record(publisher: int) -> Record:
    key = b"publisher-%02d" % publisher
    return Record(b"v" * (RECORD_BYTES - len(key)), key=key)


@dataclass(frozen=True, slots=True)
class PublishBenchmark:
    """Publishers are threads of one process; each waits for its record before it sends the next."""

    name: ClassVar[str] = "publish"
    by_itself: ClassVar[bool] = False

    publishers: int = 24
    paced_per_second: int = 1000
    seconds: float = 4.0
    rounds: int = 3
    beside_records: int = 5_000_000

    @property
    def disk_bytes(self) -> int:
        return 3 * self.beside_records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("publish") as folder, open_log(folder / "log") as log:
            log.create_topic("one")
            log.create_topic("four", TopicSettings(partitions=4))
            figures = [
                *self._paced_figures(log, "one", "1 partition"),
                *self._paced_figures(log, "four", "4 partitions"),
            ]
        with scratch.folder("publish") as folder:
            for records, shown in ((1, "one record a call"), (10, "ten a call")):
                figures += self._flat_out_figures(Scratch(folder), records, shown)
            figures += self._beside_append(Scratch(folder))
        return Report(
            self.name,
            f"{self.publishers} threads of one process, records of {RECORD_BYTES} B, durable when "
            "publish returns.",
            "raw rocksdict, one thread: write and flush_wal(True) of groups of the same size.",
            tuple(figures),
        )

    def _paced_figures(self, log: EmbeddedLog, topic: str, shown: str) -> Iterator[Figure]:
        rounds = []
        for _ in range(self.rounds):
            settle_disk()
            with self._publishers(log, topic) as latencies:
                time.sleep(self.seconds)
            rounds.append(latencies)
        for share, target in ((0.5, None), (0.99, at_most(1)), (0.999, None)):
            yield _latency(f"{self.paced_per_second:,}/s, {shown}", rounds, share, target)

    def _beside_append(self, scratch: Scratch) -> Iterator[Figure]:
        rounds = []
        with scratch.folder("log") as folder, open_log(folder) as log:
            log.create_topic("one")
            parts = stage(log.create_topic("large"), self.beside_records, folder / "parts")
            for epoch in range(self.rounds):
                settle_disk()
                with self._publishers(log, "one") as latencies:
                    log.append(WRITER, epoch, parts)
                rounds.append(latencies)
        megabytes = self.beside_records * RECORD_BYTES // 1_000_000
        for share, target in ((0.5, None), (0.99, at_most(5))):
            yield _latency(f"with a {megabytes} MB epoch beside", rounds, share, target)

    @contextmanager
    def _publishers(self, log: EmbeddedLog, topic: str) -> Iterator[list[float]]:
        """Publish at the given pace meanwhile, and collect everybody's latencies.

        A publish that begins late because the one before took too long counts from when it was
        due, so that a pause shows in all that it held up.
        """
        latencies: list[float] = []
        stopped = threading.Event()
        period = self.publishers / self.paced_per_second
        begin = time.perf_counter()

        def publish(number: int) -> None:
            record = _record(number)
            due = begin + period * number / self.publishers
            while not stopped.is_set():
                wait = due - time.perf_counter()
                if wait > 0:
                    time.sleep(wait)
                began = time.perf_counter() if wait > 0 else due
                log.publish(topic, record)
                latencies.append(time.perf_counter() - began)
                due += period

        with _running(publish, self.publishers):
            try:
                yield latencies
            finally:
                stopped.set()

    def _flat_out_figures(self, scratch: Scratch, records: int, shown: str) -> Iterator[Figure]:
        group_sizes: list[float] = []

        def publish() -> float:
            with scratch.folder("log") as folder, open_log(folder) as log:
                log.create_topic("one")
                per_second, group_size = self._flat_out(log, records)
                group_sizes.append(group_size)
                return per_second

        def write_raw() -> float:
            group = [_record(0)] * round(group_sizes[-1])
            with scratch.folder("raw") as folder, raw_database(folder / "db") as database:
                return commit_groups(database, group, self.seconds / 2)

        publish()  # so that the reference knows the size of a group
        samples = take_turns(self.rounds, {"log": publish, "raw": write_raw})
        target = at_least(20_000) if records == 1 else None
        yield figure(f"flat out, {shown}", "/s", samples["log"], samples["raw"], target)
        yield figure(f"records in a sync, {shown}", "", group_sizes)

    def _flat_out(self, log: EmbeddedLog, records: int) -> tuple[float, float]:
        """Records a second, and records a sync."""
        counts = [0] * self.publishers
        syncs = log.stats().syncs
        began = time.perf_counter()

        def publish(number: int) -> None:
            together = [_record(number)] * records
            while time.perf_counter() - began < self.seconds / 2:
                log.publish("one", together)
                counts[number] += records

        with _running(publish, self.publishers):
            pass
        seconds = time.perf_counter() - began
        return sum(counts) / seconds, sum(counts) / (log.stats().syncs - syncs)


def _latency(
    shown: str, rounds: Sequence[Sequence[float]], share: float, target: Target | None
) -> Figure:
    values = [percentile(latencies, share) * 1000 for latencies in rounds]
    return figure(f"{shown}, p{share * 100:g}", "ms", values, target=target)


@contextmanager
def _running(work: Callable[[int], None], threads: int) -> Iterator[None]:
    """Run `work(number)` in so many threads, and wait for them."""
    started = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    try:
        yield
    finally:
        for thread in started:
            thread.join()
