"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase

from duolog.errors import InvalidSetting


class Role(IntEnum):
    """Each role may do what those before it may."""

    USER = 1  # look at the host; with a setting, consume
    SERVICE = 2  # consume and publish
    DBA = 3  # define topics, move groups back
    SYSTEM = 4  # everything

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Role:
        for role in cls:
            if role.word == word:
                return role
        raise InvalidSetting(
            f"'{word}' is no role. Choose one of: {', '.join(role.word for role in cls)}."
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request. Patterns like `orders.*` limit what they may use; None is no limit."""

    name: str
    role: Role
    topics: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None  # that they may make routes of; see may_route

    @property
    def is_limited(self) -> bool:
        return any(each is not None for each in (self.topics, self.groups, self.tables))

    def may_use(self, topic: str) -> bool:
        """Whether a topic's name is one of those that the caller may use."""
        return _is_among(topic, self.topics)

    def may_use_group(self, group: str) -> bool:
        """Whether they may read for a group, move it and see where it is."""
        return _is_among(group, self.groups)

    def may_route(self, table: str) -> bool:
        """Whether they may lead a table's rows to a topic. Who is limited to some topics may not,
        unless tables are named: a route is given every row that anybody will ever write.
        """
        return self.topics is None if self.tables is None else _is_among(table, self.tables)


def _is_among(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, each) for each in patterns)


ANYBODY = Caller("anybody", Role.SYSTEM)
"""Where there are no tokens, whoever reaches the host may do everything."""

THIS_MACHINE = Caller("this machine", Role.SYSTEM)
"""Who has shown that he knows the secret in the log's folder."""
