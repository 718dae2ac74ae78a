"""Tells the host what is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from duolog.client.deliveries import Deliveries
from duolog.client.host_calls import HostCalls
from duolog.client.model import Ack
from duolog.client.options import ConsumerOptions
from duolog.errors import (
    DuologError,
    InvalidRequest,
    MembershipOver,
    NotSettled,
    PartitionRevoked,
    TopicRecreated,
)

SETTLED: Final = "settled"
LONGEST_WAIT_SECONDS: Final = 300.0
_MOST_ROUNDS: Final = 5


class Acks:
    """Of one consumer."""

    def __init__(
        self,
        core: Deliveries,
        host: HostCalls,
        options: ConsumerOptions,
        join_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._core = core
        self._host = host
        self._join_again = join_again
        self._group = options.group
        self._interval_seconds = options.ack_interval_seconds
        self._restarts_topics = options.restarts_topics
        self._sent_at = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the last time is longer ago than the interval."""
        return time.monotonic() - self._sent_at > self._interval_seconds

    @property
    def passed_over(self) -> tuple[type[DuologError], ...]:
        """What does not matter to whoever acknowledges without asking for it."""
        return (PartitionRevoked, TopicRecreated) if self._restarts_topics else (PartitionRevoked,)

    async def send(self, deadline_seconds: float | None = None) -> None:
        """All that the host does not know yet, of all partitions at once.

        Raises PartitionRevoked for what has become another member's; the rest is told.
        """
        await self._tell(self._core.acks, deadline_seconds, None)

    async def send_beside(self) -> None:
        """The same, while a member's next poll is under way, which knows where to go on.

        What has become another member's comes again there, and what was done in a topic that was
        made again is gone with it; where the host wants to be asked anew, the rest is left to
        whoever does that.
        """
        if self._group is None:
            return
        failures = await self._send(self._group, self._core.acks(), None, None)
        self._sent_at = time.monotonic()
        for failure in failures:
            if not isinstance(failure, (MembershipOver, *self.passed_over)):
                raise failure

    async def settle(self, wait: str | None, timeout_seconds: float) -> None:
        """With "settled", all partitions, also what the host knows: until Kafka is there too."""
        if wait is None:
            await self.send()
            return
        if wait != SETTLED:
            raise InvalidRequest(f"wait is {SETTLED!r} or nothing; got {wait!r}.")
        if not 0 <= timeout_seconds <= LONGEST_WAIT_SECONDS:
            raise InvalidRequest(
                f"timeout_seconds is 0 to {LONGEST_WAIT_SECONDS:.0f}; got {timeout_seconds}."
            )
        await self._tell(self._core.all_acks, None, timeout_seconds)

    async def _tell(
        self,
        to_tell: Callable[[], list[Ack]],
        deadline_seconds: float | None,
        settle_seconds: float | None,
    ) -> None:
        if self._group is None:
            return
        wanted = to_tell()
        failures: list[BaseException] = []
        for _ in range(_MOST_ROUNDS):
            failures = await self._send(self._group, to_tell(), deadline_seconds, settle_seconds)
            if not any(isinstance(each, MembershipOver) for each in failures):
                break
            await self._join_again()  # it may have the partition still, in a later generation
        self._sent_at = time.monotonic()
        told = [each for each in failures if not isinstance(each, MembershipOver)]
        if told:
            raise told[0]
        lost = [ack for ack in wanted if ack.seat is not None and not self._core.is_committed(ack)]
        if lost:
            raise PartitionRevoked(
                f"Topic '{lost[0].place.topic}' partition {lost[0].place.partition} has become "
                f"another member's: offset {lost[0].upto_offset} is not acknowledged, and comes "
                "again there."
            )

    async def _send(
        self,
        group: str,
        acks: list[Ack],
        deadline_seconds: float | None,
        settle_seconds: float | None,
    ) -> list[BaseException]:
        """What went wrong."""
        told = await asyncio.gather(
            *(self._host.ack(group, ack, deadline_seconds, settle_seconds) for ack in acks),
            return_exceptions=True,
        )
        failures = []
        for ack, answer in zip(acks, told, strict=True):
            match answer:
                case int():
                    self._core.acknowledged(ack, answer)
                    continue
                case NotSettled():  # the host has it all the same
                    self._core.acknowledged(ack, ack.upto_offset)
                case PartitionRevoked():
                    self._core.lose(ack)
                case TopicRecreated() if self._restarts_topics:
                    self._core.restart(ack.place.topic, ack.topic_id)
                case MembershipOver():
                    self._core.to_ask_again(ack.seat)
            failures.append(answer)
        return failures
