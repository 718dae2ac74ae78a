"""Groups of a log that may be mirrored: moved on both sides or on none, and brought together.

What has no other side is done in the log alone. Where it has one, the Kafka worker does it: it
alone speaks to Kafka, and what it does is in one order.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final

from duolog.bridge.first_looks import FirstLooks
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import POLLS_UNSETTLED
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.asking import Asking
from duolog.errors import DuologError, InvalidRequest, KafkaWorkerUnavailable, PositionChanged
from duolog.log.access import TopicRef
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import GroupPosition, Settled, Side, Topic

LONGEST_WAIT_SECONDS: Final = 300.0
_MOST_WAITING: Final = 128  # who wait for Kafka; others who ask the worker have room besides
_MOVE_SECONDS: Final = 30.0
_NOTICE_SECONDS: Final = 2.0
_SILENT_SECONDS: Final = 5.0  # after no answer, polls do not ask again for so long,
_QUICK_SECONDS: Final = 0.5  # unless it was known as quickly
_AGAIN_SECONDS: Final = 0.1
_LATER_SECONDS: Final = 2.0  # an answer may come so much later than what it says

Clock = Callable[[], float]


class HostGroups:
    """The groups of one host. Blocking calls are for threads, coroutines for its event loop."""

    def __init__(
        self,
        log: EmbeddedLog,
        tally: Tally,
        journal: Journal,
        worker: Callable[[], Asking | None],
        clock: Clock = time.monotonic,
    ) -> None:
        """`worker` is there where the log is mirrored."""
        self._log = log
        self._tally = tally
        self._journal = journal
        self._clock = clock
        self._first_looks = FirstLooks(clock)
        self._silence: str | None = None  # why the worker did not answer the last poll
        self._silent_until = 0.0
        self._waiting = 0
        self._guard = threading.Lock()  # of how many wait
        self._worker = worker

    # -- moving

    def seek(
        self,
        group: str,
        reference: TopicRef,
        partition: int,
        position: int,
        *,
        expected_version: int | None = None,
        side: Side = Side.NATIVE,
    ) -> GroupPosition:
        """Move a group anywhere. GroupHasMembers while it has members in Kafka."""
        log, worker = self._log, self._worker()
        topic = log.topic(reference)
        log.group_position(group, topic.id, partition)  # names that cannot be are refused here
        is_valid = isinstance(position, int) and not isinstance(position, bool)
        if (
            worker is not None
            and side is Side.NATIVE
            and log.mirror(topic.id, partition) is not None
            and is_valid
            and 0 <= position <= log.offsets(topic.id)[partition].next_offset
        ):
            asked = {"position": position, "expected_version": expected_version}
            where = {"group": group, "topic": topic.name, "partition": partition}
            if worker.ask("group.reset", {**where, **asked}, _MOVE_SECONDS).result():
                moved = log.group_position(group, topic.id, partition)
                if moved is None:
                    raise PositionChanged(f"Group '{group}' was moved, and then deleted.")
                return moved
        return log.seek(
            group, topic.id, partition, position, expected_version=expected_version, side=side
        )

    def delete_group(
        self, group: str, reference: TopicRef | None = None, *, side: Side = Side.NATIVE
    ) -> int:
        """Forget a group, in one topic or in all. GroupHasMembers while it has some in Kafka."""
        log, worker = self._log, self._worker()
        topic = None if reference is None else log.topic(reference)
        mirrors = log.mirrors(None if topic is None else topic.id)
        if worker is not None and side is Side.NATIVE and mirrors:
            log.group_positions(group)
            asked = {"group": group, "topic": None if topic is None else topic.name}
            deleted = worker.ask("group.delete", asked, _MOVE_SECONDS).result()
            if isinstance(deleted, int):
                return deleted
        return log.delete_group(group, None if topic is None else topic.id, side=side)

    def expire_group(self, group: str, before_ms: float) -> bool:
        """Forget a group that nobody has used since then, also in Kafka. GroupHasMembers while it
        has some there; False when it was used, or when Kafka may know that it was.
        """
        log, worker = self._log, self._worker()
        if worker is None:
            return False
        mirrored = {mirror.topic for mirror in log.mirrors()}
        topics = {each.topic for each in log.group_positions(group)} & mirrored
        for topic in sorted(topics):
            asked = {"group": group, "topic": topic, "partition": None}
            within = {"within_seconds": _NOTICE_SECONDS}
            if worker.ask("group.notice", {**asked, **within}, 2 * _NOTICE_SECONDS).result():
                return False
        return bool(log.idle_groups(before_ms, group)) and self.delete_group(group) > 0

    # -- bringing together

    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = _MOVE_SECONDS,
    ) -> Settled:
        """Wait until a group is at one place on both sides, in a thread that may wait."""
        topic = self._log.topic(reference)
        return asyncio.run(self.settled(group, topic, partition, timeout_seconds))

    async def settled(
        self, group: str, topic: Topic, partition: int | None, timeout_seconds: float
    ) -> Settled:
        """The same on an event loop. The group is handed over with it, so its next poll asks."""
        if not 0 <= timeout_seconds <= LONGEST_WAIT_SECONDS:
            raise InvalidRequest(
                f"A wait takes 0 to {LONGEST_WAIT_SECONDS:.0f} seconds; got {timeout_seconds}."
            )
        self._log.group_position(group, topic.id, partition or 0)  # refuses what cannot be
        self._first_looks.handed_over(group, topic.id, partition)
        worker = self._worker()
        if worker is None:
            return self._log.settle_group(group, topic.id, partition)
        with self._guard:
            if self._waiting >= _MOST_WAITING:
                return Settled(f"{_MOST_WAITING} others wait for Kafka; wait again a little later")
            self._waiting += 1
        try:
            return await self._settled(worker, group, topic, partition, timeout_seconds)
        finally:
            with self._guard:
                self._waiting -= 1

    async def _settled(
        self,
        worker: Asking,
        group: str,
        topic: Topic,
        partition: int | None,
        timeout_seconds: float,
    ) -> Settled:
        until = self._clock() + timeout_seconds
        while True:
            left = max(0.0, until - self._clock())
            asked = {"group": group, "topic": topic.name, "partition": partition}
            try:
                pending = await worker.asked(
                    "group.settle", {**asked, "within_seconds": left}, 1.2 * left + _LATER_SECONDS
                )
                return Settled("; ".join(pending))
            except KafkaWorkerUnavailable as error:  # it may be started again in time
                if worker.is_closed or self._clock() + _AGAIN_SECONDS >= until:
                    return Settled(str(error))
            except DuologError as error:
                return Settled(str(error))
            await asyncio.sleep(_AGAIN_SECONDS)

    async def before_poll(self, group: str, topic: Topic, partition: int | None) -> str | None:
        """Have what was committed in Kafka count before a group's first poll for a while.

        Why it may not, when Kafka does not say in time: the poll goes on with what is known.
        """
        worker = self._worker()
        if worker is None or not self._first_looks.is_due(group, topic.id, partition):
            return None
        why = self._silence
        if why is None or self._clock() >= self._silent_until:
            why = await self._noticed(worker, group, topic, partition)
        if why is not None:
            self._tally.add(POLLS_UNSETTLED)
        return why

    async def _noticed(
        self, worker: Asking, group: str, topic: Topic, partition: int | None
    ) -> str | None:
        asked = {"group": group, "topic": topic.name, "partition": partition}
        was, silence, began = self._silence, None, self._clock()
        try:
            pending = await worker.asked(
                "group.notice", {**asked, "within_seconds": _NOTICE_SECONDS}, 2 * _NOTICE_SECONDS
            )
        except DuologError as error:
            pending, silence = [str(error)], str(error)
        took = self._clock() - began
        self._silent_until = self._clock() + (_SILENT_SECONDS if took > _QUICK_SECONDS else 0.0)
        self._silence = silence
        if silence is not None and was is None:
            self._journal.warn("polls.unsettled", group=group, topic=topic.name, error=silence)
        elif silence is None and was is not None:
            self._journal.note("polls.settled")
        return "; ".join(pending) or None

    def after_poll(self, group: str, topic: Topic, partition: int | None) -> None:
        """It was answered."""
        if self._worker() is not None:
            self._first_looks.answered(group, topic.id, partition)
