"""How soon single records are durable that many publish over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.append import WRITER
from bench.children import child
from bench.figures import Figure, Report, at_most
from bench.orders import RECORD_BYTES, stage
from bench.rounds import figure, percentile, settle_disk
from bench.scratch import Scratch
from bench.serve_host import ServedHost, served
from bench.serve_publishers import Published, publish_paced
from bench.serve_readers import drain
from duolog.log import open_log

_PUBLISHED_TO, _DRAINED = "published", "drained"


@dataclass(frozen=True, slots=True)
class ServePublishBenchmark:
    """Publishers are connections of one process; each waits for its record's place."""

    name: ClassVar[str] = "serve-publish"
    by_itself: ClassVar[bool] = False

    publishers: int = 24
    paced_per_second: int = 1000
    seconds: float = 4.0
    rounds: int = 3
    drained_records: int = 5_000_000
    drained_at_once: int = 100_000

    @property
    def disk_bytes(self) -> int:
        return 3 * self.drained_records * RECORD_BYTES

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("serve") as folder:
            self._fill(folder / "log", folder / "parts")
            with (
                served(folder / "log") as host,
                child(
                    publish_paced,
                    host.port,
                    _PUBLISHED_TO,
                    self.publishers,
                    self.paced_per_second,
                    self.seconds,
                ) as publishers,
            ):
                publishers.hear()

                def publish() -> Published:
                    publishers.tell("go")
                    published: Published = publishers.hear()
                    return published

                figures = [
                    *self._figures(host, publish, "", nullcontext),
                    *self._figures(host, publish, ", log drained beside", self._draining),
                ]
        return Report(
            self.name,
            f"{self.publishers} connections, {self.paced_per_second:,} records of {RECORD_BYTES} B "
            "a second, one a request, durable when answered; counted from when each was due. "
            "Processor time beside it is that of host and publishers. Drained: a process reads "
            f"all of {self.drained_records:,} records as Arrow, over and over.",
            "",
            tuple(figures),
        )

    def _fill(self, log_folder: Path, parts: Path) -> None:
        with open_log(log_folder) as log:
            log.create_topic(_PUBLISHED_TO)
            topic = log.create_topic(_DRAINED)
            log.append(WRITER, 0, stage(topic, self.drained_records, parts))

    def _figures(
        self,
        host: ServedHost,
        publish: Callable[[], Published],
        beside: str,
        load: Callable[[ServedHost], AbstractContextManager[object]],
    ) -> Iterator[Figure]:
        publish()  # a round that warms up
        rounds: list[Published] = []
        shares: list[float] = []
        for _ in range(self.rounds):
            settle_disk()
            with load(host):
                before = host.cpu_seconds()
                rounds.append(publish())
                shares.append((host.cpu_seconds() - before) / self.seconds)
        shown = f"{self.paced_per_second:,}/s{beside}"
        for share, target in ((0.5, None), (0.99, at_most(5)), (0.999, None)):
            values = [percentile(each.latencies, share) * 1000 for each in rounds]
            yield figure(f"{shown}, p{share * 100:g}", "ms", values, target=target)
        yield figure(f"{shown}, host", "% of a core", [100 * share for share in shares])
        own = [100 * each.own_share for each in rounds]
        yield figure(f"{shown}, publishers", "% of a core", own)

    @contextmanager
    def _draining(self, host: ServedHost) -> Iterator[None]:
        """Meanwhile everything is read, and then again."""
        with child(
            drain, host.port, _DRAINED, self.drained_records, self.drained_at_once
        ) as drainer:
            drainer.hear()
            yield
            drainer.tell("stop")
