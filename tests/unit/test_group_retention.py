"""Groups that nobody has used for long go, and no others."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import GROUPS_EXPIRED
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.group_retention import GroupRetention
from duolog.errors import GroupHasMembers, KafkaUnreachable
from duolog.log import EmbeddedLog, LogOptions
from duolog.log.mirror_model import MirrorTarget
from duolog.log.model import Record, Side, TopicSettings
from duolog.log.positions import StoredPosition, pack_position, unpack_position
from tests.support.clock import ManualClock

DAY = 24 * 3600


class Host:
    """A log with two groups, and what forgets them after seven days."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.members: set[str] = set()
        self.both_sides: Any = None
        self.start()
        self.log.create_topic("orders", TopicSettings(partitions=2))
        self.log.publish("orders", [Record(b"v", partition=n % 2) for n in range(20)])
        for group in ("idle", "used"):
            for partition in (0, 1):
                self.log.ack(group, "orders", 4, partition)
        self.look()  # from now on it is known who uses which group

    def start(self, keep_seconds: float = 7 * DAY) -> None:
        self.log: EmbeddedLog = open_log(self.folder, options=LogOptions(clock=self.clock))
        self.tally, self.said = Tally(), io.StringIO()
        self.retention = GroupRetention(
            self.log,
            self.clock,
            self.tally,
            Journal(self.said),
            keep_seconds=keep_seconds,
            with_members=lambda: self.members,
            both_sides=lambda: self.both_sides,
        )

    def restart(self, keep_seconds: float = 7 * DAY) -> None:
        self.log.close()
        self.start(keep_seconds)

    def look(self, days: float = 0.0, times: int = 1) -> None:
        """Some looks, an hour apart, after so many days without one."""
        self.clock.advance(seconds=days * DAY)
        for _ in range(times):
            self.clock.advance(seconds=3600)
            self.retention.run_when_due(lambda: False)

    @property
    def groups(self) -> set[str]:
        return {each.group for each in self.log.group_positions()}

    def mirror(self) -> None:
        self.log.begin_mirror("orders", 0, MirrorTarget("cluster", "orders", "id", 1, 0, 0, 0))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "log")
    yield made
    made.log.close()


def test_a_group_that_nobody_used_goes_at_the_second_look(host: Host) -> None:
    host.look(days=6.9, times=1)
    host.log.ack("used", "orders", 5, 1)
    host.look(days=0.2)
    assert host.groups == {"idle", "used"}
    host.look()
    assert host.groups == {"used"}
    assert host.tally.number(GROUPS_EXPIRED) == 1
    assert "groups.expired groups=1" in host.said.getvalue()
    host.restart()
    assert host.groups == {"used"}
    assert len(host.log.group_positions("used")) == 2  # all of a group, or nothing


@pytest.mark.parametrize("way", ["poll", "ack that moves nothing", "member", "seek"])
def test_whoever_uses_a_group_keeps_it_also_over_restarts(host: Host, way: str) -> None:
    for _ in range(20):
        match way:
            case "poll":
                host.log.group_position("used", "orders", 1)
            case "ack that moves nothing":
                host.log.ack("used", "orders", 0, 0)
            case "seek":
                host.log.seek("used", "orders", 0, 3)
            case "member":
                host.members = {"used"}
        host.look(days=1)
        host.members = set()
        host.restart()
    assert "used" in host.groups
    host.look(times=3)
    assert host.groups == {"used"}
    versions = [each.version for each in host.log.group_positions("used")]
    assert way == "seek" or versions == [1, 1]  # for consumers nothing has moved
    host.look(days=8, times=2)
    assert host.groups == set()


def test_what_is_read_is_stored_now_and_then_and_not_each_time(host: Host) -> None:
    def stored() -> int:
        return host.log.stats().syncs

    host.look()
    before = stored()
    for _ in range(15):
        host.log.group_position("used", "orders", 0)
        host.look()
    assert stored() == before  # within an eighth of seven days
    host.look(days=1)
    host.log.group_position("used", "orders", 0)
    host.look()
    assert stored() == before + 1


