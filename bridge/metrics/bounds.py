"""Which groups and topics have series of their own, so that /metrics does not grow with all.

Groups with the most lag, and topics with the most bytes, are shown one by one; so are those that
the operator names. Others are shown together, with empty labels, so that sums stay exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from duolog.bridge.patterns import patterns_of
from duolog.errors import InvalidSetting

TOGETHER: Final = ""
"""The label of all that have no series of their own."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class MetricRules:
    """How much is shown one by one. A group in one topic is taken whole, and so is a topic: the one
    with which a limit is reached is still shown.
    """

    max_group_partitions: int = 2000  # a group in a partition is one
    max_topic_partitions: int = 2000
    groups_always: tuple[re.Pattern[str], ...] = ()  # of whole names; these are shown besides
    topics_always: tuple[re.Pattern[str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("max_group_partitions", "max_topic_partitions"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} must be 0 or more; got {getattr(self, name)}.")

    @classmethod
    def of(cls, *, groups_always: str, topics_always: str, **limits: Any) -> Self:
        """From settings: regular expressions with commas between."""
        return cls(
            **limits,
            groups_always=patterns_of("groups_always", groups_always),
            topics_always=patterns_of("topics_always", topics_always),
        )

    def is_named_group(self, group: str) -> bool:
        return any(each.fullmatch(group) for each in self.groups_always)

    def is_named_topic(self, topic: str) -> bool:
        return any(each.fullmatch(topic) for each in self.topics_always)


def shown_alone(
    ranked: Iterable[tuple[Key, int]], most: int, is_named: Callable[[Key], bool]
) -> set[Key]:
    """Those that are named, and of the others the first ones. `ranked` has what matters most first,
    each with how many partitions it has.
    """
    alone: set[Key] = set()
    left = most
    for key, partitions in ranked:
        if is_named(key):
            alone.add(key)
        elif left > 0:
            alone.add(key)
            left -= partitions
    return alone
