"""What a record costs the host when many come in one request, and where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench.children import child
from bench.figures import Figure, Report, at_least
from bench.orders import RECORD_BYTES
from bench.rounds import figure, settle_disk
from bench.scratch import Scratch
from bench.serve_host import served
from bench.serve_line import request_body
from bench.serve_publishers import PublishedFlatOut, message, publish_flat_out
from duolog.bridge.http.messages import records_of
from duolog.bridge.http.models import PublishRequest
from duolog.bridge.http.parsing import parsed_small
from duolog.bridge.http.rules import BodyLimits
from duolog.bridge.http.topics import published_answer
from duolog.log import open_log

_TOPIC = "published"


@dataclass(frozen=True, slots=True)
class ServeBulkBenchmark:
    """Publishers are connections of one process; each sends again when it was answered."""

    name: ClassVar[str] = "serve-bulk"
    by_itself: ClassVar[bool] = False

    publishers: int = 8
    records: int = 100
    seconds: float = 4.0
    rounds: int = 3
    calls: int = 1000

    @property
    def disk_bytes(self) -> int:
        return 1 << 30

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("serve") as folder:
            with open_log(folder / "log") as log:
                log.create_topic(_TOPIC)
            rounds = self._published(folder / "log")
            stages = list(self._stages(folder / "stages"))
        a_core = [each.records / each.host_seconds for each in rounds]
        figures = [
            figure("published", "/s", [each.records / self.seconds for each in rounds]),
            figure("published, for a core of the host", "/s", a_core, target=at_least(60_000)),
            *stages,
        ]
        return Report(
            self.name,
            f"{self.publishers} connections, {self.records} records of {RECORD_BYTES} B a JSON "
            "request, durable when answered, the next one sent at once. For a core: by the "
            "processor time that the host took in all. Its steps: in one thread, without HTTP.",
            "",
            tuple(figures),
        )

    def _published(self, log: Path) -> list[_Round]:
        with (
            served(log) as host,
            child(
                publish_flat_out, host.port, _TOPIC, self.publishers, self.records, self.seconds
            ) as publishers,
        ):
            publishers.hear()

            def publish() -> _Round:
                settle_disk()
                before = host.cpu_seconds()
                publishers.tell("go")
                published: PublishedFlatOut = publishers.hear()
                return _Round(published.requests * self.records, host.cpu_seconds() - before)

            publish()  # a round that warms up
            return [publish() for _ in range(self.rounds)]

    def _stages(self, folder: Path) -> Iterator[Figure]:
        body = request_body({"topic": _TOPIC, "messages": [message(0)] * self.records})
        limits = BodyLimits()

        def parse() -> Any:
            return parsed_small(PublishRequest, body, limits)

        asked = parse()
        records = records_of(asked.messages)
        with open_log(folder) as log:
            topic = log.create_topic(_TOPIC)
            placed = log.publish(topic.id, records)
            steps: dict[str, Callable[[], object]] = {
                "parsed and checked": parse,
                "made into records": lambda: records_of(asked.messages),
                "published in the log": lambda: log.publish(topic.id, records),
                "answered": lambda: published_answer(placed),
            }
            samples = {
                name: [self._cost(step) for _ in range(self.rounds)] for name, step in steps.items()
            }
        for name, costs in samples.items():
            yield figure(f"a record: {name}", "µs", costs)

    def _cost(self, step: Callable[[], object]) -> float:
        """The processor time of a record, in millionths of a second."""
        began = time.process_time()
        for _ in range(self.calls):
            step()
        return (time.process_time() - began) / (self.calls * self.records) * 1e6


@dataclass(frozen=True, slots=True)
class _Round:
    records: int
    host_seconds: float