def test_a_clock_that_is_ahead_for_a_moment_costs_no_group(host: Host) -> None:
    host.look()
    host.look(days=30)
    host.clock.advance(seconds=-30 * DAY)
    host.look(times=5)
    assert host.groups == {"idle", "used"}


def test_a_group_that_is_used_as_it_is_to_go_stays(host: Host) -> None:
    before_ms = host.clock.now_ms() + 1
    host.clock.advance(seconds=60)
    assert {each.group for each in host.log.idle_groups(before_ms)} == {"idle", "used"}
    host.log.group_position("used", "orders", 0)
    assert host.log.expire_groups(["idle", "used", "unknown"], before_ms) == 1
    assert host.groups == {"used"}


def test_groups_of_an_older_duolog_have_their_whole_time_from_the_first_look_on(
    host: Host,
) -> None:
    host.log.close()
    host.folder = host.folder.with_name("older")
    host.start()
    host.log.create_topic("orders")
    host.log.publish("orders", Record(b"v"))
    host.log.ack("older", "orders", 0)
    host.look(days=30)
    host.look(days=6.9, times=2)
    assert host.groups == {"older"}
    host.look(days=0.2, times=2)
    assert host.groups == set()


def test_groups_stay_for_ever_if_they_are_told_to(host: Host) -> None:
    host.restart(keep_seconds=0)
    host.look(days=1000, times=3)
    assert host.groups == {"idle", "used"}


def test_a_group_that_kafka_may_have_stays_without_a_worker(host: Host) -> None:
    host.mirror()
    host.look(days=8, times=3)
    assert host.groups == {"idle", "used"}
    before_ms = host.clock.now_ms()
    assert host.log.expire_groups(["idle", "used"], before_ms) == 0


class _Kafka:
    """Forgets groups on both sides, but for one that has members there."""

    def __init__(self, log: EmbeddedLog, with_members: str) -> None:
        self.log = log
        self.with_members = with_members
        self.asked: list[str] = []
        self.failure: Exception | None = None

    def expire_group(self, group: str, before_ms: float) -> bool:
        self.asked.append(group)
        if self.failure is not None:
            raise self.failure
        if group == self.with_members:
            raise GroupHasMembers("It has members.")
        return bool(self.log.delete_group(group))


def test_a_mirrored_group_goes_on_both_sides_unless_it_has_members_in_kafka(host: Host) -> None:
    host.mirror()
    host.both_sides = kafka = _Kafka(host.log, with_members="used")
    host.look(days=8, times=2)
    assert host.groups == {"used"}
    assert sorted(kafka.asked) == ["idle", "used"]
    host.look(times=20)
    assert len(kafka.asked) == 2  # it was used then, and its time begins anew
    kafka.with_members = ""
    host.look(days=8, times=2)
    assert host.groups == set()


def test_while_kafka_is_away_one_group_is_asked_for_at_a_look(host: Host) -> None:
    host.mirror()
    host.both_sides = kafka = _Kafka(host.log, with_members="")
    kafka.failure = KafkaUnreachable("Kafka is away.")
    host.look(days=8, times=3)
    assert host.groups == {"idle", "used"}
    assert len(kafka.asked) == 2  # at the second look and at the third
    assert "groups.not_expired" in host.said.getvalue()
    kafka.failure = None
    host.look()
    assert host.groups == set()


def test_when_a_group_was_used_is_stored_beside_its_position() -> None:
    plain = StoredPosition(5, 3, 1000, Side.NATIVE)
    assert b"used" not in pack_position(plain)
    used = StoredPosition(5, 3, 1000, Side.NATIVE, used_at_ms=2000)
    assert unpack_position(pack_position(used)) == used
    stored = b'{"v":1,"position":5,"version":3,"at":1000,"by":"native","used":2000}'
    assert unpack_position(stored) == used
