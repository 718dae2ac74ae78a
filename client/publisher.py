"""A publisher for asyncio: records are durable when a call returns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self, Unpack

from duolog.client.host_calls import HostCalls
from duolog.client.lanes import Lane, Lanes
from duolog.client.messages import (
    MOST_ROWS,
    Change,
    Headers,
    NewRecord,
    message_of,
    messages_of_rows,
    requests_of,
)
from duolog.client.option_words import PublisherWords
from duolog.client.options import PublisherOptions
from duolog.errors import ClientClosed, DuologError, InvalidRequest, OutcomeUnknown
from duolog.log.model import Placed

MOST_AT_ONCE: Final = 16


class AsyncPublisher:
    """Publishes to topics; use it as an async context manager. Many tasks may use it at once.

    A lost answer is asked for again, and no record is written twice by that. Records of one call
    keep their order, and so do calls of which each waits for the one before.
    """

    def __init__(self, **options: Unpack[PublisherWords]) -> None:
        self._options = PublisherOptions.of(options)
        self._host = HostCalls(self._options.connection)
        writer = self._options.writer
        self._named = None if writer is None else Lane(writer, self._options.next_sequence, True)
        self._lanes = Lanes(self._named)
        self._room = asyncio.Semaphore(MOST_AT_ONCE if writer is None else 1)
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._options.connection.address}>"

    @property
    def next_sequence(self) -> int:
        """With `writer`: the number of the next record, to be kept for a restart."""
        if self._named is None:
            raise InvalidRequest("This publisher has no name of its own. Give 'writer' to it.")
        return self._named.next_sequence

    async def last_sequence(self, writer: str | None = None) -> int | None:
        """The highest number that a writer has published, this one if none is named; None when the
        log does not know the writer, or has forgotten it.
        """
        self._check_open()
        if writer is None and self._named is None:
            raise InvalidRequest("This publisher has no name of its own. Name a writer.")
        return await self._host.last_sequence(writer or self._options.writer or "")

    async def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        op: str | None = None,
        table: str | None = None,
        payload_mode: str | None = None,
        ts_ms: int | None = None,
    ) -> Placed:
        """Write one record; where it lies. Bytes go as they are, text as UTF-8, else as JSON."""
        record = NewRecord(value, key, headers, partition, op, table, payload_mode, ts_ms)
        return (await self.publish_many(topic, [record]))[0]

    async def publish_many(self, topic: str, records: Iterable[NewRecord | Any]) -> list[Placed]:
        """Write records, or values without keys; where each lies.

        All or none of up to 1,000; more go in several requests, and then OutcomeUnknown and other
        errors may leave the first ones written.
        """
        self._check_open()
        messages = [
            message_of(one if isinstance(one, NewRecord) else NewRecord(one)) for one in records
        ]
        placed: list[Placed] = []
        async with self._lane() as lane:
            for group in requests_of(messages):
                # Counted before they are sent: what becomes of them may never be known, and no
                # other record must have their sequences. A gap does no harm.
                first = lane.next_sequence
                lane.next_sequence = first + len(group)
                try:
                    placed += await self._host.publish(
                        topic, group, lane.writer, first, in_order=self._options.in_order
                    )
                except OutcomeUnknown as error:
                    self._doubt(lane, first)
                    raise _unknown(error, lane.writer, first) from error
                except DuologError:
                    if self._options.in_order:  # refused: the next record takes its number
                        lane.next_sequence = first
                    raise
                except BaseException:  # cancelled: it may be on its way
                    self._doubt(lane, first)
                    raise
        return placed

    async def publish_rows(
        self,
        table: str,
        op: str,
        rows: Iterable[Mapping[str, Any]],
        key_columns: Sequence[str] = (),
        *,
        before: Iterable[Mapping[str, Any] | None] | None = None,
        unrouted: str = "fail",
        ts_ms: int | None = None,
    ) -> list[Placed]:
        """Write rows of a table to every topic that has a route for them; where each record lies.

        `op` is insert, update, delete or read; `ts_ms` when the change was made. `before` has the
        row before each update or delete, and None where it is not known. Rows that no route takes
        are refused, or left out with `unrouted="drop"`. All or none of up to 250 rows; more go in
        several requests.
        """
        self._check_open()
        at_ms = int(time.time() * 1000) if ts_ms is None else ts_ms  # the same when sent again
        change = Change(table, op, tuple(key_columns), at_ms, unrouted)
        placed: list[Placed] = []
        async with self._lane() as lane:
            for group in requests_of(messages_of_rows(rows, before), MOST_ROWS):
                writer, first = lane.writer, lane.next_sequence
                try:
                    made = await self._host.publish_rows(
                        change, group, writer, first, in_order=self._options.in_order
                    )
                except OutcomeUnknown as error:
                    lane.begin_anew()
                    self._doubt(lane, first)
                    raise _unknown(error, writer, first) from error
                except BaseException as error:
                    lane.begin_anew()
                    if not isinstance(error, DuologError):
                        self._doubt(lane, first)
                    raise
                lane.next_sequence = first + len(made)
                placed += made
        return placed

    @asynccontextmanager
    async def _lane(self) -> AsyncIterator[Lane]:
        async with self._room:
            lane = self._lanes.take()
            try:
                if lane.doubted_from is not None:
                    lane.go_on_behind(await self._host.last_sequence(lane.writer))
                yield lane
            finally:
                self._lanes.give_back(lane)

    def _doubt(self, lane: Lane, first: int) -> None:
        """In order, the next record's sequence depends on whether this one was written."""
        if self._options.in_order:
            lane.doubted_from = first

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed(f"{self!r} has been closed. Make a new one.")

    async def close(self) -> None:
        """Let go of the host. Closing again does nothing."""
        self._closed = True
        await self._host.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _unknown(error: OutcomeUnknown, writer: str, first: int) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{error} As writer '{writer}' with next_sequence={first}, it can be sent again without "
        "being written twice."
    )
