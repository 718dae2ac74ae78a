"""What the Kafka worker says of itself: it fits into its line, and its counts do not go down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.kafka.mirror.mirroring import PartitionStatus
from duolog.bridge.kafka.mirror.partition import Phase
from duolog.bridge.kafka.positions.settling import SettlingStatus
from duolog.bridge.kafka.status import MOST_TOPICS, Course, History, summary, summary_of_groups
from duolog.bridge.serve.leash import tell_host
from duolog.errors import KafkaLoginRefused

QUIET = Course(skipped=0, foreign=0, stands_seconds=0.0, has_got_on=True)


def status(
    behind: int = 0,
    reached: int = 10,
    *,
    topic: str = "orders",
    phase: Phase = Phase.MIRRORING,
    skipped: int = 0,
    foreign: int = 0,
    trouble: str | None = None,
) -> PartitionStatus:
    code = None if trouble is None else "KafkaRefused"
    return PartitionStatus(
        topic, 0, topic, phase, behind, reached, reached, skipped, foreign, code, trouble
    )


PAUSED = status(behind=5, phase=Phase.PAUSED)
UNKNOWN = status(behind=90, reached=0, phase=Phase.RECOVERING)


def test_topics_are_told_with_what_is_behind() -> None:
    told = summary("c", [status(3), status(4), status(0, topic="payments")], QUIET)
    assert told["partitions"] == {"mirroring": 3}
    assert told["topics"] == {"orders": 7, "payments": 0}
    assert (told["behind"], told["behind_elsewhere"], told["all_topics"]) == (7, 0, True)


def test_why_it_does_not_find_the_cluster_is_told_first() -> None:
    told = summary("", [status(trouble="later")], QUIET, KafkaLoginRefused("\N{SNOWMAN}" * 9000))
    assert (told["state"], told["troubles"][0]["code"]) == ("connecting", "KafkaLoginRefused")
    assert len(told["troubles"][0]["error"]) <= 400


def test_of_many_topics_those_most_behind_are_told() -> None:
    told = summary("c", [status(n, topic=f"topic-{n}") for n in range(1000)], QUIET)
    assert list(told["topics"]) == [f"topic-{n}" for n in range(999, 999 - MOST_TOPICS, -1)]
    assert told["behind"] == told["behind_elsewhere"] + sum(told["topics"].values()) == 499500
    assert not told["all_topics"]


def test_the_longest_status_fits_into_a_line(tmp_path: Path) -> None:
    partitions = [
        status(n, topic="\N{SNOWMAN}" * 200 + str(n), trouble="\N{SNOWMAN}" * 9000)
        for n in range(1000)
    ]
    refused = {"\N{SNOWMAN}" * 200 + str(n): "\N{SNOWMAN}" * 9000 for n in range(100)}
    groups = SettlingStatus(True, (), refused, "\N{SNOWMAN}" * 9000)
    told: dict[str, Any] = {**summary("c", partitions, QUIET), "groups": summary_of_groups(groups)}
    assert told["topics"]
    assert told["troubles"]
    assert told["groups"]["refused"]
    assert told["groups"]["refused_groups"] == 100
    assert sum(told["topics"].values()) + told["behind_elsewhere"] == 499500
    line = tmp_path / "line"
    with line.open("wb") as out:
        tell_host(told, out.fileno())
    assert json.loads(line.read_bytes()) == told


@pytest.mark.parametrize(
    ("looks", "stands_seconds", "has_got_on"),
    [
        pytest.param([status(5)], 0, False, id="seen once"),
        pytest.param([status(5), status(5), status(5)], 2, False, id="has not moved"),
        pytest.param([status(5, 10), status(9, 11)], 0, True, id="moves, though not fast enough"),
        pytest.param([status(5, 10), status(4, 11), status(4, 11)], 1, True, id="moved before"),
        pytest.param([status(), status(), status(3)], 1, True, id="behind just now"),
        pytest.param([UNKNOWN, status(5, 85)], 1, False, id="found out how far it was"),
        pytest.param([status(5), PAUSED, PAUSED], 0, True, id="paused"),
        pytest.param([status(5), PAUSED, PAUSED, status(5)], 1, False, id="resumed just now"),
        pytest.param([UNKNOWN, status(5, 85), status(4, 86)], 0, True, id="and got on"),
        pytest.param(
            [status(5, 10), status(5, 10, phase=Phase.HALTED)], 1, False, id="halted at once"
        ),
        pytest.param(
            [status(0, phase=Phase.RECOVERING), status(5)], 1, False, id="head was not known yet"
        ),
        pytest.param([UNKNOWN, status(0, 90)], 0, True, id="nothing behind"),
    ],
)
def test_a_partition_that_stands_is_told(
    looks: list[PartitionStatus], stands_seconds: float, has_got_on: bool
) -> None:
    history = History()
    for now, look in enumerate(looks):
        course = history.note([look], now)
    assert (course.stands_seconds, course.has_got_on) == (stands_seconds, has_got_on)


def test_the_partition_that_stands_longest_counts() -> None:
    history = History()
    for now in range(4):
        course = history.note([status(1, topic="payments"), status(5, 10 + now)], now)
    assert (course.stands_seconds, course.has_got_on) == (3, False)


@pytest.mark.parametrize(
    ("looks", "skipped", "foreign"),
    [
        pytest.param([(0, 0), (3, 1)], 3, 1, id="counted up"),
        pytest.param([(3, 1), (0, 0), (3, 0)], 3, 1, id="a partition begun anew"),
        pytest.param([(3, 1), (0, 0), (4, 2)], 4, 3, id="and more since"),
        pytest.param([(3, 1), None, (3, 0)], 3, 1, id="away and back"),
        pytest.param([(3, 1), None], 3, 1, id="gone"),
    ],
)
def test_counts_do_not_go_down(
    looks: list[tuple[int, int] | None], skipped: int, foreign: int
) -> None:
    history = History()
    for now, look in enumerate(looks):
        seen = [] if look is None else [status(skipped=look[0], foreign=look[1])]
        course = history.note([*seen, status(topic="payments", skipped=10, foreign=20)], now)
    assert (course.skipped, course.foreign) == (10 + skipped, 20 + foreign)
