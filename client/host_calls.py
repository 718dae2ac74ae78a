"""The host's endpoints as calls: what is sent, and what the answers are as values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from duolog.client.answers import Answer
from duolog.client.asking import ARROW_TYPE, HostClient
from duolog.client.messages import Change, Message, request, request_of_rows
from duolog.client.model import Ack, Page, Question, Seat
from duolog.client.options import ConnectionOptions, ConsumerOptions
from duolog.client.pages import page_of
from duolog.errors import HostMismatch, NotSettled
from duolog.log.model import Placed

_TOPICS: Final = "/v1/api/topics"


class HostCalls:
    """Used from one event loop."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._address = options.address
        self._client = HostClient(options)

    async def close(self) -> None:
        await self._client.close()

    async def consume(
        self, question: Question, options: ConsumerOptions, timeout_seconds: float
    ) -> Page:
        source = question.source
        asked: dict[str, Any] = {
            "topic": source.topic,
            "start": question.start,
            "limit": options.max_records,
            "max_bytes": options.max_bytes,
            "timeout_seconds": timeout_seconds,
        }
        if options.skip_damaged:
            asked["on_damage"] = "skip"
        if question.topic_id is not None:
            asked["topic_id"] = question.topic_id
        if question.as_group:
            asked["group_id"] = options.group
        if question.seat is not None:
            asked |= _as_member(question, question.seat, options.session_timeout_seconds)
        if source.partition is not None:
            asked["partition_id"] = source.partition
        answer = await self._client.ask(
            f"{_TOPICS}/consume",
            json.dumps(asked).encode(),
            f"give records of topic '{source.topic}'",
            wants=ARROW_TYPE,
            extra_seconds=timeout_seconds,
        )
        return page_of(str(self._address), answer.content, options.value_format)

    async def ack(
        self,
        group: str,
        ack: Ack,
        deadline_seconds: float | None = None,
        settle_seconds: float | None = None,
    ) -> int:
        """The offset up to which the group has acknowledged.

        With `settle_seconds`, waits so long for Kafka's side; NotSettled if that is not enough.
        """
        asked: dict[str, Any] = {
            "topic": ack.place.topic,
            "group_id": group,
            "partition_id": ack.place.partition,
            "upto_offset": ack.upto_offset,
        }
        if ack.topic_id is not None:
            asked["topic_id"] = ack.topic_id
        if settle_seconds is not None:
            asked |= {"wait": "settled", "timeout_seconds": settle_seconds}
        if ack.seat is not None and ack.seat.member_id is not None:
            asked |= {"member_id": ack.seat.member_id, "generation": ack.seat.generation}
        answer = await self._client.ask(
            f"{_TOPICS}/ack",
            json.dumps(asked).encode(),
            f"acknowledge records of topic '{ack.place.topic}'",
            deadline_seconds=deadline_seconds,
            extra_seconds=settle_seconds or 0.0,
        )
        if settle_seconds is not None and not self._told(answer, "settled"):
            raise NotSettled(
                f"Group '{group}' has acknowledged up to offset {ack.upto_offset} of topic "
                f"'{ack.place.topic}' partition {ack.place.partition}, but is not there in Kafka "
                f"yet: {self._told(answer, 'pending')}. It is done as soon as it can be; ask "
                "again to wait on."
            )
        return int(self._told(answer, "acknowledged_offset"))

    async def beat(self, group: str, topic: str, seat: Seat) -> None:
        """A member is there. Raises MembershipOver when it is to ask again what it has."""
        body = {"topic": topic, "group_id": group, "member_id": seat.member_id}
        content = json.dumps({**body, "generation": seat.generation}).encode()
        await self._client.ask(f"{_TOPICS}/heartbeat", content, f"keep a place in '{topic}'")

    async def leave(self, group: str, topic: str, seat: Seat, deadline_seconds: float) -> None:
        """A member goes."""
        body = {"topic": topic, "group_id": group, "member_id": seat.member_id}
        await self._client.ask(
            f"{_TOPICS}/leave",
            json.dumps(body).encode(),
            f"leave the group in topic '{topic}'",
            deadline_seconds=deadline_seconds,
        )

    async def publish(
        self,
        topic: str,
        messages: Sequence[Message],
        writer: str | None,
        sequence: int,
        *,
        in_order: bool = False,
    ) -> list[Placed]:
        count = f"{len(messages)} records" if len(messages) > 1 else "a record"
        body = request(topic, messages, writer, sequence, in_order=in_order)
        return await self._published(body, f"publish {count} to topic '{topic}'")

    async def publish_rows(
        self,
        change: Change,
        rows: Sequence[Message],
        writer: str,
        sequence: int,
        *,
        in_order: bool = False,
    ) -> list[Placed]:
        body = request_of_rows(change, rows, writer, sequence, in_order=in_order)
        return await self._published(body, f"publish {len(rows)} rows of table '{change.table}'")

    async def _published(self, body: bytes, asked: str) -> list[Placed]:
        answer = await self._client.ask(f"{_TOPICS}/publish", body, asked, changes=True)
        return [
            Placed(each["topic"], each["partition_id"], each["offset"], each.get("topic_id"))
            for each in self._told(answer, "offsets")
        ]

    async def last_sequence(self, writer: str) -> int | None:
        """How far a writer has published; None for one that the log does not know."""
        answer = await self._client.ask(
            "/v1/api/writers/last-sequence",
            json.dumps({"writer": writer}).encode(),
            f"say how far writer '{writer}' has published",
        )
        last = self._told(answer, "last_sequence")
        return None if last is None else int(last)

    async def check_topic(self, topic: str) -> None:
        """Raises UnknownTopic, or that it may not be used."""
        await self._client.ask(
            f"{_TOPICS}/latest-offsets",
            json.dumps({"topic": topic}).encode(),
            f"say how far topic '{topic}' reaches",
        )

    def _told(self, answer: Answer, name: str) -> Any:
        try:
            return answer.json()[name]
        except (ValueError, KeyError, TypeError):
            raise HostMismatch(
                f"What answers at {self._address} does not speak as a Duolog host. Check the url."
            ) from None


def _as_member(question: Question, seat: Seat, session_timeout_seconds: float) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if seat.is_stale:  # it joins, and may say how long it wants to be waited for
        asked["session_timeout_seconds"] = session_timeout_seconds
    else:
        asked["generation"] = seat.generation
    if seat.member_id is not None:
        asked["member_id"] = seat.member_id
        asked["next_offsets"] = {str(at): offset for at, offset in question.next_offsets.items()}
    return asked
