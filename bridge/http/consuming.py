"""POST consume: records as soon as there are some, or none when the time is up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive

from duolog.bridge.http.answers import JSON_TYPE
from duolog.bridge.http.asking import shown_caller, topic_for
from duolog.bridge.http.host import Host
from duolog.bridge.http.looking import Found, Looks, Wanted
from duolog.bridge.http.models import ConsumeRequest
from duolog.bridge.http.shown_arrow import MEDIA_TYPE, arrow_answer
from duolog.bridge.http.shown_json import consume_answer
from duolog.bridge.metrics.names import CONSUMED, POLL_CONFLICTS, POLL_SECONDS, POLLS_WAITING
from duolog.bridge.waiting import ALL_PARTITIONS
from duolog.errors import PartitionHeld
from duolog.log.model import Topic, TopicPartition

_PIECE_BYTES: Final = 256 << 10


class Consuming:
    """The polls of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._turns = itertools.count()

    async def consume(self, request: Request, ask: ConsumeRequest) -> Response:
        """Read records, waiting for the first one."""
        host = self._host
        topic = topic_for(host, request, ask.reference)
        wanted = Wanted(
            topic.id,
            ask.group_id,
            ask.partition_id,
            ask.start,
            ask.limit,
            ask.max_bytes,
            next(self._turns),
        )
        looks = Looks(host.log, wanted)
        as_arrow = _wants_arrow(request)
        seconds = host.topic_rules.wait_seconds(ask.timeout_seconds)
        try:
            with self._place(topic, wanted, shown_caller(request)):
                found, body = await self._poll(looks, seconds, request.receive, as_arrow)
        except PartitionHeld:
            host.tally.add(POLL_CONFLICTS)
            raise
        if found.pages:
            host.tally.add(CONSUMED, topic.name, by=sum(page.count for page in found.pages))
        if as_arrow:
            length = {"content-length": str(len(body))}
            return StreamingResponse(_pieces(body), media_type=MEDIA_TYPE, headers=length)
        return Response(body, media_type=JSON_TYPE)

    def _place(self, topic: Topic, wanted: Wanted, holder: str) -> AbstractContextManager[None]:
        if wanted.group is None:
            return nullcontext()
        partitions = range(topic.partitions)
        if wanted.partition is not None:
            partitions = range(wanted.partition, wanted.partition + 1)
        return self._host.places.hold(wanted.group, topic, partitions, holder)

    async def _poll(
        self, looks: Looks, seconds: float, receive: Receive, as_arrow: bool
    ) -> tuple[Found, Any]:
        host, loop = self._host, asyncio.get_running_loop()
        began = loop.time()
        partition = looks.wanted.partition
        place = TopicPartition(
            looks.wanted.topic_id, ALL_PARTITIONS if partition is None else partition
        )

        def look() -> tuple[Found, Any]:
            found = looks.look()
            return found, (arrow_answer if as_arrow else consume_answer)(found)

        gone: asyncio.Task[None] | None = None
        with host.room.waiter((place,)) as waiter:
            try:
                while True:
                    waiter.look_again()
                    found, body = await host.readers.run(look)
                    left = began + seconds - loop.time()
                    ended = _ended(found, left, gone, is_stopping=host.room.is_stopping)
                    if ended is not None:
                        host.tally.note(POLL_SECONDS, ended, seconds=loop.time() - began)
                        return found, body
                    if gone is None:
                        gone = loop.create_task(_client_left(receive))
                    host.tally.add(POLLS_WAITING)
                    try:
                        await waiter.wait(gone, left)
                    finally:
                        host.tally.add(POLLS_WAITING, by=-1)
            finally:
                if gone is not None:
                    gone.cancel()
                    with suppress(asyncio.CancelledError):
                        await gone


def _ended(
    found: Found, seconds_left: float, gone: asyncio.Task[None] | None, *, is_stopping: bool
) -> str | None:
    """Why a poll is through; None while it is not."""
    if found.pages:
        return "records"
    if gone is not None and gone.done():
        return "gone"
    if is_stopping:
        return "stopped"
    return "timeout" if seconds_left <= 0 else None


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _wants_arrow(request: Request) -> bool:
    return any(MEDIA_TYPE in line.lower() for line in request.headers.getlist("accept"))


async def _pieces(body: Any) -> AsyncIterator[memoryview]:
    """In pieces, so that what a slow client has not taken does not pile up twice."""
    view = memoryview(body)
    for at in range(0, len(view), _PIECE_BYTES):
        yield view[at : at + _PIECE_BYTES]
