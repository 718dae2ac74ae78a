"""Consumers over HTTP while retention, CLEAR and DROP run: nobody hears of damage."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duolog.log.model import Record, Retention, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served
from tests.support.clock import ManualClock

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
READERS: dict[str, Callable[[ServedLog], Reply]] = {
    "group": lambda host: host.consume(topic="t", group_id="g", start="Earliest", limit=50),
    "earliest": lambda host: host.consume(topic="t", start="Earliest", limit=50),
    "time": lambda host: host.consume(topic="t", start={"Timestamp": 0}, limit=50),
    "offset": lambda host: host.consume(topic="t", start={"Offset": 3}, limit=50),
    "arrow": lambda host: host.ask(
        "/v1/api/topics/consume",
        {"topic": "t", "start": "Earliest", "limit": 2000, "timeout_seconds": 0},
        headers=ARROW,
    ),
    "offsets": lambda host: host.ask("/v1/api/topics/latest-offsets", {"topic": "t"}),
    "select": lambda host: host.ask("/v1/api/sql", {"sql": "SELECT count(*) FROM t"}),
}
GONE = {416, 404}


def make(host: ServedLog) -> None:
    host.log.create_topic("t", TopicSettings(retention=Retention(max_bytes=2000)))
    fill(host)


def fill(host: ServedLog) -> None:
    for n in range(20):
        host.log.publish("t", [Record(b'{"n": %d}' % n)] * 5)


@pytest.mark.parametrize("removal", ["retention", "clear", "drop"])
def test_no_consumer_hears_of_damage(tmp_path: Path, removal: str) -> None:
    clock = ManualClock()
    with served(tmp_path / "log", clock=clock) as host:
        make(host)
        ended = threading.Event()
        seen: dict[str, Counter[Any]] = {name: Counter() for name in READERS}
        wrong: list[str] = []

        def read_on(name: str) -> None:
            while not ended.is_set():
                reply = READERS[name](host)
                seen[name][reply.status] += 1
                if reply.status not in {200} | GONE:
                    wrong.append(f"{name}: {reply.body.decode()}")
                    return

        def all_have_read(times: int) -> bool:
            return bool(wrong) or all(sum(seen[name].values()) >= times for name in READERS)

        threads = [threading.Thread(target=read_on, args=(name,)) for name in READERS]
        for thread in threads:
            thread.start()
        try:
            deadline = time.monotonic() + DEADLINE_SECONDS
            rounds = 0
            while not wrong and (rounds < 30 or not all_have_read(20)):
                assert time.monotonic() < deadline
                rounds += 1
                if removal == "retention":
                    host.log.enforce_retention("t")
                elif removal == "clear":
                    host.log.clear_topic("t")
                else:
                    host.log.drop_topic("t")
                    make(host)
                    continue
                fill(host)
        finally:
            ended.set()
            for thread in threads:
                thread.join(DEADLINE_SECONDS)
        assert not wrong, wrong
        assert all_have_read(20)
        if removal != "drop":
            for name in READERS.keys() - {"offset"}:
                assert set(seen[name]) == {200}, (name, seen[name])
