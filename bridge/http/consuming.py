"""POST consume: records as soon as there are some, or none when the time is up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic

from starlette.requests import Request
from starlette.responses import Response

from duolog.bridge.http.asking import (
    answer_of,
    check_still_let_in,
    shown_caller,
    token_name,
    topic_for,
    visible_reads,
)
from duolog.bridge.http.host import Host
from duolog.bridge.http.looking import Found, Looks, P, Share, Wanted, without_bound
from duolog.bridge.http.models import ConsumeRequest
from duolog.bridge.http.sending import arrow_response, client_left, json_text_response, wants_arrow
from duolog.bridge.http.shown_arrow import arrow_answer
from duolog.bridge.http.shown_json import consume_answer
from duolog.bridge.http.stored_pages import fetch_stored
from duolog.bridge.members.coordinator import Call, Place, Seat
from duolog.bridge.metrics.names import CONSUMED, POLL_CONFLICTS, POLL_SECONDS, POLLS_WAITING
from duolog.bridge.visible_reads import VisibleReads
from duolog.bridge.waiting import ALL_PARTITIONS, Waiter, in_kafka
from duolog.errors import PartitionHeld, UnknownTopic
from duolog.log import EmbeddedLog
from duolog.log.fetched import Fetched
from duolog.log.model import Topic, TopicPartition

_MOST_IN_JSON: Final = 100_000  # records: each takes 200 bytes and more, however small it is
_MOST_BYTES_AS_JSON, _MOST_BYTES_AS_ARROW = 8 << 20, 16 << 20
_TIMES_AS_JSON, _TIMES_AS_ARROW = 6, 2


@dataclass(frozen=True, slots=True)
class _View(Generic[P]):
    """What a poll looks at, and how it is shown: each gives what is there, and the body."""

    looks: Looks[P]
    show: Callable[[Found[P]], Any]
    times: int  # how many times the bytes of its records it takes to read and to show them
    passes_over: bool = False  # records that are not the caller's: a look may end before the head

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
        topic = topic_for(host, request, ask)
        as_arrow = wants_arrow(request)
        wanted = Wanted(
            topic.id,
            ask.group_id,
            ask.partition_id,
            ask.start,
            ask.limit if as_arrow else min(ask.limit, _MOST_IN_JSON),
            min(ask.max_bytes, _MOST_BYTES_AS_ARROW if as_arrow else _MOST_BYTES_AS_JSON),
            next(self._turns),
            {int(each): offset for each, offset in (ask.next_offsets or {}).items()},
        )
        reads = visible_reads(host, request, topic)
        seconds = host.topic_rules.wait_seconds(ask.timeout_seconds)
        try:
            with self._seated(topic, wanted, ask, request) as seat:
                unsettled = await self._before(topic, wanted, seat)
                skip_damaged = ask.on_damage == "skip"
                view = _view(
                    host.log, wanted, unsettled, reads, as_arrow=as_arrow, skip_damaged=skip_damaged
                )
                found, body = await self._poll(wanted, view, seconds, request, seat)
            check_still_let_in(host, request)
        except PartitionHeld:
            host.tally.add(POLL_CONFLICTS)
            raise
        except UnknownTopic:  # dropped while the poll waited; is there another one of its name?
            if ask.expected_id is not None:
                topic_for(host, request, ask)
            raise
        if host.kafka_worker is not None and seat is not None and ask.generation is None:
            self._begin_in_kafka(seat, topic, found.place)
        if wanted.group is not None:
            host.groups.after_poll(wanted.group, topic, wanted.partition)
        if found.pages:
            host.tally.add(CONSUMED, topic.name, by=sum(page.count for page in found.pages))
        if as_arrow:
            return arrow_response(*body)
        return json_text_response(body)

    async def _before(self, topic: Topic, wanted: Wanted, seat: Seat | None) -> str | None:
        """Kafka is asked where the group is; a member was told so when it got its partitions."""
        if wanted.group is None or (seat is not None and not seat.is_provisional):
            return None
        return await self._host.groups.before_poll(wanted.group, topic, wanted.partition)

    def _begin_in_kafka(self, seat: Seat, topic: Topic, place: Place | None) -> None:
        """Of the partitions that a member has just been told."""
        if place is None:
            return
        group = seat.gathering.group
        found = (self._host.log.group_position(group, topic.id, each) for each in place.assigned)
        begun = {each.partition: each.position for each in found if each and each.is_first}
        seat.gathering.begin_in_kafka(seat.member_id, begun)

    @contextmanager
    def _seated(
        self, topic: Topic, wanted: Wanted, ask: ConsumeRequest, request: Request
    ) -> Iterator[Seat | None]:
        """Who reads for a group: a member, or whoever names a partition that no member has."""
        holder = shown_caller(request)
        group, places, members = wanted.group, self._host.places, self._host.members
        if group is None:
            yield None
            return
        if wanted.partition is not None:
            named = range(wanted.partition, wanted.partition + 1)
            members.check_free(group, topic, named)
            with places.hold(group, topic, named, holder):
                yield None
            return
        call = Call(
            holder,
            ask.member_id,
            ask.generation,
            ask.session_timeout_seconds,
            token_name(request.scope),
        )
        with members.seat(group, topic, call) as seat:
            assigned = sorted(seat.place().assigned)
            if not seat.is_provisional:
                places.check_free(group, topic, assigned)
                yield seat
                return
            with places.hold(group, topic, assigned, holder):
                yield seat

    async def _poll(
        self,
        wanted: Wanted,
        view: _View[Any],
        seconds: float,
        request: Request,
        seat: Seat | None,
    ) -> tuple[Found[Any], Any]:
        host, loop = self._host, asyncio.get_running_loop()
        began = loop.time()
        place = TopicPartition(
            wanted.topic_id, ALL_PARTITIONS if wanted.partition is None else wanted.partition
        )
        gone: asyncio.Task[None] | None = None
        places = (place,) if seat is None else (place, in_kafka(wanted.topic_id))
        with host.room.waiter(places) as waiter, _woken(seat, waiter):
            try:
                while True:
                    waiter.look_again()
                    share = None if seat is None else self._share(seat, view)
                    seen = view.glance()
                    if seen is None:
                        seen = await self._look(view, request)
                    if seat is not None and share is not None and not seat.is_still(share.place):
                        continue
                    found, body = seen
                    left = began + seconds - loop.time()
                    ended = _ended(found, left, gone, is_stopping=host.room.is_stopping)
                    if ended is not None:
                        host.tally.note(POLL_SECONDS, ended, seconds=loop.time() - began)
                        return found, body
                    if gone is None:
                        gone = loop.create_task(client_left(request.receive))
                    if view.passes_over and found.has_more and not found.damaged:
                        continue
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

    async def _look(self, view: _View[P], request: Request) -> tuple[Found[P], Any]:
        """A look that may read much: no more than there is memory for."""
        most = view.looks.expected_bytes()
        with self._host.reading_memory.request(token_name(request.scope)) as memory:
            await memory.wait_for(view.times * most)
            answer_of(request).check()  # not before: others were answered meanwhile
            view.looks.most_bytes = most
            found, body = await self._host.readers.run(view.look)
            answer_of(request).now_has(_size_of(body))
            return found, body

    def _share(self, seat: Seat, view: _View[Any]) -> Share:
        """What a member may read now."""
        gathering = seat.gathering
        gathering.grow(self._host.log.topic(gathering.topic.id))
        share = Share(seat.place(), gathering.upto())
        view.looks.share = share
        return share


@contextmanager
def _woken(seat: Seat | None, waiter: Waiter) -> Iterator[None]:
    """Also when something changes for the member."""
    if seat is None:
        yield
        return
    end = seat.gathering.wait(seat.member_id, waiter)
    try:
        yield
    finally:
        end()


def _view(
    log: EmbeddedLog,
    wanted: Wanted,
    unsettled: str | None,
    reads: VisibleReads | None,
    *,
    as_arrow: bool,
    skip_damaged: bool,
) -> _View[Any]:
    show: Callable[[Found[Any]], Any] = partial(
        arrow_answer if as_arrow else consume_answer, unsettled=unsettled
    )
    times = _TIMES_AS_ARROW if as_arrow else _TIMES_AS_JSON
    if reads is not None:
        visible = partial(_fetch_visible, reads, skip_damaged=skip_damaged)
        return _View(Looks(log, wanted, visible), show, times, passes_over=True)
    fetch: Callable[..., Any] = partial(fetch_stored, log) if as_arrow else log.fetch
    bounded = without_bound(partial(fetch, skip_damaged=skip_damaged))
    return _View(Looks(log, wanted, bounded), show, times)


def _size_of(body: bytes | list[Any]) -> int:
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


def _fetch_visible(
    reads: VisibleReads, topic_id: int, partition: int, offset: int, /, **limits: Any
) -> Fetched:
    del topic_id  # it is that of the reads
    return reads.fetch(partition, offset, **limits)


def _ended(
    found: Found[Any], seconds_left: float, gone: asyncio.Task[None] | None, *, is_stopping: bool
) -> str | None:
    """Why a poll is through; None while it is not."""
    if found.has_records:
        return "records"
    if gone is not None and gone.done():
        return "gone"
    if is_stopping:
        return "stopped"
    return "timeout" if seconds_left <= 0 else None
