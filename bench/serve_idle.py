"""What a host takes that has nothing to do but to look after many partitions."""

from __future__ import annotations

import re
import time
import urllib.request
from dataclasses import dataclass
from typing import ClassVar

from bench.figures import Figure, Report, at_most
from bench.scratch import Scratch
from bench.serve_host import ServedHost, served
from duolog.log import open_log
from duolog.log.model import Record, Retention, TopicSettings

_RETENTION = Retention(seconds=7 * 86_400, max_bytes=1 << 30)
_RUNS = re.compile(rb'^duolog_retention_runs_total\{ended="done"\} (\d+)', re.MULTILINE)
_SYNCS = re.compile(rb"^duolog_syncs_total (\d+)", re.MULTILINE)
_SETTLED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ServeIdleBenchmark:
    """A host of many partitions with records and limits, of which nothing is asked."""

    name: ClassVar[str] = "serve-idle"
    by_itself: ClassVar[bool] = False

    topics: int = 500
    partitions: int = 10  # of each
    seconds: float = 65.0  # as long as from one run of retention to the next, and a little more

    disk_bytes: ClassVar[int] = 200 << 20

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("serve") as folder:
            settings = TopicSettings(partitions=self.partitions, retention=_RETENTION)
            with open_log(folder / "log") as log:
                for nth in range(self.topics):
                    name = f"topic-{nth}"
                    log.create_topic(name, settings)
                    log.publish(name, [Record(b"v", partition=n) for n in range(self.partitions)])
            with served(folder / "log") as host:
                time.sleep(min(_SETTLED_SECONDS, self.seconds))
                before_runs, before_syncs = _counted(host, _RUNS), _counted(host, _SYNCS)
                began, before = time.perf_counter(), host.cpu_seconds()
                time.sleep(self.seconds)
                share = (host.cpu_seconds() - before) / (time.perf_counter() - began)
                runs = _counted(host, _RUNS) - before_runs
                syncs = _counted(host, _SYNCS) - before_syncs
        return Report(
            self.name,
            f"`duolog serve` with {self.topics:,} topics of {self.partitions} partitions, each "
            f"with records and a retention that takes none of them, over {self.seconds:g} s "
            "without a request.",
            "",
            (
                Figure("processor", 100 * share, "% of a core", target=at_most(1)),
                Figure("made durable", float(syncs), "syncs", target=at_most(0)),
                Figure("retention meanwhile", float(runs), "runs"),
            ),
        )


def _counted(host: ServedHost, metric: re.Pattern[bytes]) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{host.port}/metrics", timeout=30) as answer:
        found = metric.search(answer.read())
    return 0 if found is None else int(found.group(1))
