"""How much the worker's events matter, and how seldom it repeats what it waits for."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from duolog.bridge.journal import Journal, Level
from duolog.bridge.kafka.events import Events, Waiting, after, pause_seconds
from duolog.bridge.kafka.worker import WorkerSettings
from duolog.clock import SystemClock
from duolog.errors import InvalidSetting

AWAY = {"code": "KafkaUnreachable", "error": "It is away."}
PAUSES = [(1, 1), (2, 2), (3, 4), (4, 8), (8, 128), (9, 256), (10, 300), (11, 300), (10_000, 300)]


@pytest.mark.parametrize(("lines", "seconds"), PAUSES)
def test_pauses_between_lines_double_up_to_five_minutes(lines: int, seconds: float) -> None:
    assert pause_seconds(lines) == seconds


NOW = 1000.0
STEPS = [
    ("the first time", None, Waiting(NOW, NOW, 1, 0), True),
    ("too soon", Waiting(999.9, 999.5, 1, 3), Waiting(NOW, 999.5, 1, 4), False),
    ("after its pause", Waiting(999.9, 999.0, 1, 3), Waiting(NOW, NOW, 2, 0), True),
    ("the next pause is longer", Waiting(999.9, 998.5, 2, 0), Waiting(NOW, 998.5, 2, 1), False),
    ("the longest pause", Waiting(999.9, 700.0, 40, 9), Waiting(NOW, NOW, 41, 0), True),
    ("it was over", Waiting(969.0, 960.0, 9, 5), Waiting(NOW, NOW, 1, 0), True),
]


@pytest.mark.parametrize(("before", "then", "is_said"), [each[1:] for each in STEPS])
def test_when_it_is_said_again(before: Waiting | None, then: Waiting, is_said: bool) -> None:
    assert after(before, NOW) == (then, is_said)


class Days(SystemClock):
    """A clock on which days pass at once."""

    passed = 0.0

    def monotonic(self) -> float:
        return self.passed


class Told:
    def __init__(self) -> None:
        self.clock, self._out = Days(), io.StringIO()
        self.say = Events(Journal(self._out, as_json=True, clock=self.clock), self.clock)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.getvalue().splitlines()]


def test_a_day_without_kafka_is_three_hundred_lines_however_many_partitions_wait() -> None:
    told = Told()
    for _ in range(24 * 3600 // 2):
        told.clock.passed += 2
        for partition in range(5):
            told.say("mirror.waits", topic="orders", partition=partition, **AWAY)
    lines = told.lines
    assert len(lines) == pytest.approx(24 * 12, abs=12)
    assert {line["level"] for line in lines} == {"warning"}
    assert "not_said_before" not in lines[0]
    assert sum(line.get("not_said_before", 0) for line in lines) > 24 * 3600 // 2 * 4


def test_once_kafka_answers_the_next_time_is_told_at_once() -> None:
    told = Told()
    for event in ("mirror.begins", "mirror.goes_on", "groups.go_on"):
        told.say("mirror.waits", **AWAY)
        told.say("mirror.waits", **AWAY)
        told.say(event)
    assert [line["event"] for line in told.lines] == [
        *("mirror.waits", "mirror.begins"),
        *("mirror.waits", "mirror.goes_on"),
        *("mirror.waits", "groups.go_on"),
    ]


def test_what_one_partition_waits_for_hides_no_other() -> None:
    told = Told()
    for partition in (0, 1, 0, 1):
        told.say("mirror.waits", topic="a", partition=partition, code="KafkaRefused", error="No.")
    told.say("mirror.goes_on", topic="a", partition=1)
    told.say("mirror.waits", topic="a", partition=1, code="KafkaRefused", error="No.")
    told.say("mirror.waits", topic="a", partition=0, code="KafkaRefused", error="No.")
    waits = [line["partition"] for line in told.lines if line["event"] == "mirror.waits"]
    assert waits == [0, 1, 1]


def test_what_only_people_can_end_is_an_error_and_is_never_left_out() -> None:
    told = Told()
    for _ in range(3):
        told.say("mirror.halted", topic="a", partition=0, code="KafkaTopicMissing", error="Gone.")
    told.say("mirror.topic_made", topic="a")
    assert [line["level"] for line in told.lines] == ["error"] * 3 + ["info"]


def test_the_worker_takes_how_much_it_says_and_in_which_form() -> None:
    given = {"folder": "log", "bootstrap_servers": "127.0.0.1:1"}
    plain = WorkerSettings.of(given)
    assert (plain.log_level, plain.log_json) == (Level.INFO, False)
    settings = WorkerSettings.of({**given, "log_level": "error", "log_json": True})
    assert (settings.log_level, settings.log_json) == (Level.ERROR, True)
    with pytest.raises(InvalidSetting, match="log_level"):
        WorkerSettings.of({**given, "log_level": "loud"})
