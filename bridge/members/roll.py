"""How many members and groups there are, of each token and in all; and whether one may come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeVar

from duolog.bridge.members.model import Member, Membership, Rules
from duolog.errors import TokenLimitReached, TooManyGroups, TooManyMembers

GroupKey = tuple[str, int]  # a group, and a topic's id
Key = TypeVar("Key")
_LEAVE: Final = "Leave with those that are not needed, or wait until their sessions end"


class Roll:
    """Told of each change; so a look takes as long however many members there are."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._members: Counter[GroupKey] = Counter()
        self._members_of_token: Counter[str] = Counter()
        self._of_token_in_group: Counter[tuple[str, GroupKey]] = Counter()
        self._groups_of_token: Counter[str] = Counter()
        self.members = 0

    @property
    def groups(self) -> int:
        return len(self._members)

    def changed(
        self, key: GroupKey, before: Mapping[str, Member], now: Mapping[str, Member]
    ) -> None:
        """The members of a group."""
        for member_id in now.keys() - before.keys():
            self._count(key, now[member_id], 1)
        for member_id in before.keys() - now.keys():
            self._count(key, before[member_id], -1)

    def check(self, key: GroupKey, group: Membership, token: str | None, where: str) -> None:
        """Whether another member may come. Raises TooManyMembers, TooManyGroups or, where it is one
        token that has too many, TokenLimitReached.
        """
        rules = self._rules
        is_new_group = key not in self._members
        if token is not None:
            self._check_token(token, is_new=(token, key) not in self._of_token_in_group)
        if len(group.members) >= rules.max_members_of_group:
            raise TooManyMembers(
                f"G{where[1:]} has {len(group.members)} members, as many as one may have "
                f"(max_members_of_group in [members]). {_LEAVE}."
            )
        if self.members >= rules.max_members:
            raise TooManyMembers(
                f"The host has {self.members} members of groups, as many as it takes (max_members "
                f"in [members]). {_LEAVE}."
            )
        if is_new_group and self.groups >= rules.max_groups:
            raise TooManyGroups(
                f"The host has {self.groups} groups with members, as many as it takes (max_groups "
                f"in [members]). {_LEAVE}."
            )

    def _check_token(self, token: str, *, is_new: bool) -> None:
        members, groups = self._members_of_token[token], self._groups_of_token[token]
        if members >= self._rules.max_members_per_token:
            raise TokenLimitReached(
                f"The token '{token}' has {members} members of groups, as many as one may have "
                f"(max_members_per_token in [members]). {_LEAVE}."
            )
        if is_new and groups >= self._rules.max_groups_per_token:
            raise TokenLimitReached(
                f"The token '{token}' has members in {groups} groups, as many as one may have "
                f"(max_groups_per_token in [members]). {_LEAVE}."
            )

    def _count(self, key: GroupKey, member: Member, change: int) -> None:
        self.members += change
        _add(self._members, key, change)
        if member.token is None:
            return
        _add(self._members_of_token, member.token, change)
        was = self._of_token_in_group[member.token, key]
        _add(self._of_token_in_group, (member.token, key), change)
        if bool(was) != bool(was + change):
            _add(self._groups_of_token, member.token, change)


def _add(counts: Counter[Key], key: Key, change: int) -> None:
    counts[key] += change
    if not counts[key]:  # what is over is not remembered
        del counts[key]
