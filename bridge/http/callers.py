"""Who asks, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase

from duolog.errors import InvalidSetting
from duolog.log.model import Filter


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
    subjects: tuple[str, ...] | None = None  # of the schema registry; see may_use_subject
    where: Filter | None = None  # of all records, they may read those that meet this

    @property
    def is_limited(self) -> bool:
        limits = (self.topics, self.groups, self.tables, self.subjects, self.where)
        return any(each is not None for each in limits)

    def may_use(self, topic: str) -> bool:
        """Whether a topic's name is one of those that the caller may use."""
        return _is_among(topic, self.topics)

    def may_use_group(self, group: str) -> bool:
        """Whether they may read for a group, move it and see where it is."""
        return _is_among(group, self.groups)

    def may_route(self, table: str) -> bool:
        """Whether they may lead a table's rows to a topic: a route is given every row that anybody
        will ever write. So a token for some topics may not, unless tables are named; and one with a
        condition never may, since how many rows came would tell what it hides.
        """
        if self.where is not None:
            return False
        return self.topics is None if self.tables is None else _is_among(table, self.tables)

    @property
    def is_limited_to_subjects(self) -> bool:
        return self.topics is not None or self.subjects is not None

    @property
    def may_use_subject(self) -> SubjectsOf:
        """Whether they may read a subject's schemas: `may_use_subject(subject)`."""
        return SubjectsOf(self)

    def own_writer(self, writer: str) -> str:
        """The name under which the log knows a writer of theirs. Who is limited to some topics has
        writers of their own: by another's name they would learn of that one's sequences, and use
        them up.
        """
        return writer if self.topics is None else f"token:{self.name}/{writer}"


@dataclass(frozen=True, slots=True)
class SubjectsOf:
    """The subjects that a caller may read, and change if `subjects` are named. If they are limited
    to some topics only, these are the subjects of those topics.
    """

    caller: Caller

    @property
    def may_change(self) -> bool:
        return self.caller.subjects is not None or not self.caller.is_limited

    def __call__(self, subject: str) -> bool:
        caller = self.caller
        if caller.subjects is None and caller.topics is not None:
            topic, _, kind = subject.rpartition("-")
            return kind in _KINDS_OF_SUBJECTS and caller.may_use(topic)
        return _is_among(subject, caller.subjects)


def _is_among(name: str, patterns: tuple[str, ...] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, each) for each in patterns)


_KINDS_OF_SUBJECTS = ("key", "value")

ANYBODY = Caller("anybody", Role.SYSTEM)
"""Where there are no tokens, whoever reaches the host may do everything."""

THIS_MACHINE = Caller("this machine", Role.SYSTEM)
"""Who has shown that he knows the secret in the log's folder."""
