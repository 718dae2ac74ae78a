"""How a proxy speaks with its group: as those do who are in it. Pure.

A group whose members speak Kafka's newer protocol (KIP-848) takes classic ones as well, whatever
assignor they name, and one that is empty is begun so. A classic group is joined by its own
assignor; where librdkafka does not have that one, by the newer protocol, to which the broker then
moves the group without stopping it (`group.consumer.migration.policy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KNOWN_ASSIGNORS: Final = ("range", "roundrobin", "cooperative-sticky")
SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 500  # so soon a proxy hears of a change, where it may say how often it asks


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """A group as its coordinator describes it."""

    is_classic: bool = False
    has_members: bool = False
    assignor: str = ""
    is_sharing_out: bool = False  # a classic one; which assignor it has is not told meanwhile


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a consumer is told. Without an assignor: the broker assigns."""

    assignor: str | None

    @property
    def is_incremental(self) -> bool:
        """Whether a change names what comes and goes, rather than all."""
        return self.assignor in {None, "cooperative-sticky"}

    def settings(self) -> dict[str, str | int]:
        """By librdkafka's names."""
        if self.assignor is None:
            return {"group.protocol": "consumer"}
        return {
            "group.protocol": "classic",
            "partition.assignment.strategy": self.assignor,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }


NEWER: Final = Protocol(None)


def protocol_for(group: GroupSeen) -> Protocol | None:
    """The one that a proxy is to speak; None while that cannot be said."""
    if not (group.has_members and group.is_classic):
        return NEWER
    if group.is_sharing_out:
        return None
    return Protocol(group.assignor) if group.assignor in KNOWN_ASSIGNORS else NEWER
