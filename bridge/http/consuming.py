"""POST consume: records as soon as there are some, or none when the time is up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from duolog.bridge.http.answers import JSON_TYPE
from duolog.bridge.http.asking import shown_caller, topic_for
from duolog.bridge.http.host import Host
from duolog.bridge.http.looking import Found, Looks, P, Wanted
from duolog.bridge.http.models import ConsumeRequest
from duolog.bridge.http.sending import arrow_response, client_left, wants_arrow
from duolog.bridge.http.shown_arrow import arrow_answer
from duolog.bridge.http.shown_json import consume_answer
from duolog.bridge.http.stored_pages import fetch_stored
from duolog.bridge.metrics.names import CONSUMED, POLL_CONFLICTS, POLL_SECONDS, POLLS_WAITING
from duolog.bridge.waiting import ALL_PARTITIONS
from duolog.errors import PartitionHeld
from duolog.log import EmbeddedLog
from duolog.log.model import Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class _View(Generic[P]):
    """What a poll looks at, and how it is shown: each gives what is there, and the body."""

    looks: Looks[P]
    show: Callable[[Found[P]], Any]

    def look(self) -> tuple[Found[P], Any]:
        """May block."""
        found = self.looks.look()
        return found, self.show(found)

    def glance(self) -> tuple[Found[P], Any] | None:
        """When there is nothing; None when it takes a look to say so."""
        found = self.looks.glance()
        return None if found is None else (found, self.show(found))


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
        as_arrow = wants_arrow(request)
        view = _view(host.log, wanted, as_arrow=as_arrow)
        seconds = host.topic_rules.wait_seconds(ask.timeout_seconds)
        try:
            with self._place(topic, wanted, shown_caller(request)):
                found, body = await self._poll(wanted, view, seconds, request.receive)
        except PartitionHeld:
            host.tally.add(POLL_CONFLICTS)
            raise
        if found.pages:
            host.tally.add(CONSUMED, topic.name, by=sum(page.count for page in found.pages))
        if as_arrow:
            return arrow_response(*body)
        return Response(body, media_type=JSON_TYPE)

    def _place(self, topic: Topic, wanted: Wanted, holder: str) -> AbstractContextManager[None]:
        if wanted.group is None:
            return nullcontext()
        partitions = range(topic.partitions)
        if wanted.partition is not None:
            partitions = range(wanted.partition, wanted.partition + 1)
        return self._host.places.hold(wanted.group, topic, partitions, holder)

    async def _poll(
        self, wanted: Wanted, view: _View[Any], seconds: float, receive: Receive
    ) -> tuple[Found[Any], Any]:
        host, loop = self._host, asyncio.get_running_loop()
        began = loop.time()
        place = TopicPartition(
            wanted.topic_id, ALL_PARTITIONS if wanted.partition is None else wanted.partition
        )
        gone: asyncio.Task[None] | None = None
        with host.room.waiter((place,)) as waiter:
            try:
                while True:
                    waiter.look_again()
                    seen = view.glance()
                    if seen is None:
                        seen = await host.readers.run(view.look)
                    found, body = seen
                    left = began + seconds - loop.time()
                    ended = _ended(found, left, gone, is_stopping=host.room.is_stopping)
                    if ended is not None:
                        host.tally.note(POLL_SECONDS, ended, seconds=loop.time() - began)
                        return found, body
                    if gone is None:
                        gone = loop.create_task(client_left(receive))
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


def _view(log: EmbeddedLog, wanted: Wanted, *, as_arrow: bool) -> _View[Any]:
    if as_arrow:
        return _View(Looks(log, wanted, partial(fetch_stored, log)), arrow_answer)
    return _View(Looks(log, wanted, log.fetch), consume_answer)


def _ended(
    found: Found[Any], seconds_left: float, gone: asyncio.Task[None] | None, *, is_stopping: bool
) -> str | None:
    """Why a poll is through; None while it is not."""
    if found.pages:
        return "records"
    if gone is not None and gone.done():
        return "gone"
    if is_stopping:
        return "stopped"
    return "timeout" if seconds_left <= 0 else None
