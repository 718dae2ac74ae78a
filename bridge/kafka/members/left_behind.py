"""Sends away the proxies of a worker that was killed: Kafka would wait for them until their
sessions end, which takes up to 45 s, and give nobody their partitions meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from duolog.bridge.kafka.access import client_of
from duolog.bridge.kafka.feed.offset_requests import FindCoordinator
from duolog.bridge.kafka.mirror.connections import Connections
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.fields import NO_TAGS, Reader, array, int32, text
from duolog.bridge.kafka.wire.requests import Prepared, Versions
from duolog.errors import KafkaUnsupported

_LEAVE_GROUP: Final = (13, 4)
_HEARTBEAT: Final = (68, 0)
_NULL: Final = b"\0"
_LEAVING: Final = -1
_ASK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a Kafka group."""

    group: str
    member_id: str
    is_classic: bool


@dataclass(frozen=True, slots=True)
class Leave:
    """A member goes, as its group's protocol has it."""

    member: Member

    def prepare(self, versions: Versions) -> Prepared[int]:
        key, version = _LEAVE_GROUP if self.member.is_classic else _HEARTBEAT
        lowest, highest = versions.get(key, (0, -1))
        if not lowest <= version <= highest:
            raise KafkaUnsupported(f"The broker does not know request {key} version {version}.")
        body = self._classic() if self.member.is_classic else self._newer()
        return Prepared(key, version, body, _error)

    def _classic(self) -> bytes:
        members = array([text(self.member.member_id) + _NULL + NO_TAGS])
        return text(self.member.group) + members + NO_TAGS

    def _newer(self) -> bytes:
        named = text(self.member.group) + text(self.member.member_id) + int32(_LEAVING)
        return named + _NULL + _NULL + int32(-1) + _NULL + _NULL + _NULL + NO_TAGS


def _error(answer: Reader) -> int:
    answer.int32()
    return answer.int16()


async def send_away(settings: KafkaSettings, client_prefix: str) -> int:
    """Have all members go whose client id begins so; how many there were."""
    found = await asyncio.to_thread(_members, settings, client_prefix)
    if not found:
        return 0
    connections = Connections(settings)
    try:
        await connections.look(())
        for member in found:
            coordinator = await connections.send_to_any(FindCoordinator(member.group))
            if not coordinator.error:
                await connections.send(coordinator.node, Leave(member))
    finally:
        await connections.close()
    return len(found)


def _members(settings: KafkaSettings, client_prefix: str) -> list[Member]:
    from confluent_kafka import ConsumerGroupType, KafkaException
    from confluent_kafka.admin import AdminClient

    admin: Any = client_of(AdminClient, {**settings.for_confluent(), "log_level": 0})
    try:
        listed = admin.list_consumer_groups(request_timeout=_ASK_SECONDS).result().valid
        names = [each.group_id for each in listed]
        if not names:
            return []
        asked = admin.describe_consumer_groups(names, request_timeout=_ASK_SECONDS)
    except KafkaException:
        return []
    found = []
    for group, future in asked.items():
        try:
            described = future.result()
        except KafkaException:
            continue  # it is gone, or may not be looked at
        is_classic = described.type is not ConsumerGroupType.CONSUMER
        found += [
            Member(group, each.member_id, is_classic)
            for each in described.members
            if each.client_id.startswith(client_prefix)
        ]
    return found
