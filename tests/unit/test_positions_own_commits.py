"""Which moves of a group are the worker's own members', on both sides."""

from __future__ import annotations

import pytest

from duolog.bridge.kafka.feed.records import OffsetCommitted
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.log.mirror_model import Mirror, MirrorTarget
from duolog.log.model import GroupPosition, Side

MIRROR = Mirror("orders", 3, 1, MirrorTarget("cluster", "shop.orders", "id", 1, 0, 0, 0))


@pytest.fixture
def own() -> OwnCommits:
    own = OwnCommits()
    own.note("billing", MIRROR, offset=17, position=20)
    own.note("billing", MIRROR, offset=27, position=30)
    return own


def commit(
    offset: int | None, group: str = "billing", topic: str = "shop.orders", partition: int = 3
) -> OffsetCommitted:
    return OffsetCommitted(group, topic, partition, offset)


def position(
    at: int, group: str = "billing", topic: str = "orders", partition: int = 3
) -> GroupPosition:
    return GroupPosition(group, topic, partition, at, 1, 0, Side.NATIVE)


def test_the_last_and_those_before_are_known_on_both_sides(own: OwnCommits) -> None:
    assert own.is_commit(commit(17))
    assert own.is_commit(commit(27))
    assert own.is_position(position(20))
    assert own.is_position(position(30))


@pytest.mark.parametrize(
    "change",
    [
        commit(18),
        commit(None),
        commit(27, group="audit"),
        commit(27, topic="orders"),
        commit(27, partition=2),
    ],
)
def test_others_commits_are_not(own: OwnCommits, change: OffsetCommitted) -> None:
    assert not own.is_commit(change)


@pytest.mark.parametrize(
    "moved",
    [
        position(27),
        position(30, group="audit"),
        position(30, topic="shop.orders"),
        position(30, partition=2),
    ],
)
def test_others_moves_are_not(own: OwnCommits, moved: GroupPosition) -> None:
    assert not own.is_position(moved)


def test_old_ones_and_groups_without_members_are_forgotten(own: OwnCommits) -> None:
    for at in range(100, 116):
        own.note("billing", MIRROR, offset=at, position=at)
    assert not own.is_commit(commit(27))
    assert own.is_commit(commit(100))
    own.note("audit", MIRROR, offset=5, position=5)
    own.forget("billing")
    assert not own.is_commit(commit(115))
    assert not own.is_position(position(115))
    assert own.is_commit(commit(5, group="audit"))
