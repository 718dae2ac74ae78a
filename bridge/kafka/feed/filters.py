"""Which groups are kept as one with Kafka."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from duolog.bridge.patterns import patterns_of

EVERY_GROUP: Final = ".*"
EXCLUDED_BY_DEFAULT: Final = "console-consumer-.*,connect-.*,__.*"


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Regular expressions for whole names, as in `groups` and `groups.exclude` of MirrorMaker."""

    included: Sequence[re.Pattern[str]] = field(default=())
    excluded: Sequence[re.Pattern[str]] = field(default=())

    @classmethod
    def of(cls, groups: str = EVERY_GROUP, groups_exclude: str = EXCLUDED_BY_DEFAULT) -> Self:
        """From settings: expressions with commas between."""
        return cls(patterns_of("groups", groups), patterns_of("groups.exclude", groups_exclude))

    def takes(self, group: str) -> bool:
        """Whether a group's position is one on both sides."""
        return any(each.fullmatch(group) for each in self.included) and not any(
            each.fullmatch(group) for each in self.excluded
        )
