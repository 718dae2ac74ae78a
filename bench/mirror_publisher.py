"""In a child: records at a pace over HTTP, each with the time at which it was due."""

from __future__ import annotations

import time
from collections import deque
from multiprocessing.connection import Connection

from bench.serve_line import Lines, request_of

_LINES = 16  # publishers, each waiting for its answer
_NS = 1_000_000_000


def publish_stamped(pipe: Connection, port: int, topic: str, per_second: int) -> None:
    """For each number heard, publish so many records, and say when all are durable."""
    with Lines(port, _LINES) as lines:
        pipe.send("connected")
        try:
            while True:
                _paced(lines, topic, per_second, pipe.recv())
                pipe.send("durable")
        except EOFError:  # nobody asks any more
            pass


def _paced(lines: Lines, topic: str, per_second: int, records: int) -> None:
    """A record counts from when it was due, so that a pause shows in all that it held up."""
    period_ns = _NS // per_second
    begin = time.monotonic_ns()
    free = deque(range(len(lines)))
    sent = answered = 0
    while answered < records:
        now = time.monotonic_ns()
        while free and sent < records and begin + sent * period_ns <= now:
            stamped = {"topic": topic, "messages": [{"value": str(begin + sent * period_ns)}]}
            lines[free.popleft()].ask(request_of("publish", stamped))
            sent += 1
        next_due = begin + sent * period_ns if free and sent < records else now + _NS
        for nth in lines.answered((next_due - now) / _NS):
            free.append(nth)
            answered += 1
