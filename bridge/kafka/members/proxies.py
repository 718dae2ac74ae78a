"""All proxies of a worker, and what the host asks of them.

    member_join     {group, topic, member}: {"joint": false} where Kafka is not to assign
    member_leave    {topic, member}
    member_commit   {topic, member, partition, position}: a native acknowledgement
    member_let_go   {topic, member, revocation}: of what is being taken from it
    members_in_kafka  {groups, topics}: who is a member besides

and what it is told, as events: `members_began`, `member_assigned`, `member_revoking`,
`member_lost`, `member_refused`, `members_counted`: how many others have partitions, after a change,
and `mirrored`: up to where topics that have members are in Kafka.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent import futures
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from duolog.bridge.kafka.access import client_of
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.members.described import (
    assigned_to,
    described,
    group_seen,
    members_at_rest,
)
from duolog.bridge.kafka.members.protocol import NEWER, GroupSeen, Protocol, protocol_for
from duolog.bridge.kafka.members.proxy import Assigned, Event, Lost, Proxy, Refused, Revoking
from duolog.bridge.kafka.positions.decisions import Agreed, AwaitEmptyGroup, OneWay
from duolog.bridge.kafka.positions.own_commits import OwnCommits
from duolog.bridge.kafka.positions.settler import Outcome
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import DuologError, KafkaUnreachable, PartitionRevoked
from duolog.log.mirror_model import Mirror
from duolog.log.offset_map import OffsetMap

CLIENT_PREFIX: Final = "duolog-"
_MIRRORED_SECONDS: Final = 0.02
_SETTLE_AGAIN_SECONDS: Final = 0.02
_COUNT_AFTER_SECONDS: Final = 1.0  # so that a change is over, and many at once are one
_MOST_COUNT_AFTER_SECONDS: Final = 30.0  # where one is not over, twice as long each time up to this
_SHARED_OUT_SECONDS: Final = 10.0  # at most, before a member of a new kind is let in
_LOOK_AGAIN_SECONDS: Final = 0.05
_MOST_SHOWN: Final = 200  # members in one answer
_MOST_TOLD: Final = 1000  # partitions in one line

Tell = Callable[..., object]
Settle = Callable[[str], Future[tuple[Outcome, ...]]]
Key = tuple[str, str]  # member, topic


class Proxies:
    """Used on the worker's event loop, but for `_told`, which proxies call from their threads, and
    what asks Kafka, in others.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        groups: GroupFilter,
        mirrors: Callable[[], Iterable[Mirror]],
        is_being_found_out: Callable[[str], bool],
        settle: Settle,
        tell: Tell,
        own: OwnCommits,
    ) -> None:
        """`is_being_found_out` says of a topic whether `mirrors` may lack it for now alone."""
        self._settings = settings
        self._groups = groups
        self._mirrors = mirrors
        self._is_being_found_out = is_being_found_out
        self._settle = settle
        self._tell = tell
        self._own = own
        self._asker: Any = None  # of this class's own, for groups and their members
        self._one_asks = threading.Lock()
        self._proxies: dict[Key, Proxy] = {}
        self._ones_join: dict[str, asyncio.Lock] = {}
        self._to_count: set[str] = set()
        self._told_mirrored: dict[str, dict[int, int]] = {}
        self._ready = asyncio.Event()  # those of a worker that was killed are gone
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def handlers(self) -> Mapping[str, Callable[[Mapping[str, Any]], Any]]:
        return {
            "member_join": self.join,
            "member_leave": self.leave,
            "member_commit": self.commit,
            "member_let_go": self.let_go,
            "members_in_kafka": self.in_kafka,
        }

    async def join(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        group, topic, member = asked["group"], asked["topic"], asked["member"]
        if not self._groups.takes(group):
            return {"joint": False}
        key = (member, topic)
        await self._ready.wait()
        mirrors = [each for each in self._mirrors() if each.topic == topic]
        if not mirrors and self._is_being_found_out(topic):
            raise KafkaUnreachable(
                f"How far topic '{topic}' is in Kafka is being found out. Ask again."
            )
        if not mirrors:
            return {"joint": False}
        async with self._ones_join.setdefault(group, asyncio.Lock()):
            known = self._proxies.get(key)
            if known is None:
                kafka_topic = mirrors[0].target.kafka_topic
                protocol = await self._protocol(group)
                settings = {
                    **self._settings.for_confluent(),
                    "client.id": f"{CLIENT_PREFIX}{member}",
                }
                told = partial(self._told, key, group)
                known = Proxy(settings, group, kafka_topic, protocol, told)
                self._proxies[key] = known
                known.start()
            elif owned := known.owned:  # a host that asks again has to be told again
                self._hear(key, group, Assigned(owned))
        # Read anew: what was read before the waiting is less than what has been told since.
        now = [each for each in self._mirrors() if each.topic == topic]
        self._tell_mirrored({topic: now}, anew=True)
        return {"joint": True}

    async def leave(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        proxy = self._proxies.pop((asked["member"], asked["topic"]), None)
        if proxy is not None:
            await asyncio.to_thread(proxy.close)
            if all(each.group != proxy.group for each in self._proxies.values()):
                self._own.forget(proxy.group)
        return {"left": proxy is not None}

    async def commit(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        proxy = self._proxies.get((asked["member"], asked["topic"]))
        number = asked["partition"]
        if proxy is None:
            raise PartitionRevoked(f"Member '{asked['member']}' is not in Kafka's group any more.")
        mirror = next((m for m in self._mirrors() if _is(m, asked["topic"], number)), None)
        if mirror is None or mirror.next_log_offset < asked["position"]:
            raise KafkaUnreachable(
                f"Topic '{asked['topic']}' partition {number} is not mirrored up to the offset "
                "that is acknowledged. Acknowledge again."
            )
        offset = OffsetMap.of_mirror(mirror).to_kafka(asked["position"])
        self._own.note(proxy.group, mirror, offset, asked["position"])
        await asyncio.wrap_future(proxy.commit(number, offset))
        return {"offset": offset}

    async def let_go(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        proxy = self._proxies.get((asked["member"], asked["topic"]))
        if proxy is not None:
            proxy.let_go(asked["revocation"])
        return {}

    def _own_clients(self) -> set[str]:
        return {f"{CLIENT_PREFIX}{member}" for member, _ in self._proxies}

    async def _protocol(self, group: str) -> Protocol:
        """That of the group's proxies, or of its other members once they have shared out. Raises
        KafkaUnreachable.
        """
        for proxy in self._proxies.values():
            if proxy.group == group:
                return proxy.protocol
        until = self._loop.time() + _SHARED_OUT_SECONDS
        while True:
            seen = await asyncio.to_thread(self._group_seen, group)
            protocol = None if seen is None else protocol_for(seen)
            if protocol is not None:
                return protocol
            if self._loop.time() > until:
                if seen is None:
                    raise KafkaUnreachable(
                        f"Kafka does not say how group '{group}' shares out its partitions. Ask "
                        "again."
                    )
                return NEWER  # the broker takes it, or says why not
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def _group_seen(self, group: str) -> GroupSeen | None:
        seen = group_seen(self._asking(), group)
        if seen is None:
            self._asker = None  # a new one has new connections
        return seen

    def _described(self, groups: list[str]) -> list[tuple[str, Any]]:
        return described(self._asking(), groups)

    def _members_at_rest(self, group: str) -> list[Any] | None:
        try:
            return members_at_rest(self._asking(), group)
        except DuologError:  # no token now
            return None

    def _asking(self) -> Any:
        """Made when it is needed: without a token it cannot be, and others do their work."""
        from confluent_kafka.admin import AdminClient

        with self._one_asks:
            if self._asker is None:
                options = {**self._settings.for_confluent(), "log_level": 0}
                self._asker = client_of(AdminClient, options)
            return self._asker

    async def in_kafka(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The members of groups that are no proxies, and what they have of some topics."""
        own = self._own_clients()
        found = await asyncio.to_thread(self._described, asked["groups"])
        topics = set(asked["topics"])
        return {
            "members": [
                {
                    "group": group,
                    "topic": topic,
                    "member": member.member_id,
                    "client": member.client_id,
                    "host": member.host,
                    "partitions": partitions,
                }
                for group, member in found
                if member.client_id not in own
                for topic, partitions in assigned_to(member, topics)
            ][:_MOST_SHOWN]
        }

    async def run(self) -> None:
        """Take members in, and tell how far the mirror is where somebody wants to know."""
        self._ready.set()
        while True:
            await asyncio.sleep(_MIRRORED_SECONDS if self._proxies else 10 * _MIRRORED_SECONDS)
            wanted = {topic for _, topic in self._proxies}
            if not wanted:
                self._told_mirrored.clear()
                continue
            found: dict[str, list[Mirror]] = {topic: [] for topic in wanted}
            for mirror in self._mirrors():
                if mirror.topic in found:
                    found[mirror.topic].append(mirror)
            self._tell_mirrored(found)

    async def close(self) -> None:
        """All leave their groups."""
        proxies, self._proxies = list(self._proxies.values()), {}
        for proxy in proxies:
            proxy.ask_to_stop()
        await asyncio.gather(*(asyncio.to_thread(proxy.close) for proxy in proxies))

    def _tell_mirrored(self, found: Mapping[str, Iterable[Mirror]], *, anew: bool = False) -> None:
        for topic, mirrors in found.items():
            upto = {each.partition: each.next_log_offset for each in mirrors}
            if anew or self._told_mirrored.get(topic) != upto:
                self._told_mirrored[topic] = upto
                told = sorted(upto.items())
                for first in range(0, len(told), _MOST_TOLD):
                    self._tell("mirrored", topic=topic, upto=told[first : first + _MOST_TOLD])

    def _told(self, key: Key, group: str, event: Event) -> None:
        """From a proxy's thread."""
        self._loop.call_soon_threadsafe(self._hear, key, group, event)

    def _hear(self, key: Key, group: str, event: Event) -> None:
        member, topic = key
        where = {"group": group, "topic": topic, "member": member}
        match event:
            case Assigned(since):
                self._begin(self._assigned(key, group, since))
            case Revoking(partitions, number):
                taken = sorted(partitions)
                self._tell("member_revoking", **where, partitions=taken, revocation=number)
            case Lost(partitions):
                self._tell("member_lost", **where, partitions=sorted(partitions))
            case Refused(error):
                self._tell("member_refused", **where, error=str(error))
        if group not in self._to_count:
            self._to_count.add(group)
            self._begin(self._count(group))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _count(self, group: str) -> None:
        """Tell how many others have partitions, once that is settled. A group that does not change
        is not asked for.
        """
        wait_seconds = _COUNT_AFTER_SECONDS
        while True:
            await asyncio.sleep(wait_seconds)
            self._to_count.discard(group)  # what changes from now on is counted anew
            topics = {
                topic: proxy.topic
                for (_, topic), proxy in self._proxies.items()
                if proxy.group == group
            }
            if not topics:
                return
            own = self._own_clients()
            found = await asyncio.to_thread(self._members_at_rest, group)
            if group in self._to_count:
                return  # by who begins now
            if found is not None:
                break
            self._to_count.add(group)
            wait_seconds = min(2 * wait_seconds, _MOST_COUNT_AFTER_SECONDS)
        others = Counter(
            kafka_topic
            for member in found
            if member.client_id not in own
            for kafka_topic, _ in assigned_to(member, topics.values())
        )
        for topic, kafka_topic in topics.items():
            self._tell("members_counted", group=group, topic=topic, others=others[kafka_topic])

    async def _assigned(self, key: Key, group: str, since: Mapping[int, int]) -> None:
        """Whoever had them before may have committed just now: the log is to know of it first.

        Meanwhile Kafka may have taken them back, or have given them to others and again to this
        proxy, who is told of that apart: what was found out for the earlier time is too old.
        """
        member, topic = key
        proxy = self._proxies.get(key)
        while proxy is not None and (partitions := proxy.still(since)):
            try:
                if await self._is_settled(proxy, group, topic, partitions):
                    break
            except (DuologError, futures.CancelledError):
                pass  # Kafka or the log is away for a moment
            await asyncio.sleep(_SETTLE_AGAIN_SECONDS)
        if proxy is not None:
            still = sorted(proxy.still(since))
            self._tell("member_assigned", group=group, topic=topic, member=member, partitions=still)

    async def _is_settled(
        self, proxy: Proxy, group: str, topic: str, partitions: frozenset[int]
    ) -> bool:
        """Whether the log knows all that was committed; what it knows more, Kafka is told."""
        outcomes = await asyncio.wrap_future(self._settle(group))
        mine = [each for each in outcomes if each.topic == topic and each.partition in partitions]
        ahead = [each for each in mine if isinstance(each.step, AwaitEmptyGroup)]
        for each in ahead:
            assert isinstance(each.step, AwaitEmptyGroup)  # noqa: S101 - just looked at
            await asyncio.wrap_future(proxy.commit(each.partition, each.step.offset))
        known = {each.partition for each in mine}
        return not ahead and partitions <= known and all(map(_is_at_rest, mine))


def _is_at_rest(outcome: Outcome) -> bool:
    return isinstance(outcome.step, Agreed | OneWay)


def _is(mirror: Mirror, topic: str, partition: int) -> bool:
    return (mirror.topic, mirror.partition) == (topic, partition)
