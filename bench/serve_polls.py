"""What waiting costs: how soon a poll is answered, what a thousand take, and an idle host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bench.children import child
from bench.figures import Figure, Report, at_most
from bench.rounds import figure, percentile
from bench.scratch import Scratch
from bench.serve_host import ServedHost, served
from bench.serve_waiters import wait_idly, wake
from duolog.log import open_log

_PUBLISHED_TO, _QUIET = "published", "quiet"
_POLL_SECONDS = 30.0  # as long as a poll waits by default
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ServePollsBenchmark:
    """Polls by one process, as the endpoint's own defaults have them."""

    name: ClassVar[str] = "serve-polls"
    by_itself: ClassVar[bool] = False

    wakes: int = 300
    rounds: int = 3
    polls: int = 1000
    seconds: float = 15.0

    disk_bytes: ClassVar[int] = 100 << 20

    def run(self, scratch: Scratch) -> Report:
        with scratch.folder("serve") as folder:
            with open_log(folder / "log") as log:
                log.create_topic(_PUBLISHED_TO)
                log.create_topic(_QUIET)
            with served(folder / "log") as host:
                idle = Figure("idle host", host.rss_bytes() / _MIB, "MiB", target=at_most(150))
                figures = [
                    *self._wake_figures(host),
                    *self._waiting_figures(host),
                    idle,
                ]
        return Report(
            self.name,
            f"A poll answered: from when a publish of one record is sent until a poll that waits "
            f"for it has its answer, {self.wakes} times. Waiting: {self.polls:,} polls of "
            f"{_POLL_SECONDS:g} s each, their ends spread evenly; what the host takes then. Idle: "
            "once it has started.",
            "",
            tuple(figures),
        )

    def _wake_figures(self, host: ServedHost) -> Iterator[Figure]:
        with child(wake, host.port, _PUBLISHED_TO, self.wakes) as waiter:
            waiter.hear()
            rounds: list[list[float]] = []
            for _ in range(self.rounds + 1):
                waiter.tell("go")
                rounds.append(waiter.hear())
        for share, target in ((0.5, None), (0.99, at_most(10))):
            values = [percentile(latencies, share) * 1000 for latencies in rounds[1:]]
            yield figure(f"a poll answered, p{share * 100:g}", "ms", values, target=target)

    def _waiting_figures(self, host: ServedHost) -> Iterator[Figure]:
        with child(wait_idly, host.port, _QUIET, self.polls, _POLL_SECONDS) as waiter:
            waiter.hear()
            time.sleep(1)  # those that came last are looked up
            began, before = time.perf_counter(), host.cpu_seconds()
            time.sleep(self.seconds)
            share = (host.cpu_seconds() - before) / (time.perf_counter() - began)
            rss = host.rss_bytes() / _MIB
            waiter.tell("stop")
        yield Figure(f"{self.polls:,} waiting", 100 * share, "% of a core", target=at_most(5))
        yield Figure(f"{self.polls:,} waiting, memory", rss, "MiB")
