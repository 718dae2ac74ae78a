"""A consumer for asyncio. What it decides is in `deliveries.py`; here it is done."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, Unpack

from duolog.client.acks import Acks
from duolog.client.acks_beside import AcksBeside
from duolog.client.beats import Beats
from duolog.client.deliveries import Deliveries
from duolog.client.host_calls import HostCalls
from duolog.client.letters import Letters
from duolog.client.model import Piece, Place
from duolog.client.option_words import ConsumerWords
from duolog.client.options import ConsumerOptions, Topics
from duolog.client.pages import records_of, tables_of
from duolog.client.polling import LONGEST_POLL_SECONDS, Polls
from duolog.client.records import ConsumedRecord, Given, RecordTable, flat, pieces_of, place_of
from duolog.client.values import Values
from duolog.errors import (
    AttemptsExhausted,
    ClientClosed,
    DuologError,
    InvalidRequest,
    PartitionRevoked,
    TopicRecreated,
    UnknownPartition,
)

MOST_AT_ONCE: Final = 2_000
"""More records are decoded in a thread, so that the event loop is not held up."""

_ACK_SECONDS_AFTER_AN_ERROR: Final = 5.0


class AsyncConsumer:
    """Reads topics for a group, or for itself. Use it as an async context manager.

    It may be used by several tasks, but polls take turns.
    """

    def __init__(self, topics: Topics, **options: Unpack[ConsumerWords]) -> None:
        self._options = ConsumerOptions.of(topics, options)
        self._core = Deliveries(
            self._options.sources,
            self._options.start,
            has_group=self._options.group is not None,
            joins=True,
        )
        self._host = HostCalls(self._options.connection)
        self._values = Values(self._options)
        self._letters = Letters(self._host, self._options)
        self._polls = Polls(self._core, self._host, self._options)
        self._acks = Acks(self._core, self._host, self._options, self._polls.join_again)
        self._beats = Beats(self._core, self._host, self._options)
        self._acks_beside = AcksBeside(self._acks.send_beside)
        self._turn = asyncio.Lock()  # of polls
        self._times_taken = 0
        self._loop_has_one = False  # a record that a loop was left with, perhaps
        self._closed = False

    def __repr__(self) -> str:
        sources = ", ".join(dict.fromkeys(source.topic for source in self._core.sources))
        group = f", group '{self._options.group}'" if self._options.group else ""
        return f"<{type(self).__name__} of {sources} at {self._options.connection.address}{group}>"

    # -- reading

    async def poll(self, timeout_seconds: float = 1.0) -> list[ConsumedRecord]:
        """The next records, up to `max_records`; none when there are none in this time.

        With `auto_ack`, what the poll before gave is done now, but for what `nack` gave back. A
        member of a group is told so while it is being acknowledged: the next poll waits for that.
        """
        async with self._turn:
            self._loop_has_one = False
            pieces = await self._taken(self._options.max_records, timeout_seconds, decode=True)
            if sum(piece.stop - piece.start for piece in pieces) <= MOST_AT_ONCE:
                return records_of(pieces)
            with self._given_back_if_it_fails():
                return await asyncio.to_thread(records_of, pieces)

    async def poll_tables(self, timeout_seconds: float = 1.0) -> list[RecordTable]:
        """The next records as Arrow, a table a topic; none when there are none in this time."""
        async with self._turn:
            self._loop_has_one = False
            pieces = await self._taken(self._options.max_records, timeout_seconds, decode=False)
            with self._given_back_if_it_fails():
                return await asyncio.to_thread(tables_of, pieces, self._values.column)

    @contextmanager
    def _given_back_if_it_fails(self) -> Iterator[None]:
        """What was taken and does not reach the user, as when a poll is given up, comes again."""
        try:
            yield
        except BaseException:
            self._core.give_back_in_hand()
            raise

    async def give_back_taken(self, taken_before: int) -> None:
        """What a poll took that was interrupted: its user never got it."""
        if self._times_taken != taken_before:
            self._core.give_back_in_hand()

    @property
    def times_taken(self) -> int:
        return self._times_taken

    def __aiter__(self) -> Self:
        """Records one by one. With `auto_ack`, what an earlier loop was left with comes first."""
        self.begin_loop()
        return self

    async def __anext__(self) -> ConsumedRecord:
        record = self.next_ready()
        if record is None:
            record = await self.next_waited()
        if record is None:
            raise StopAsyncIteration
        return record

    def begin_loop(self) -> None:
        if self._loop_has_one and self._options.auto_ack:
            self._core.give_back_in_hand()
        self._loop_has_one = False

    def next_ready(self) -> ConsumedRecord | None:
        """The next record, if that takes neither waiting nor the host."""
        if self._closed:
            return None
        self._loop_has_one = True
        if self._options.auto_ack:
            if self._acks.is_due or self._core.has_stale:
                return None
            self._core.finish_in_hand()
        pieces = self._core.take(1, time.monotonic(), only_decoded=True)
        return records_of(pieces)[0] if pieces else None

    async def next_waited(self) -> ConsumedRecord | None:
        """The next record; None when none came for `idle_timeout_seconds`, and none will again."""
        until = time.monotonic() + self._options.idle_timeout_seconds
        while True:
            async with self._turn:
                end = max(until, self._core.next_due() or 0.0)
                left = max(0.0, min(LONGEST_POLL_SECONDS, end - time.monotonic()))
                pieces = await self._taken(1, left, decode=True)
            if pieces:
                return records_of(pieces)[0]
            if time.monotonic() >= until and self._core.next_due() is None:
                return None

    async def _taken(self, limit: int, timeout_seconds: float, *, decode: bool) -> list[Piece]:
        """Up to `limit` records. All that may fail comes before they are handed out."""
        self._check_open()
        if not timeout_seconds >= 0:
            raise InvalidRequest(f"timeout_seconds is 0 or more; got {timeout_seconds}.")
        until = time.monotonic() + timeout_seconds
        if self._options.auto_ack:
            self._core.finish_in_hand()
        await self._letters.check_topic()
        self._beats.polled()
        if self._options.auto_ack and (self._acks.is_due or not self._core.has_ready):
            if self._core.is_member_everywhere:
                self._acks_beside.want()
            else:
                await self._ack_what_is_ours()
        return await self._taken_beside(limit, until, decode=decode)

    async def _taken_beside(self, limit: int, until: float, *, decode: bool) -> list[Piece]:
        """Nothing is handed out while an acknowledgement takes longer than the interval; it may be
        asked for.
        """
        is_first = True
        while True:
            if not (is_first and self._core.is_empty):
                await self._acks_beside.keep_up(self._options.ack_interval_seconds)
            self._check_open()
            if self._core.has_stale:
                await self._acks_beside.keep_up(0)
                if self._options.auto_ack:
                    await self._ack_what_is_ours()
                await self._polls.join_again()
            if decode:
                await self._decode()
            pieces = self._core.take(limit, time.monotonic())
            self._times_taken += bool(pieces)
            if pieces or (time.monotonic() >= until and not is_first):
                if not pieces:
                    await self._acks_beside.keep_up(0)
                return pieces
            await self._polls.ask(until)
            is_first = False

    async def _ack_what_is_ours(self) -> None:
        with suppress(*self._acks.passed_over):  # it comes again to who has it now, or is gone
            await self._acks.send()

    async def _decode(self) -> None:
        for batch in self._core.batches():
            if batch.values is None and (batch.is_avro or len(batch) > MOST_AT_ONCE):
                await asyncio.to_thread(batch.decode, self._values)
            else:
                batch.decode(self._values)

    # -- what became of it

    async def ack(
        self, *given: Given, wait: str | None = None, timeout_seconds: float = 30.0
    ) -> None:
        """These are done; without any, all that was handed out. Durable when it returns.

        The group's position moves over what is done without a gap. With `wait="settled"`, it
        returns when Kafka has the group at the same place; NotSettled if that takes longer.
        """
        self._check_open()
        self._check_group()
        if not given:
            self._core.finish_all()
        revoked: list[PartitionRevoked | TopicRecreated] = []
        for one in flat(given):
            try:
                for piece in pieces_of(one):
                    self._core.check_topic(piece)
                if isinstance(one, ConsumedRecord):
                    self._core.finish_one(place_of(one), one.offset)
                else:
                    for piece in pieces_of(one):
                        self._core.finish(piece.place, piece.start, piece.stop)
            except (PartitionRevoked, TopicRecreated) as error:
                revoked.append(error)  # the others count all the same
        await self._acks.settle(wait, timeout_seconds)
        if revoked:
            raise revoked[0]

    async def nack(self, record: ConsumedRecord, reason: object = None) -> None:
        """This record could not be used: it comes again after a while.

        After the last of `max_attempts` it goes to `dead_letter_topic`, with the reason (an
        exception, or a text), and is done; without such a topic AttemptsExhausted is raised.
        """
        self._check_open()
        for piece in pieces_of(record):
            self._core.check_topic(piece)
        if not self._options.retries.is_last(record.attempt):
            pause = self._options.retries.pause_seconds(record.attempt, random.random())  # noqa: S311
            (piece,) = pieces_of(record)
            again = replace(piece, attempt=record.attempt + 1)
            self._core.come_again(again, time.monotonic() + pause)
            return
        if self._options.dead_letter_topic is None:
            raise AttemptsExhausted(
                f"Offset {record.offset} of topic '{record.topic}' partition {record.partition} "
                f"failed {record.attempt} times. Name a dead_letter_topic for such records, allow "
                "more with max_attempts, or acknowledge it to leave it out."
            )
        await self._letters.send(record, reason)
        self._core.finish_one(place_of(record), record.offset)

    async def commit(self) -> None:
        """Tell the host what is done, where it does not know it yet."""
        await self._acks.send()

    # -- places

    def assigned(self, topic: str) -> frozenset[int]:
        """The partitions of a topic that are this consumer's now: those that it was made for, or as
        a member of its group was told last.
        """
        named = {source.partition for source in self._core.sources if source.topic == topic}
        seats = [seat for source, seat in self._core.seats().items() if source.topic == topic]
        told = frozenset(at for seat in seats for at in seat.assigned)
        return told | frozenset(each for each in named if each is not None)

    async def position(self, topic: str, partition: int = 0) -> int:
        """The offset that is handed out next."""
        place = self._core.place_of(topic, partition)
        async with self._turn:
            await self._learn(place)
            return self._core.position(place)

    async def seek(self, topic: str, offset: int, partition: int = 0) -> None:
        """Go on from this offset, in this consumer. The group's position stays until an ack
        goes beyond it.
        """
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise InvalidRequest(f"An offset is a whole number from 0; got {offset!r}.")
        place = self._core.place_of(topic, partition)
        async with self._turn:
            await self._learn(place)
            self._core.seek(place, offset)
            await self._polls.stop(place)

    async def _learn(self, place: Place) -> None:
        """Ask once, if it is not known yet where the partition begins."""
        self._check_open()
        if self._core.is_known(place):
            return
        await self._polls.look(place)
        if not self._core.is_known(place):
            elsewhere = ", or another member of the group has it now"
            raise UnknownPartition(
                f"Topic '{place.topic}' has no partition {place.partition}"
                f"{elsewhere if self._core.is_elsewhere(place) else ''}."
            )

    # -- the end

    async def close(self, *, wait: str | None = None, timeout_seconds: float = 30.0) -> None:
        """Tell the host what is done, and let go of it. Closing again does nothing.

        With `wait="settled"` the group is handed over: a Kafka consumer that starts then goes on
        with the next record. NotSettled if that takes longer; it is closed all the same.
        """
        if self._closed:
            return
        if wait is None:
            await self._close(None)
            return
        try:
            await self._polls.stop()
            await self._acks.settle(wait, timeout_seconds)
        finally:
            await self._close(_ACK_SECONDS_AFTER_AN_ERROR)

    async def _close(self, deadline_seconds: float | None) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await self._polls.stop()
            await self._beats.stop()
            await self._acks_beside.stop()  # all is told once more
            try:
                with suppress(*self._acks.passed_over):
                    await self._acks.send(deadline_seconds)
            finally:
                await self._beats.leave()
        finally:
            await self._host.close()
            self._values.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            with suppress(DuologError):  # what went wrong first is what is told
                await self._close(_ACK_SECONDS_AFTER_AN_ERROR)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed(f"{self!r} has been closed. Make a new one.")

    def _check_group(self) -> None:
        if self._options.group is None:
            raise InvalidRequest("This consumer has no group that could acknowledge. Give 'group'.")
