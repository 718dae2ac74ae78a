"""What is known of a group's members in one topic. Plain values; times are handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from duolog.errors import InvalidSetting

NOBODY: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rules:
    """How long is waited for members, and how many there are. A group in one topic counts as one.

    Limits for each token hold where there are tokens.
    """

    drain_seconds: float = 5.0  # after a change, acknowledgements of before are still taken
    default_session_seconds: float = 10.0
    least_session_seconds: float = 1.0
    most_session_seconds: float = 300.0
    max_members_of_group: int = 1_000
    max_members: int = 10_000
    max_members_per_token: int = 2_000
    max_groups: int = 10_000  # that have members
    max_groups_per_token: int = 2_000
    max_stored_groups_of_token: int = 10_000  # that it began and that have a position
    max_proxies: int = 200  # members that stand for native ones in groups of Kafka

    def __post_init__(self) -> None:
        for field_ in fields(self):
            if field_.name.startswith("max_") and getattr(self, field_.name) < 1:
                raise InvalidSetting(
                    f"{field_.name} must be 1 or more; got {getattr(self, field_.name)}."
                )


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer.

    `generation` is that of the last change to its partitions, `told` the one that it knows of.
    """

    member_id: str
    holder: str  # who asks, for others to read
    session_seconds: float
    heard_at: float
    token: str | None = None  # by which it came in
    is_provisional: bool = False  # it has never shown that it will carry its id
    answering: int = 0  # calls of it that are under way; while there are some, its session lasts
    generation: int = 0
    told: int = 0
    stale_until: float = 0.0  # so long its acknowledgements count, although it was not told yet

    @property
    def is_stale(self) -> bool:
        """Whether its partitions have changed since it was told."""
        return self.told != self.generation

    @property
    def expires_at(self) -> float | None:
        """The end of its session; None while it is being answered."""
        return None if self.answering else self.heard_at + self.session_seconds


@dataclass(frozen=True, slots=True)
class Grant:
    """A partition that a member has, since the change of that generation."""

    member_id: str
    since: int
    revoked_until: float | None = None  # it is to go to somebody else, by then at the latest

    @property
    def is_revoked(self) -> bool:
        return self.revoked_until is not None


@dataclass(frozen=True, slots=True)
class Membership:
    """A group in one topic. A partition has at most one grant, and that one owner."""

    partitions: int
    generation: int
    members: Mapping[str, Member] = field(default_factory=lambda: NOBODY)
    grants: Mapping[int, Grant] = field(default_factory=lambda: NOBODY)
    acking: Mapping[int, int] = field(default_factory=lambda: NOBODY)
    """Acknowledgements under way, by partition: nobody else gets it before they are stored."""

    def owned_by(self, member_id: str) -> frozenset[int]:
        """The partitions that a member may read: not those that it is to let go."""
        return frozenset(
            partition
            for partition, grant in self.grants.items()
            if grant.member_id == member_id and not grant.is_revoked
        )

    @property
    def full_members(self) -> int:
        return sum(not each.is_provisional for each in self.members.values())
