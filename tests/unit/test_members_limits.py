"""How many members and groups there may be: each limit has an error that names it."""

from __future__ import annotations

from typing import Any

import pytest

from duolog.bridge.members.coordinator import Call, Coordinator
from duolog.bridge.members.model import Rules
from duolog.errors import (
    DuologError,
    InvalidSetting,
    TokenLimitReached,
    TooManyGroups,
    TooManyMembers,
)
from duolog.log.model import Topic, TopicSettings
from tests.support.clock import ManualClock

ORDERS = Topic(7, "orders", TopicSettings(partitions=2), (), 0, 0)


class Host:
    """A coordinator and those who ask it. Calls end at once; their members stay."""

    def __init__(self, **limits: int) -> None:
        self.members = Coordinator(ManualClock(), "host", Rules(**limits))

    def join(self, group: str, member: str, token: str | None = None) -> None:
        call = Call("somebody", member, session_seconds=60, token=token)
        with self.members.seat(group, ORDERS, call) as seat:
            seat.place()

    def leave(self, group: str, member: str) -> None:
        assert self.members.leave(group, ORDERS, member)


@pytest.mark.parametrize(
    ("limits", "error", "setting"),
    [
        ({"max_members_of_group": 2}, TooManyMembers, "max_members_of_group"),
        ({"max_members": 2}, TooManyMembers, "max_members "),
        ({"max_members_per_token": 2}, TokenLimitReached, "max_members_per_token"),
    ],
)
def test_members_beyond_a_limit_are_refused_until_others_leave(
    limits: dict[str, int], error: type[DuologError], setting: str
) -> None:
    host = Host(**limits)
    host.join("g", "a", "billing")
    host.join("g", "b", "billing")
    with pytest.raises(error, match=setting):
        host.join("g", "c", "billing")
    host.join("g", "b", "billing")  # who is a member stays one
    (gathering,) = host.members.shown()
    assert set(gathering.state.members) == {"a", "b"}
    host.leave("g", "a")
    host.join("g", "c", "billing")


@pytest.mark.parametrize(
    ("limits", "error", "setting"),
    [
        ({"max_groups": 2}, TooManyGroups, "max_groups "),
        ({"max_groups_per_token": 2}, TokenLimitReached, "max_groups_per_token"),
    ],
)
def test_groups_beyond_a_limit_are_refused_until_others_are_over(
    limits: dict[str, int], error: type[DuologError], setting: str
) -> None:
    host = Host(**limits)
    host.join("one", "a", "billing")
    host.join("two", "a", "billing")
    with pytest.raises(error, match=setting):
        host.join("three", "a", "billing")
    assert {each.group for each in host.members.shown()} == {"one", "two"}
    host.join("two", "b", "billing")
    host.leave("one", "a")
    host.join("three", "a", "billing")


def test_a_tokens_limits_are_its_own_and_hold_only_where_there_are_tokens() -> None:
    host = Host(max_members_per_token=1, max_groups_per_token=1)
    host.join("g", "a", "billing")
    host.join("g", "b", "shipping")
    for number in range(5):
        host.join(f"g{number}", "c")
    with pytest.raises(TokenLimitReached, match="'billing' has 1 members"):
        host.join("g", "d", "billing")


def test_a_caller_that_carries_no_id_counts_once() -> None:
    host = Host(max_members=1, max_members_per_token=1)
    for _ in range(5):
        with host.members.seat("g", ORDERS, Call("a script", token="billing")) as seat:
            seat.place()


def test_what_is_over_is_not_remembered() -> None:
    host = Host()
    host.join("g", "a", "billing")
    host.join("h", "b", "billing")
    host.leave("g", "a")
    host.leave("h", "b")
    roll: Any = host.members._roll
    assert (roll.members, roll.groups) == (0, 0)
    counts = [each for each in vars(roll).values() if isinstance(each, dict)]
    assert counts
    assert not any(counts)


def test_a_limit_below_one_is_refused_by_name() -> None:
    for name in Rules.__dataclass_fields__:
        if name.startswith("max_"):
            with pytest.raises(InvalidSetting, match=f"{name} must be 1 or more; got 0"):
                Rules(**{name: 0})
