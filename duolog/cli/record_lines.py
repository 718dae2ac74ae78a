"""Records as JSON lines: as `consume` prints them, and as `publish` takes them.

    {"topic":"orders","topic_id":3,"partition":0,"offset":7,"ts":1700000000000,"op":null,
     "key":"a","value":{"qty":2},"headers":[{"name":"trace","value":"1f"}]}

Going out, a value is shown as JSON where the topic's format is JSON, or Avro, which is decoded to
it, and it is JSON; else as text where it is UTF-8, else in base64, and then
"value_encoding":"base64" says so. JSON is shown as it was written, digit for digit. A change also
has "table" and "payload".

Coming in, text is taken as UTF-8, other JSON as its compact text, null as no value. So a line that
went out may come in again: it holds the same, and with base64 (`consume --raw`) to the byte.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from duolog.errors import InvalidRecord
from duolog.log.model import Format, Op, PayloadMode, Record, Topic

if TYPE_CHECKING:
    from duolog.log.fetched import ReadRecord

T = TypeVar("T")

_BASE64 = "base64"
_TAKEN = (
    "value", "key", "headers", "partition", "op", "table", "payload", "ts", "value_encoding",
    "key_encoding",
)  # fmt: skip
_PASSED_OVER = (
    "topic",
    "topic_id",
    "offset",
)  # a record's old place says nothing about its new one
_KNOWN = frozenset((*_TAKEN, *_PASSED_OVER))
_OPS = {op.word: op for op in Op}
_PAYLOADS = {payload.word: payload for payload in PayloadMode}

_text = json.JSONEncoder(ensure_ascii=False).encode
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


_LINE = (
    b'{"topic":%b,"topic_id":%d,"partition":%d,"offset":%d,"ts":%d,"op":%b,%b,%b,"headers":[%b]}\n'
)


class Lines:
    """Records of one topic on their way out."""

    def __init__(self, topic: Topic, *, raw: bool) -> None:
        self._raw = raw
        self._topic = json.dumps(topic.name).encode()
        self._topic_id = topic.id
        self._json_key = topic.settings.key_format is not Format.RAW
        self._json_value = topic.settings.value_format is not Format.RAW

    def line(self, partition: int, record: ReadRecord) -> bytes:
        """One record."""
        change = b"null"
        if record.op is not Op.NONE:
            words = (record.op.word, record.table, record.payload.word)
            change = b'%b,"table":%b,"payload":%b' % tuple(_text(word).encode() for word in words)
        headers = b",".join(
            b'{"name":%b,%b}' % (_text(name).encode(), self._field(b"value", value, False))
            for name, value in record.headers
        )
        return _LINE % (
            self._topic,
            self._topic_id,
            partition,
            record.offset,
            record.ts_ms,
            change,
            self._field(b"key", record.key, self._json_key),
            self._field(b"value", record.value, self._json_value),
            headers,
        )

    def _field(self, name: bytes, content: bytes | None, is_json: bool) -> bytes:
        if content is None:
            return b'"%b":null' % name
        if not self._raw:
            try:
                text = content.decode()
            except UnicodeDecodeError:
                pass
            else:
                if is_json and _is_json(text):
                    # Line breaks are only ever between its words: within text JSON escapes them.
                    line = content.replace(b"\n", b" ").replace(b"\r", b" ")
                    return b'"%b":%b' % (name, line)
                return b'"%b":%b' % (name, _text(text).encode())
        return b'"%b":"%b","%b_encoding":"base64"' % (name, base64.b64encode(content), name)


def _is_json(text: str) -> bool:
    """Whether it is JSON; but not null, which would look like no value."""
    try:
        return _STRICT.decode(text) is not None
    except (ValueError, RecursionError):
        return False


def record_of(line: bytes) -> Record:
    """The record that a line describes. Raises InvalidRecord."""
    found = json_of(line)
    if not isinstance(found, dict):
        raise InvalidRecord(
            'A record is a JSON object like {"value": …}. To take each line as a value, use --raw.'
        )
    if "value" not in found:
        raise InvalidRecord(f'A record needs "value" (null for none). {_unknown(found)}'.strip())
    if not found.keys() <= _KNOWN:
        raise InvalidRecord(_unknown(found))
    return Record(
        value=_content(found, "value"),
        key=_content(found, "key"),
        headers=_headers(found.get("headers")),
        partition=_typed(found, "partition", int, "a whole number"),
        ts_ms=_typed(found, "ts", int, "a whole number"),
        op=_member(found, "op", _OPS),
        table=_typed(found, "table", str, "text"),
        payload=_member(found, "payload", _PAYLOADS),
    )


def json_of(line: bytes) -> Any:
    """What a line says, if it is strict JSON. Raises InvalidRecord."""
    try:
        return _STRICT.decode(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"It is not UTF-8 ({error.reason} at byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise InvalidRecord(f"It is not JSON: {error.msg} at column {error.colno}.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"It is not JSON that can be read: {error}.") from None


def _unknown(found: dict[str, Any]) -> str:
    for name in found:
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"known are {', '.join(_TAKEN)}."
            return f'"{name}" is no field of a record; {hint}'
    return ""


def _content(fields: dict[str, Any], name: str) -> bytes | None:
    content = fields.get(name)
    encoding = fields.get(f"{name}_encoding")
    if encoding is None or content is None:
        return _bytes(content, name)
    if encoding != _BASE64 or not isinstance(content, str):
        raise InvalidRecord(f'"{name}_encoding" can only be "base64", of text.')
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRecord(f'"{name}" is not base64: {error}.') from None


def _bytes(content: Any, name: str) -> bytes | None:
    if content is None:
        return None
    try:
        if isinstance(content, str):
            return content.encode()
        return _compact(content).encode()
    except (ValueError, RecursionError) as error:  # half a surrogate pair, an endless number
        raise InvalidRecord(f'"{name}" cannot be written: {error}.') from None


def _headers(found: Any) -> tuple[tuple[str, bytes | None], ...]:
    if found is None:
        return ()
    if isinstance(found, dict):
        return tuple((name, _bytes(value, name)) for name, value in found.items())
    if isinstance(found, list) and all(
        isinstance(header, dict)
        and isinstance(header.get("name"), str)
        and header.keys() <= {"name", "value", "value_encoding"}
        for header in found
    ):
        return tuple((header["name"], _content(header, "value")) for header in found)
    raise InvalidRecord(
        '"headers" is an object like {"trace": "1f"}, or a list of {"name": …, "value": …}.'
    )


def _typed(fields: dict[str, Any], name: str, kind: type[T], words: str) -> T | None:
    found = fields.get(name)
    if found is None or (isinstance(found, kind) and not isinstance(found, bool)):
        return found
    raise InvalidRecord(f'"{name}" must be {words}; got {_text(found)}.')


def _member(fields: dict[str, Any], name: str, members: dict[str | None, T]) -> T:
    found = fields.get(name)
    if not (found is None or isinstance(found, str)) or found not in members:
        choice = ", ".join(word for word in members if word)
        raise InvalidRecord(f'"{name}" is one of {choice}; got {_text(found)}.')
    return members[found]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
