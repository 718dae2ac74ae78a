"""Polls under way: one for each source, which go on between the calls of the user."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Final

from duolog.client.deliveries import Deliveries
from duolog.client.held import HeldWaits
from duolog.client.host_calls import HostCalls
from duolog.client.model import LeftOut, Page, Place, Source
from duolog.client.options import ConsumerOptions
from duolog.errors import (
    MembershipOver,
    OffsetOutOfRange,
    PartitionHeld,
    TopicRecreated,
    UnknownTopic,
)

LONGEST_POLL_SECONDS: Final = 30.0
"""A longer wait is several requests, so that one that nobody waits for any more soon ends."""

_PAUSE_SECONDS: Final = 0.1
_REMADE_WITHIN_SECONDS: Final = 5.0  # a topic that is dropped to be made again
_LOG: Final = logging.getLogger("duolog.client")


class Polls:
    """Of one consumer. What they bring lies ready in its deliveries."""

    def __init__(self, core: Deliveries, host: HostCalls, options: ConsumerOptions) -> None:
        self._core = core
        self._host = host
        self._options = options
        self._held = HeldWaits(options.held_wait_seconds)
        self._under_way: dict[Source, asyncio.Task[None]] = {}
        self._missing_since: dict[Source, float] = {}
        self._told: set[tuple[str, LeftOut]] = set()

    async def ask(self, until: float) -> None:
        """Ask for every source that has nothing left, until one answers or the time is up.

        The polls of the others go on: what they bring comes with the next call.
        """
        left = max(0.0, until - time.monotonic())
        begun = False
        for source in self._core.hungry():
            if source not in self._under_way:
                poll = self._fetch(source, min(left, LONGEST_POLL_SECONDS))
                self._under_way[source] = asyncio.create_task(poll)
                begun = True
        due = self._core.next_due()
        if due is not None:
            left = max(0.0, min(left, due - time.monotonic()))
        if not self._under_way:
            await asyncio.sleep(left)
            return
        # Polls that begin now end in time by themselves, and are waited for also without any.
        waits = None if begun and due is None else left
        polls = self._under_way.values()
        await asyncio.wait(polls, timeout=waits, return_when=asyncio.FIRST_COMPLETED)
        ended = [source for source, poll in self._under_way.items() if poll.done()]
        failures = [self._under_way.pop(source).exception() for source in ended]
        for failure in failures:
            if failure is not None:
                raise failure

    async def look(self, place: Place) -> None:
        """Ask once for the source of a place, without waiting for records."""
        source = next(each for each in self._core.sources if each.holds(place))
        await self.stop(place)
        await self._fetch(source, 0.0, waits=False)

    async def join_again(self) -> None:
        """Ask which partitions are ours now, where the host has said that they have changed.

        Not as soon as it says so: what is in hand is to be acknowledged before.
        """
        for source in self._core.stale():
            await self.stop(Place(source.topic, 0))
            await self._fetch(source, 0.0)

    async def stop(self, place: Place | None = None) -> None:
        """Give up the polls for a place, or all."""
        sources = [each for each in self._under_way if place is None or each.holds(place)]
        polls = [self._under_way.pop(source) for source in sources]
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    async def _fetch(self, source: Source, timeout_seconds: float, *, waits: bool = True) -> None:
        """One answer for a source, taken in."""
        until = time.monotonic() + timeout_seconds
        while True:
            question = self._core.question(source)
            left = max(0.0, until - time.monotonic())
            joins = question.seat is not None and question.seat.is_stale
            if joins:  # to know at once who it is
                left = 0.0
            try:
                page = await self._host.consume(question, self._options, left)
            except PartitionHeld:
                if not waits or self._held.is_over(source, time.monotonic()):
                    raise
                left = max(0.0, until - time.monotonic())
                if left == 0.0:
                    return
                await asyncio.sleep(min(left, self._held.pause_seconds(random.random())))  # noqa: S311
                continue
            except MembershipOver:
                self._core.to_ask_again(question.seat)
                return
            except UnknownTopic:
                # Dropped, perhaps to be made again: then it is read from its first record.
                if question.topic_id is None or not self._options.restarts_topics:
                    raise
                missing_since = self._missing_since.setdefault(source, time.monotonic())
                if not waits or time.monotonic() - missing_since > _REMADE_WITHIN_SECONDS:
                    del self._missing_since[source]
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            except TopicRecreated:
                if not self._options.restarts_topics:
                    raise
                self._core.restart(source.topic, question.topic_id)
                continue
            except OffsetOutOfRange as error:
                if not self._core.go_on_after(question, error):
                    raise
                continue
            self._missing_since.pop(source, None)
            self._held.is_free(source)
            self._tell_what_is_left_out(page)
            if self._core.accept(question, page):
                if joins and not page.batches and time.monotonic() < until:
                    continue
                # A host that is being stopped, or lets nobody wait, answers early with nothing.
                early = max(0.0, until - time.monotonic()) if not page.batches else 0.0
                await asyncio.sleep(min(early, _PAUSE_SECONDS))
                return

    def _tell_what_is_left_out(self, page: Page) -> None:
        """Each once: without records the next poll passes over the same again."""
        for each in (*page.left_out, *page.damaged):
            if (page.topic, each) not in self._told:
                self._told.add((page.topic, each))
                passed = "are left out" if each in page.left_out else "cannot be read"
                _LOG.warning(
                    "Offsets %d-%d of topic '%s' partition %d %s: %s",
                    each.first_offset,
                    each.next_offset - 1,
                    page.topic,
                    each.partition,
                    passed,
                    each.reason,
                )
