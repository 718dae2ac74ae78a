"""POST publish, ack and latest-offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from duolog.bridge.groups import LONGEST_WAIT_SECONDS
from duolog.bridge.http.answers import json_response
from duolog.bridge.http.asking import caller_of, check_table, topic_for
from duolog.bridge.http.host import Host
from duolog.bridge.http.messages import op_of, records_of
from duolog.bridge.http.models import (
    AckRequest,
    HeartbeatRequest,
    LargePublishRequest,
    LastSequenceRequest,
    LeaveRequest,
    OffsetsRequest,
    PublishRequest,
)
from duolog.log.model import GroupPosition, Placed, Unrouted

_MOST_ON_THE_LOOP: Final = 200  # messages; more hold up the others longer than a thread would


class Topics:
    """What is done to topics besides reading them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def publish(self, request: Request, ask: PublishRequest) -> Response:
        """Write messages, or rows of a table; durable when answered."""
        placed = await (
            self._messages(request, ask) if ask.messages is not None else self._rows(request, ask)
        )
        return published_answer(placed)

    async def _messages(self, request: Request, ask: PublishRequest) -> Sequence[Placed]:
        log = self._host.log
        topic = topic_for(self._host, request, ask)
        messages = ask.messages or []
        writer, sequence = self._writer(request, ask), ask.sequence
        if isinstance(ask, LargePublishRequest):
            made = ask.records
            return await self._host.writers.run(
                lambda: log.publish(
                    topic.id, made, writer=writer, sequence=sequence, in_order=ask.in_order
                )
            )
        if len(messages) > _MOST_ON_THE_LOOP:
            return await self._host.writers.run(
                lambda: log.publish(
                    topic.id,
                    records_of(messages),
                    writer=writer,
                    sequence=sequence,
                    in_order=ask.in_order,
                )
            )
        records = records_of(messages)
        return await self._host.landing.result(
            lambda then: log.publish_then(
                topic.id, records, then, writer=writer, sequence=sequence, in_order=ask.in_order
            )
        )

    async def _rows(self, request: Request, ask: PublishRequest) -> Sequence[Placed]:
        log = self._host.log
        table, op = ask.table or "", op_of(ask.op or "")
        check_table(self._host, request, table)
        writer = self._writer(request, ask)
        return await self._host.writers.run(
            lambda: log.publish_rows(
                table,
                op,
                ask.rows,
                ask.key_columns,
                before=ask.before,
                unrouted=Unrouted(ask.unrouted),
                ts_ms=ask.ts,
                writer=writer,
                sequence=ask.sequence,
                in_order=ask.in_order,
            )
        )

    def _writer(self, request: Request, ask: PublishRequest) -> str | None:
        return None if ask.writer is None else caller_of(request).own_writer(ask.writer)

    async def last_sequence(self, request: Request, ask: LastSequenceRequest) -> Response:
        """How far a writer has published."""
        log = self._host.log
        writer = caller_of(request).own_writer(ask.writer)
        last = await self._host.writers.run(lambda: log.last_sequence(writer))
        return json_response({"writer": ask.writer, "last_sequence": last})

    async def ack(self, request: Request, ask: AckRequest) -> Response:
        """Everything up to and including an offset is done."""
        log = self._host.log
        topic = topic_for(self._host, request, ask)

        def store() -> GroupPosition:
            return log.ack(ask.group_id, topic.id, ask.upto_offset, ask.partition_id)

        partition = ask.partition_id
        if partition is None and topic.partitions == 1:
            partition = 0
        if ask.member_id is None or ask.generation is None or partition is None:
            position = await self._host.writers.run(store)
        else:
            async with self._host.members.acking(
                ask.group_id, topic, ask.member_id, ask.generation, partition
            ) as gathering:
                await gathering.tell_kafka(ask.member_id, partition, ask.upto_offset)
                position = await self._host.writers.run(store)
        answer: dict[str, Any] = {
            "success": True,
            "topic_id": topic.id,
            "acknowledged_offset": position.upto_offset,
        }
        if ask.wait is None:
            return json_response(answer)
        seconds = min(
            self._host.topic_rules.wait_seconds(ask.timeout_seconds), LONGEST_WAIT_SECONDS
        )
        settled = await self._host.groups.settled(ask.group_id, topic, position.partition, seconds)
        said = {"settled": settled.is_settled, "pending": settled.pending or None}
        return json_response({**answer, **said})

    async def heartbeat(self, request: Request, ask: HeartbeatRequest) -> Response:
        """A member is there."""
        topic = topic_for(self._host, request, ask)
        self._host.members.beat(ask.group_id, topic, ask.member_id, ask.generation)
        return json_response({"success": True})

    async def leave(self, request: Request, ask: LeaveRequest) -> Response:
        """A member goes. False: it had gone already."""
        topic = topic_for(self._host, request, ask)
        found = self._host.members.leave(ask.group_id, topic, ask.member_id)
        return json_response({"success": found})

    async def latest_offsets(self, request: Request, ask: OffsetsRequest) -> Response:
        """How far each partition reaches."""
        log = self._host.log
        topic = topic_for(self._host, request, ask)
        offsets = await self._host.readers.run(lambda: log.offsets(topic.id))
        return json_response(
            {
                "offsets": [
                    {
                        "topic": each.topic,
                        "topic_id": topic.id,
                        "partition_id": each.partition,
                        "start_offset": each.start,
                        "next_offset": each.next_offset,
                        "last_offset": each.last_offset,
                    }
                    for each in offsets
                ]
            }
        )


def published_answer(placed: Sequence[Placed]) -> Response:
    """Where each record lies."""
    return json_response(
        {
            "offsets": [
                {
                    "topic": each.topic,
                    "topic_id": each.topic_id,
                    "partition_id": each.partition,
                    "offset": each.offset,
                }
                for each in placed
            ]
        }
    )
