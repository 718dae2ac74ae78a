"""Records as the JSON of a consume answer.

Put together from each page's columns: a model a record would take ten times as long.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from duolog.bridge.http.looking import Found
from duolog.bridge.members.coordinator import Place
from duolog.log.fetched import Fetched
from duolog.log.model import Op, PayloadMode

_OPS = [json.dumps(op.word) for op in Op]
_PAYLOADS = [json.dumps(payload.word) for payload in PayloadMode]


def consume_answer(found: Found[Fetched], unsettled: str | None = None) -> bytes:
    """The whole answer. `unsettled`: why the group may be elsewhere in Kafka."""
    messages = ",".join(
        message for page in found.pages for message in _messages(found.topic.id, page)
    )
    single = next_offset(found)
    rest = json.dumps(
        {
            "topic_id": found.topic.id,
            "next_offset": single,
            "next_offsets": {str(each): at for each, at in sorted(found.next_offsets.items())},
            "has_more": found.has_more,
            **({} if unsettled is None else {"unsettled": unsettled}),
            **without_records(found),
            **member_fields(found.place),
        },
        separators=(",", ":"),
    )
    return f'{{"messages":[{messages}],{rest[1:]}'.encode()


def without_records(found: Found[Any]) -> dict[str, Any]:
    """What was passed over, and partitions that stand at a damaged batch."""
    told: dict[str, Any] = {}
    if found.left_out:
        told["left_out"] = [
            {
                "partition_id": partition,
                "first_offset": each.first_offset,
                "next_offset": each.next_offset,
                "damaged": each.is_damaged,
                "reason": each.reason,
            }
            for partition, each in found.left_out
        ]
    if found.damaged:
        told["damaged"] = [
            {
                "partition_id": each.partition,
                "first_offset": each.first_offset,
                "next_offset": each.next_offset,
                "reason": each.reason,
            }
            for each in found.damaged
        ]
    return told


def member_fields(place: Place | None) -> dict[str, Any]:
    """What a member is told with each answer."""
    if place is None:
        return {}
    return {
        "member_id": place.member_id,
        "generation": place.generation,
        "assigned": sorted(place.assigned),
    }


def next_offset(found: Found[Fetched]) -> int | None:
    """Where to go on, when that is one number: one partition was read, and gave something."""
    if len(found.next_offsets) != 1 or not found.pages:
        return None
    return next(iter(found.next_offsets.values()))


def _messages(topic_id: int, page: Fetched) -> Iterator[str]:
    topic = quoted(page.topic)
    place = f"{topic_id}:{page.partition}:"
    for batch in page.batches:
        # Each column at once: a dict a row, as to_pylist makes of the batch, costs three times.
        columns = [batch.records.column(at).to_pylist() for at in range(7)]
        rows = zip(*columns, strict=True)
        for offset, (ts, key, value, headers, op, table, payload) in enumerate(
            rows, batch.base_offset
        ):
            shown = "null" if value is None else f'"{b64encode(value).decode()}"'
            yield (
                f'{{"topic":{topic},"topic_id":{topic_id},"partition_id":{page.partition},"offset":{offset},'
                f'"message_id":"{place}{offset}",{_text("key", key)},"payload":{shown},'
                f'"op":{_OPS[op]},"ts":{ts},"payload_mode":{_PAYLOADS[payload]},'
                f'"source_table":{"null" if table is None else quoted(table)},'
                f'"headers":[{_headers(headers) if headers else ""}]}}'
            )


def _headers(headers: list[dict[str, Any]]) -> str:
    return ",".join(
        f'{{"name":{quoted(header["name"])},{_text("value", header["value"])}}}'
        for header in headers
    )


def _text(name: str, content: bytes | None) -> str:
    """A field of text; what is no UTF-8 goes in a second one."""
    if content is None:
        return f'"{name}":null'
    try:
        return f'"{name}":{quoted(content.decode())}'
    except UnicodeDecodeError:
        return f'"{name}":null,"{name}_base64":"{b64encode(content).decode()}"'
