"""How a proxy speaks with its group, and how one that was left behind is sent away."""

from __future__ import annotations

import pytest

from duolog.bridge.kafka.members.left_behind import Leave, Member
from duolog.bridge.kafka.members.protocol import NEWER, GroupSeen, Protocol, protocol_for
from duolog.errors import KafkaUnsupported


@pytest.mark.parametrize(
    ("group", "protocol"),
    [
        (GroupSeen(), NEWER),
        (GroupSeen(is_classic=False, has_members=True, assignor="uniform"), NEWER),
        (GroupSeen(is_classic=True, has_members=False, assignor="range"), NEWER),
        (GroupSeen(is_classic=True, has_members=True, assignor="range"), Protocol("range")),
        (
            GroupSeen(is_classic=True, has_members=True, assignor="cooperative-sticky"),
            Protocol("cooperative-sticky"),
        ),
        (
            GroupSeen(is_classic=True, has_members=True, assignor="roundrobin"),
            Protocol("roundrobin"),
        ),
        # librdkafka has no such one: the broker moves the group, while it runs.
        (GroupSeen(is_classic=True, has_members=True, assignor="sticky"), NEWER),
        (GroupSeen(is_classic=True, has_members=True, assignor="theirs"), NEWER),
        # What it has is not told now; a newer member would move the group.
        (GroupSeen(is_classic=True, has_members=True, is_sharing_out=True), None),
    ],
)
def test_a_proxy_speaks_as_the_group_does(group: GroupSeen, protocol: Protocol | None) -> None:
    assert protocol_for(group) == protocol


def test_only_classic_eager_ones_are_given_all_anew() -> None:
    assert NEWER.is_incremental
    assert Protocol("cooperative-sticky").is_incremental
    assert not Protocol("range").is_incremental
    assert NEWER.settings() == {"group.protocol": "consumer"}
    assert Protocol("range").settings()["partition.assignment.strategy"] == "range"


def test_leaving_is_said_in_the_groups_protocol() -> None:
    versions = {13: (0, 5), 68: (0, 1)}
    classic = Leave(Member("g", "m-1", is_classic=True)).prepare(versions).encode()
    assert classic == b"\x02g" + b"\x02" + b"\x04m-1" + b"\0" + b"\0" + b"\0"
    newer = Leave(Member("g", "m-1", is_classic=False)).prepare(versions).encode()
    assert newer == b"\x02g\x04m-1" + b"\xff" * 4 + b"\0\0" + b"\xff" * 4 + b"\0" * 4
    with pytest.raises(KafkaUnsupported, match="request 68"):
        Leave(Member("g", "m-1", is_classic=False)).prepare({13: (0, 5)})
