"""What the host asks its worker about groups.

| question | arguments | result |
|---|---|---|
| `group.settle` | group, topic, partition or null, within_seconds | what is pending, if anything |
| `group.notice` | the same | what Kafka holds that does not count natively yet |
| `group.reset` | group, topic, partition, position, expected_version | whether it was done |
| `group.delete` | group, topic or null | how many positions the log had; null: it was not done |

What is not done here has no other side: the host does it in the log alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from duolog.bridge.kafka.mirror.mirroring import PartitionStatus
from duolog.bridge.kafka.mirror.partition import Phase
from duolog.bridge.kafka.mirror.refused import SUFFIX
from duolog.bridge.kafka.positions.settler import Outcome
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.positions.waits import Done, Wait, has_noticed, is_settled, missing
from duolog.bridge.serve.answering import Answering
from duolog.errors import InvalidRequest, KafkaUnreachable, KafkaWorkerUnavailable

_LOOK_SECONDS: Final = 0.05
_MOST_PENDING: Final = 20
_LONGEST_TEXT: Final = 400


@dataclass(frozen=True, slots=True)
class _Of:
    """Which partitions of a group somebody asks about."""

    group: str
    topic: str
    partition: int | None

    @classmethod
    def asked(cls, asked: Mapping[str, Any]) -> _Of:
        group, topic, partition = asked.get("group"), asked.get("topic"), asked.get("partition")
        if not isinstance(group, str) or not isinstance(topic, str):
            raise InvalidRequest("The worker is asked about a group and a topic by their names.")
        return cls(group, topic, partition)

    def holds(self, topic: str, partition: int) -> bool:
        return topic == self.topic and self.partition in {None, partition}

    def concerns(self, outcome: Outcome) -> bool:
        return self.holds(outcome.topic, outcome.partition)


class GroupQuestions:
    """Answers them, on the worker's event loop."""

    def __init__(
        self, settling: GroupSettling, mirror: Callable[[], Iterable[PartitionStatus]]
    ) -> None:
        self._settling = settling
        self._mirror = mirror

    def answer_by(self, answering: Answering) -> None:
        answering.handle("group.settle", self.settle)
        answering.handle("group.notice", self.notice)
        answering.handle("group.reset", self.reset)
        answering.handle("group.delete", self.delete)

    async def settle(self, asked: Mapping[str, Any]) -> list[str]:
        """Wait until both sides are at one place."""
        return await self._wait(asked, is_settled)

    async def notice(self, asked: Mapping[str, Any]) -> list[str]:
        """Wait until what Kafka holds now counts natively."""
        return await self._wait(asked, has_noticed)

    async def reset(self, asked: Mapping[str, Any]) -> bool:
        """Move a group on both sides."""
        of, position = _Of.asked(asked), asked.get("position")
        if of.partition is None or not isinstance(position, int):
            raise InvalidRequest("A group is reset in one partition, to a position.")
        if not self._settling.takes(of.group):
            return False
        self._check_begun(of.group, of.topic, of.partition)
        moved = await asyncio.wrap_future(
            self._settling.reset(
                of.group, of.topic, of.partition, position, asked.get("expected_version")
            )
        )
        return moved is not None

    async def delete(self, asked: Mapping[str, Any]) -> int | None:
        """Forget a group on both sides."""
        group, topic = asked.get("group"), asked.get("topic")
        if not isinstance(group, str) or not (topic is None or isinstance(topic, str)):
            raise InvalidRequest("A group is deleted by its name, in a topic by its name.")
        if not self._settling.takes(group):
            return None
        self._check_begun(group, topic, None)
        return await asyncio.wrap_future(self._settling.delete(group, topic))

    async def _wait(self, asked: Mapping[str, Any], is_done: Done) -> list[str]:
        of, seconds = _Of.asked(asked), float(asked.get("within_seconds", 0))
        if not self._settling.takes(of.group) or of.topic.endswith(SUFFIX):
            return []
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            standing = self._standing(of)
            if standing is None:
                return await self._waited(of, is_done, until - clock())
            if standing or clock() >= until:
                return _shown(standing or [f"the mirror of topic '{of.topic}' has only begun"])
            await asyncio.sleep(_LOOK_SECONDS)

    async def _waited(self, of: _Of, is_done: Done, seconds: float) -> list[str]:
        wait = Wait(of.group, of.concerns, is_done)
        self._settling.wait(wait)
        try:
            async with asyncio.timeout(max(seconds, 0)):
                found = await asyncio.wrap_future(wait.future)
        except TimeoutError:
            if wait.last is None:
                status = self._settling.status()
                why = status.refused.get(of.group) or status.trouble or "It was asked."
                raise KafkaUnreachable(
                    f"Kafka did not say in time where group '{of.group}' is. {why}"
                ) from None
            found = wait.last
        return _shown([missing(each) for each in found if not is_done(each)])

    def _standing(self, of: _Of) -> list[str] | None:
        """Why partitions stand still until somebody does something; none: they have only begun.

        None when all of them are kept together now.
        """
        known = [each for each in self._mirror() if of.holds(each.topic, each.partition)]
        at_work = self._settling.mirrored()
        missing = [each for each in known if (each.topic, each.partition) not in at_work]
        if known and not missing:
            return None
        return [_shown_halted(each) for each in missing if each.phase is Phase.HALTED]

    def _check_begun(self, group: str, topic: str | None, partition: int | None) -> None:
        """A mirror that has only begun does not know yet what lies in Kafka."""
        known = [
            each
            for each in self._mirror()
            if topic in {None, each.topic} and partition in {None, each.partition}
        ]
        at_work = self._settling.mirrored()
        begins = [
            each
            for each in known
            if each.phase is not Phase.HALTED and (each.topic, each.partition) not in at_work
        ]
        if begins or not known:
            raise KafkaWorkerUnavailable(
                f"Group '{group}' cannot be moved: its mirror in Kafka has only begun, and does "
                "not know yet how far it is. Send it again a little later; nothing was changed."
            )


def _shown_halted(status: PartitionStatus) -> str:
    place = f"topic '{status.topic}' partition {status.partition}"
    return f"{place}: its mirror is halted: {status.trouble}"


def _shown(pending: list[str]) -> list[str]:
    """As many as fit into an answer."""
    shown = [
        text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
        for text in pending[:_MOST_PENDING]
    ]
    if len(pending) > _MOST_PENDING:
        shown.append(f"and {len(pending) - _MOST_PENDING} more")
    return shown
