"""The one check that every record passes before it is queued, whichever way it came. Pure.

What passes can be encoded, stored and given back: types are exact, since a number that only looks
like one is found out in the middle of a write; text is UTF-8, since half of a surrogate pair makes
the whole batch unreadable; and everything counts towards the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from duolog.errors import InvalidRecord, InvalidTimestamp, RecordTooLarge
from duolog.log.model import Op, PayloadMode, Record
from duolog.log.timestamps import LATEST_TIME_MS, check_not_ahead, shown_ms

MAX_HEADERS: Final = 1000
MAX_NAME_CHARACTERS: Final = 1000
"""Of a header's name, and of a table's."""

Headers = tuple[tuple[str, bytes | None], ...]


def records_of(records: Any) -> tuple[Any, ...]:
    """One record or several, as a caller gave them."""
    if isinstance(records, Record):
        return (records,)
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise InvalidRecord(
            f"Records are a Record or a sequence of them; got {type(records).__name__}."
        )
    return tuple(records)


def checked_record(
    record: Any, max_bytes: int | None = None, latest_ms: int = LATEST_TIME_MS
) -> Record:
    """The record as it may be written, and nobody can change it any more.

    Args:
        max_bytes: Of key, value, headers and table together; None where somebody else judges it.
        latest_ms: The latest time that it may have.

    Raises:
        InvalidRecord: No topic would take it.
        RecordTooLarge: It is larger than allowed.
        InvalidTimestamp: Its time is further ahead than allowed.
    """
    if type(record) is not Record:
        raise InvalidRecord(f"Records are made with Record(…); got {type(record).__name__}.")
    size = _bytes_length(record.value, "value") + _bytes_length(record.key, "key")
    headers = record.headers
    if type(headers) is not tuple or headers:
        headers, more = _checked_headers(headers)
        size += more
    if record.table is not None:
        size += _text_length(record.table, "table")
    if record.ts_ms is not None:
        check_time(record.ts_ms, latest_ms)
    if record.partition is not None and type(record.partition) is not int:
        _refuse_type("partition", "a whole number or None", record.partition)
    if type(record.op) is not Op:
        _refuse_type("op", "an Op", record.op)
    if type(record.payload) is not PayloadMode:
        _refuse_type("payload", "a PayloadMode", record.payload)
    if max_bytes is not None and size > max_bytes:
        raise RecordTooLarge(
            f"A record of {size} bytes is over the limit of {max_bytes}. Make it smaller, "
            "or raise max_record_bytes (and max.message.bytes of its Kafka topic)."
        )
    return record if headers is record.headers else replace(record, headers=headers)


def check_time(ts_ms: Any, latest_ms: int = LATEST_TIME_MS) -> None:
    """Refuse what is no time of a record."""
    if type(ts_ms) is not int:
        _refuse_type("ts_ms", "a whole number of milliseconds since 1970, or None", ts_ms)
    if ts_ms < 0:
        raise InvalidTimestamp(f"A record's ts_ms must be 0 or more; got {shown_ms(ts_ms)}.")
    check_not_ahead(ts_ms, latest_ms, "A record")


def _checked_headers(headers: Any) -> tuple[Headers, int]:
    """The headers as tuples, and their size."""
    if not isinstance(headers, tuple | list):
        _refuse_type("headers", "a tuple of names and values", headers)
    if len(headers) > MAX_HEADERS:
        raise InvalidRecord(f"A record has {len(headers)} headers, {MAX_HEADERS} go in.")
    size = 0
    found: list[tuple[str, bytes | None]] = []
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2:
            raise InvalidRecord("A header is a text name and a value of bytes or None.")
        name, value = header
        size += _text_length(name, "header name") + _bytes_length(value, "header value")
        found.append((name, value))
    if type(headers) is tuple and all(type(header) is tuple for header in headers):
        return headers, size
    return tuple(found), size


def _bytes_length(content: Any, what: str) -> int:
    if content is None:
        return 0
    if type(content) is not bytes:
        _refuse_type(what, "bytes or None", content)
    return len(content)


def _text_length(text: Any, what: str) -> int:
    """In bytes."""
    if type(text) is not str:
        _refuse_type(what, "text", text)
    if len(text) > MAX_NAME_CHARACTERS:
        raise InvalidRecord(
            f"A record's {what} has {len(text)} characters, {MAX_NAME_CHARACTERS} go in."
        )
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidRecord(
            f"A record's {what} is not Unicode: it has half of a surrogate pair "
            f"({text[error.start]!a}) at character {error.start}. Send valid UTF-8."
        ) from None


def _refuse_type(what: str, wanted: str, got: Any) -> NoReturn:
    raise InvalidRecord(f"A record's {what} must be {wanted}; got {type(got).__name__}.")
