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
    """Who sent a request. `topics` are patterns like `orders.*`; None is all topics."""

    name: str
    role: Role
    topics: tuple[str, ...] | None = None

    def may_use(self, topic: str) -> bool:
        """Whether a topic's name is one of those that the caller may use."""
        return self.topics is None or any(fnmatchcase(topic, each) for each in self.topics)


ANYBODY = Caller("anybody", Role.SYSTEM)
"""Where there are no tokens, whoever reaches the host may do everything."""

THIS_MACHINE = Caller("this machine", Role.SYSTEM)
"""Who has shown that he knows the secret in the log's folder."""
