"""Records on their way out, as the JSON that the host takes. Pure.

Keys and values go as base64 of their bytes, so that a record which is sent again is the same.
"""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from duolog.errors import InvalidRecord, InvalidRows
from duolog.log.names import check_unicode

MOST_MESSAGES: Final = 1000
"""In one request: of a writer, the host remembers a little more than so many sequences."""

MOST_ROWS: Final = 250
"""In one request: routes may make several records of each."""

MOST_CHARACTERS: Final = 6 << 20
"""In one request: the host takes 8 MiB unless it is told otherwise."""

Headers = Mapping[str, Any] | Sequence[tuple[str, Any]]

_compact = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=lambda one: _plain(one)
).encode


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to publish. Bytes go as they are, text as UTF-8, anything else as compact JSON.

    Without a partition the key decides; without a key, partitions take turns.
    """

    value: Any
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    op: str | None = None
    table: str | None = None
    payload_mode: str | None = None
    ts_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One record as JSON text, or one row with the row before it."""

    text: str
    before: str | None = None

    @property
    def characters(self) -> int:
        """What it takes in a request."""
        return len(self.text) + len(self.before or "") + 1


def message_of(record: NewRecord) -> Message:
    """Raises InvalidRecord for what cannot be written."""
    found: dict[str, Any] = {"payload": _base64(_bytes("value", record.value))}
    if record.key is not None:
        found["key_base64"] = _base64(_bytes("key", record.key))
    headers = record.headers.items() if isinstance(record.headers, Mapping) else record.headers
    if headers:
        found["headers"] = [
            {"name": name, "value_base64": _base64(_bytes("header", value))}
            for name, value in headers
        ]
    rest = {
        "partition_id": record.partition,
        "op": record.op,
        "source_table": record.table,
        "payload_mode": record.payload_mode,
        "ts": record.ts_ms,
    }
    found |= {name: value for name, value in rest.items() if value is not None}
    return _message("record", found)


def messages_of_rows(
    rows: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any] | None] | None
) -> list[Message]:
    """Rows of a table. Raises InvalidRecord for what JSON cannot hold."""
    if before is None:
        return [_message_of_row(row) for row in rows]
    rows, before = list(rows), list(before)
    if len(rows) != len(before):
        raise InvalidRows(
            f"{len(rows)} rows came with {len(before)} rows before them. Give one for each, and "
            "None where it is not known."
        )
    return [
        Message(_message_of_row(row).text, _message_of_row(old).text)
        for row, old in zip(rows, before, strict=True)
    ]


def _message_of_row(row: Mapping[str, Any] | None) -> Message:
    return _message("row", row)


def _message(what: str, found: Mapping[str, Any] | None) -> Message:
    try:
        text = _compact(found)
        text.encode()  # half of a surrogate pair is found here, not in the middle of a request
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"A {what} cannot be written: {error}.") from None
    return Message(text)


def requests_of(messages: Iterable[Message], most: int = MOST_MESSAGES) -> Iterator[list[Message]]:
    """Cut into what goes in one request each."""
    group: list[Message] = []
    characters = 0
    for message in messages:
        if group and (len(group) == most or characters + message.characters > MOST_CHARACTERS):
            yield group
            group, characters = [], 0
        group.append(message)
        characters += message.characters
    if group:
        yield group


def request(
    topic: str,
    messages: Sequence[Message],
    writer: str | None,
    sequence: int,
    *,
    in_order: bool = False,
) -> bytes:
    """The body of a publish request."""
    said: dict[str, Any] = {"topic": check_unicode(topic, "topic's name")}
    if writer is not None:
        said |= {
            "writer": check_unicode(writer, "writer's name"),
            "sequence": sequence,
            **_ordered(in_order),
        }
    listed = ",".join(message.text for message in messages)
    return f'{_compact(said)[:-1]},"messages":[{listed}]}}'.encode()


@dataclass(frozen=True, slots=True)
class Change:
    """What is the same for all rows of a call."""

    table: str
    op: str
    key_columns: tuple[str, ...]
    ts_ms: int
    unrouted: str = "fail"


def request_of_rows(
    change: Change,
    rows: Sequence[Message],
    writer: str,
    sequence: int,
    *,
    in_order: bool = False,
) -> bytes:
    """The body of a publish request with rows, which go by their routes."""
    for name in (change.table, change.op, *change.key_columns):
        check_unicode(name, "table, op or key column")
    said: dict[str, Any] = {
        "table": change.table,
        "op": change.op,
        "key_columns": change.key_columns,
        "ts": change.ts_ms,
        "writer": writer,
        "sequence": sequence,
        **_ordered(in_order),
    }
    if change.unrouted != "fail":
        said["unrouted"] = change.unrouted
    text = _compact(said)[:-1]
    if any(row.before is not None for row in rows):
        text += f',"before":[{",".join(row.before or "null" for row in rows)}]'
    return f'{text},"rows":[{",".join(row.text for row in rows)}]}}'.encode()


def _ordered(in_order: bool) -> dict[str, bool]:
    return {"in_order": True} if in_order else {}  # hosts before it do not know the word


def _bytes(what: str, content: Any) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, bytearray | memoryview):
        return bytes(content)
    try:
        return (content if isinstance(content, str) else _compact(content)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRecord(
            f"A record's {what} of type {type(content).__name__} cannot be written: {error}. Give "
            "bytes, text, or what JSON can hold."
        ) from None


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _plain(one: Any) -> Any:
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        return {each.name: getattr(one, each.name) for each in dataclasses.fields(one)}
    if isinstance(one, datetime):
        return one.isoformat()
    raise TypeError(f"JSON has nothing for {type(one).__name__}")
