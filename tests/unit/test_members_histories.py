"""Random histories of a group's members keep what is promised of it; broken rules do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.members import admission
from duolog.bridge.members import membership as change
from duolog.bridge.members.model import Grant, Membership
from tests.unit.members_world import play


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_no_partition_has_two_members_and_all_have_one(seed: int) -> None:
    world = play(seed)
    shares = [len(world.group.owned_by(each)) for each in world.group.members]
    if shares:
        assert max(shares) - min(shares) <= 1
        assert sum(shares) == world.group.partitions


def fails(monkeypatch: pytest.MonkeyPatch, where: object, name: str, broken: object) -> bool:
    monkeypatch.setattr(where, name, broken)
    for seed in range(3000):
        try:
            play(seed)
        except AssertionError:
            return True
    return False


def test_a_partition_that_is_given_away_before_it_is_let_go_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(group: Membership, grant: Grant, now: float) -> bool:
        return True

    assert fails(monkeypatch, change, "_has_let_go", at_once)


def test_a_partition_that_is_given_away_while_an_ack_is_stored_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    freed = change.freed

    def careless(group: Membership, now: float) -> object:
        state, gone = freed(replace(group, acking={}), now)
        return (group, gone) if not gone else (replace(state, acking=group.acking), gone)

    assert fails(monkeypatch, change, "freed", careless)


def test_an_ack_of_a_partition_that_was_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "check_ack", lambda *_: None)
    for seed in range(3000):
        try:
            play(seed)
        except (AssertionError, KeyError):
            return
    raise AssertionError("an acknowledgement of a lost partition goes unnoticed")


def test_a_change_without_a_generation_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = change._changed

    def same(group: Membership, member: object, until: float) -> Membership:
        state = changed(group, member, until)  # type: ignore[arg-type]
        return replace(state, generation=group.generation)

    assert fails(monkeypatch, change, "_changed", same)
