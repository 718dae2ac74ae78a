"""In a child: polls that wait for records."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection

from bench.serve_line import Lines, request_of
from bench.serve_publishers import message

_ANSWERED_WITHIN_SECONDS = 30
_PAUSE_SECONDS = 0.005  # the poll waits by then


def wake(pipe: Connection, port: int, topic: str, times: int) -> None:
    """For each word heard, say how long after a publish was sent a waiting poll was answered."""
    poll = _poll(topic, _ANSWERED_WITHIN_SECONDS)
    publish = request_of("publish", {"topic": topic, "messages": [message(0)]})
    with Lines(port, 2) as lines:
        pipe.send("connected")
        try:
            while pipe.recv():
                pipe.send([_woken(lines, poll, publish) for _ in range(times)])
        except EOFError:  # nobody asks any more
            pass


def _woken(lines: Lines, poll: bytes, publish: bytes) -> float:
    """The first line polls, the second one publishes."""
    lines[0].ask(poll)
    time.sleep(_PAUSE_SECONDS)
    began = time.perf_counter()
    lines[1].ask(publish)
    taken: dict[int, float] = {}
    while len(taken) < 2:
        for nth in lines.answered(_ANSWERED_WITHIN_SECONDS):
            taken[nth] = time.perf_counter() - began
    return taken[0]


def wait_idly(pipe: Connection, port: int, topic: str, polls: int, poll_seconds: float) -> None:
    """Wait for records that never come. A poll begins anew when its time is up; the ends of all
    are spread evenly.
    """
    again = _poll(topic, poll_seconds)
    with Lines(port, polls) as lines:
        for nth in range(polls):
            lines[nth].ask(_poll(topic, poll_seconds * (nth + 1) / polls))
        pipe.send("waiting")
        while not pipe.poll():
            for nth in lines.answered(0.1):
                lines[nth].ask(again)


def _poll(topic: str, seconds: float) -> bytes:
    return request_of("consume", {"topic": topic, "start": "Latest", "timeout_seconds": seconds})
