"""Who begins groups, and how many they may: one of many must not use up all that a log takes.

A host knows who asks; the log stores with a group's positions who began it, so that it counts
after a restart too, and until the group is deleted or forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GroupAllowance:
    """Of one token."""

    token: str
    max_groups: int


_CURRENT: Final[ContextVar[GroupAllowance | None]] = ContextVar("group_allowance", default=None)


def current_allowance() -> GroupAllowance | None:
    """That of whoever calls the log; None where there is no limit but the log's."""
    return _CURRENT.get()


@contextmanager
def on_behalf_of(allowance: GroupAllowance | None) -> Iterator[None]:
    """What is called within counts for it, also in threads that are given the context."""
    reset = _CURRENT.set(allowance)
    try:
        yield
    finally:
        _CURRENT.reset(reset)
