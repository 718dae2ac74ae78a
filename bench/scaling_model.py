"""How far many logs go, by simulation from what one was measured at. Pure: no clock, no files.

Three things are simulated: single records that share syncs, the same through the host's one
processor, and triggers of a job whose topics lie in several logs.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

Figures = Mapping[tuple[str, str], float]
"""By benchmark and name, what was measured, in its unit."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one log takes, in seconds."""

    sync: float  # one round of the committer, whatever is in it
    call: float  # more for each call that shares the round
    http_request: float  # of the host's processor
    committed_record: float  # of an epoch
    mirrored_record: float
    spark_record: float  # of two cores, from rows to an epoch

    @classmethod
    def of(cls, figures: Figures) -> Self:
        """From the figures of one machine."""
        publishes = "publish", "flat out, one record a call"
        shared = figures["publish", "records in a sync, one record a call"]
        alone = figures["publish", "1,000/s, 1 partition, p50"] / 1e3
        call = (shared / figures[publishes] - alone) / (shared - 1)
        return cls(
            sync=alone - call,
            call=call,
            http_request=figures["serve-publish", "1,000/s, host"] / 100 / 1000,
            committed_record=figures["flat", "append, a record"] / 1e6,
            mirrored_record=1 / figures["mirror", "100 B, uncompressed"],
            spark_record=1 / figures["spark-sink", "strings, write_batch"],
        )


def waits(
    costs: Costs, per_second: float, *, over_http: bool, records: int = 5_000, seed: int = 1
) -> tuple[float, float] | None:
    """p50 and p99 of a publish of one record, in seconds; None where one log cannot keep up."""
    busiest = max(costs.call, costs.http_request if over_http else 0.0)
    if per_second * busiest > 0.9:
        return None
    random = np.random.default_rng(seed)
    sent = np.cumsum(random.exponential(1 / per_second, records))
    arrived = _through_one_processor(sent, costs.http_request) if over_http else sent
    return _percentiles(_answered(arrived, costs) - sent)


def _through_one_processor(sent: np.ndarray, each: float) -> np.ndarray:
    at = np.empty_like(sent)
    free = 0.0
    for number, moment in enumerate(sent):  # each depends on the one before
        free = max(free, moment) + each
        at[number] = free
    return at


def _answered(arrived: np.ndarray, costs: Costs) -> np.ndarray:
    """When each is durable: the committer takes all that wait, and makes one sync."""
    answered = np.empty_like(arrived)
    taken, free = 0, 0.0
    while taken < len(arrived):
        begins = max(free, arrived[taken])
        until = int(np.searchsorted(arrived, begins, side="right"))
        free = begins + costs.sync + costs.call * (until - taken)
        answered[taken:until] = free
        taken = until
    return answered


def _percentiles(seconds: np.ndarray) -> tuple[float, float]:
    middle, high = np.percentile(seconds, [50, 99])
    return float(middle), float(high)


@dataclass(frozen=True, slots=True)
class Sustained:
    """The most that a number of logs keeps up with."""

    records_per_second: float
    largest_share: float  # of the log that has most
    spark_cores: float


def sustained(
    costs: Costs,
    logs: int,
    *,
    topics: int = 64,
    skew: float = 0.0,
    behind_seconds: float = 5.0,
    triggers: int = 300,
    seed: int = 1,
) -> Sustained:
    """The highest rate at which no mirror is more than `behind_seconds` behind (p99 of triggers).

    A topic's size is its rank to the power of `-skew`; a topic lies in one log, dealt out so that
    the fullest log has as little as can be; each second every topic brings more or less than that.
    """
    random = np.random.default_rng(seed)
    sizes = np.arange(1, topics + 1, dtype=float) ** -skew
    sizes /= sizes.sum()
    noise = random.lognormal(mean=-0.125, sigma=0.5, size=(triggers, topics))  # 1 on average
    by_log = np.zeros((triggers, logs))
    for topic, log in enumerate(_dealt(sizes, logs)):
        by_log[:, log] += sizes[topic] * noise[:, topic]
    lowest, highest = 0.0, logs / costs.mirrored_record
    for _ in range(30):
        rate = (lowest + highest) / 2
        if _keeps_up(by_log * rate, costs, behind_seconds):
            lowest = rate
        else:
            highest = rate
    return Sustained(lowest, float(by_log.mean(axis=0).max()), 2 * lowest * costs.spark_record)


def _dealt(sizes: np.ndarray, logs: int) -> list[int]:
    """Which log each topic goes to: the largest ones first, to the log that has least."""
    filled = [(0.0, log) for log in range(logs)]
    dealt = []
    for size in sizes:
        least, log = heapq.heappop(filled)
        heapq.heappush(filled, (least + size, log))
        dealt.append(log)
    return dealt


def _keeps_up(arriving: np.ndarray, costs: Costs, behind_seconds: float) -> bool:
    """Whether each log commits a trigger within its second, and the mirrors follow."""
    if np.percentile(arriving * costs.committed_record, 99) > 1:
        return False
    behind = np.zeros(arriving.shape[1])
    late = np.empty(len(arriving))
    for second, records in enumerate(arriving):
        behind = np.maximum(behind + records * costs.mirrored_record - 1, 0)
        late[second] = behind.max()
    return bool(np.percentile(late, 99) <= behind_seconds)
