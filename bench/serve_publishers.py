"""In a child: many publishers over HTTP, each waiting for its answer before it sends the next."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench.orders import RECORD_BYTES
from bench.serve_line import Lines, request_of


@dataclass(frozen=True, slots=True)
class Published:
    """How long each publish took, and how much of a core the publishers took themselves."""

    latencies: list[float]
    own_share: float


def publish_paced(
    pipe: Connection, port: int, topic: str, publishers: int, per_second: float, seconds: float
) -> None:
    """For each word heard, publish at a pace for so many seconds, and say what came of it."""
    requests = [
        request_of("publish", {"topic": topic, "messages": [message(number)]})
        for number in range(publishers)
    ]
    with Lines(port, publishers) as lines:
        pipe.send("connected")
        try:
            while pipe.recv():
                began = time.process_time()
                latencies = _paced(lines, requests, publishers / per_second, seconds)
                share = (time.process_time() - began) / seconds
                pipe.send(Published(latencies, share))
        except EOFError:  # nobody asks any more
            pass


@dataclass(frozen=True, slots=True)
class PublishedFlatOut:
    """How many requests were answered."""

    requests: int


def publish_flat_out(
    pipe: Connection, port: int, topic: str, publishers: int, records: int, seconds: float
) -> None:
    """For each word heard, publish so many records a request for so many seconds, each connection
    as soon as it was answered; then say how many requests that were.
    """
    requests = [
        request_of("publish", {"topic": topic, "messages": [message(number)] * records})
        for number in range(publishers)
    ]
    with Lines(port, publishers) as lines:
        pipe.send("connected")
        try:
            while pipe.recv():
                pipe.send(PublishedFlatOut(_flat_out(lines, requests, seconds)))
        except EOFError:  # nobody asks any more
            pass


def _flat_out(lines: Lines, requests: list[bytes], seconds: float) -> int:
    end = time.perf_counter() + seconds
    answered, under_way = 0, 0
    for nth, request in enumerate(requests):
        lines[nth].ask(request)
        under_way += 1
    while under_way:
        for nth in lines.answered(1):
            answered += 1
            if time.perf_counter() < end:
                lines[nth].ask(requests[nth])
            else:
                under_way -= 1
    return answered


def message(publisher: int) -> dict[str, str]:
    """A message of the size that all benchmarks have."""
    key = f"publisher-{publisher:02}"
    return {"key": key, "value": "v" * (RECORD_BYTES - len(key))}


def _paced(lines: Lines, requests: list[bytes], period: float, seconds: float) -> list[float]:
    """A publish counts from when it was due, so that a pause shows in all that it held up."""
    begin = time.perf_counter()
    end = begin + seconds
    due = [(begin + period * nth / len(lines), nth) for nth in range(len(lines))]
    asked: dict[int, float] = {}
    latencies: list[float] = []
    while due or asked:
        now = time.perf_counter()
        while due and due[0][0] <= now:
            at, nth = heapq.heappop(due)
            lines[nth].ask(requests[nth])
            asked[nth] = at
        for nth in lines.answered(due[0][0] - now if due else 1):
            at = asked.pop(nth)
            latencies.append(time.perf_counter() - at)
            if at + period < end:
                heapq.heappush(due, (at + period, nth))
    return latencies
