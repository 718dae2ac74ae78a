"""Reading a log in order and at random, as the benchmarks do it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from duolog.log import EmbeddedLog
from duolog.log.access import DEFAULT_FETCH_RECORDS


@dataclass(frozen=True, slots=True)
class ReadThrough:
    """One read from start to end."""

    seconds: float
    records: int
    arrow_bytes: int


def read_in_order(
    log: EmbeddedLog, topic: str, start: int = 0, records: int | None = None
) -> ReadThrough:
    """Fetch partition 0 to its end, or so many records of it. Only the fetches are timed."""
    seconds, arrow_bytes = 0.0, 0
    at = start
    end = log.offsets(topic)[0].next_offset if records is None else start + records
    while at < end:
        began = time.perf_counter()
        fetched = log.fetch(topic, 0, at, max_records=min(end - at, DEFAULT_FETCH_RECORDS))
        seconds += time.perf_counter() - began
        arrow_bytes += sum(batch.records.nbytes for batch in fetched.batches)
        at = fetched.next_offset
    return ReadThrough(seconds, at - start, arrow_bytes)


def read_points(logs: Sequence[EmbeddedLog], topic: str, fetches: int, seed: int) -> list[float]:
    """Seconds of each of so many fetches of one record anywhere in partition 0 of these logs."""
    chosen = random.Random(seed)
    ends = [log.offsets(topic)[0].next_offset for log in logs]
    latencies = []
    for _ in range(fetches):
        number = chosen.randrange(len(logs))
        at = chosen.randrange(ends[number])
        began = time.perf_counter()
        logs[number].fetch(topic, 0, at, max_records=1)
        latencies.append(time.perf_counter() - began)
    return latencies
