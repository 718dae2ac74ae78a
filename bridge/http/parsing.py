"""From a request's body to what it asks. Small ones on the event loop, large ones in threads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from duolog.bridge.http.answers import (
    NO_OBJECT,
    NOT_UNICODE,
    NOT_UTF8,
    UNREADABLE,
    not_json,
    refusal_of_body,
    wrong_body,
)
from duolog.bridge.http.asking import RequestRefused
from duolog.bridge.http.messages import record_of
from duolog.bridge.http.models import MOST_MESSAGES, LargePublishRequest, NewMessage, PublishRequest
from duolog.bridge.http.rules import BodyLimits
from duolog.errors import TooManyHeaders, TooManyValues
from duolog.log.model import Record
from duolog.server import json_pieces
from duolog.server.json_pieces import check_unicode, count_values, has_surrogates, read_object
from duolog.server.request_memory import memory_of
from duolog.server.text import is_utf8

T = TypeVar("T")

_LISTS: Final = ("messages", "rows", "before")  # which are validated an item at a time


def parsed_small(model: type[BaseModel], body: bytes, limits: BodyLimits) -> BaseModel:
    """What a small body asks. Raises RequestRefused and InvalidRequest."""
    found = _read(lambda: _small_object(body))
    if model is PublishRequest and isinstance(messages := found.get("messages"), list):
        headers = _Headers(limits)
        for number, message in enumerate(messages):
            headers.count(number, message)
    return _validated(model, found)


def memory_of_large(body: bytes, limits: BodyLimits) -> int:
    """About how much memory a large body takes, for a thread. Raises TooManyValues."""
    values = count_values(body)
    if values > limits.max_request_values:
        raise _too_many_values("", limits)
    return memory_of(body, values)


def parsed_large(model: type[BaseModel], body: bytes, limits: BodyLimits) -> BaseModel:
    """What a large body asks, for a thread: never long without letting other threads run.

    Of a publish, the records are made here too. Raises RequestRefused and InvalidRequest.
    """
    take_item = _Items(limits).take if model is PublishRequest else _as_it_is
    found = _read(
        lambda: read_object(
            body,
            take_item,
            values_in_a_piece=limits.max_record_values,
            values_in_all=limits.max_request_values,
        ),
        limits,
    )
    if model is not PublishRequest:
        return _validated(model, found)
    lists = {name: found[name] for name in _LISTS if isinstance(found.get(name), list)}
    ask = _validated(LargePublishRequest, found | {name: [] for name in lists})
    if "messages" in lists:
        ask.take_records(lists.pop("messages"))
    for name, items in lists.items():
        setattr(ask, name, items)
    return ask


class _Items:
    """The items of a publish, one after the other: messages become records."""

    def __init__(self, limits: BodyLimits) -> None:
        self._headers = _Headers(limits)

    def take(self, name: str, number: int, item: Any) -> Any:
        if name not in _LISTS:
            return item
        if number == MOST_MESSAGES:
            raise _wrong(name, f"A request has at most {MOST_MESSAGES} of them: send several.")
        if name == "messages":
            return self._record(number, item)
        if not (isinstance(item, dict) or (item is None and name == "before")):
            raise _wrong(f"{name}.{number}", "Input should be an object.")
        return item

    def _record(self, number: int, item: Any) -> Record:
        self._headers.count(number, item)
        return record_of(_validated(NewMessage, item, "messages", number))


class _Headers:
    """How many headers the messages of a request have."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._counted = 0

    def count(self, number: int, message: Any) -> None:
        """Refuse a message, or all, for too many of them."""
        headers = message.get("headers") if isinstance(message, dict) else None
        if not isinstance(headers, list):
            return
        most = self._limits.max_record_headers
        if len(headers) > most:
            raise TooManyHeaders(
                f"messages.{number} has {len(headers)} headers, and a record may have {most}. Put "
                "what they say into its value, or raise serve.max_record_headers (1000 at most)."
            )
        self._counted += len(headers)
        if self._counted > self._limits.max_request_headers:
            raise TooManyHeaders(
                f"The messages of a request may have {self._limits.max_request_headers} headers "
                "together, and these have more. Send them in several requests, or raise "
                "serve.max_request_headers."
            )


def _read(read: Callable[[], T], limits: BodyLimits | None = None) -> T:
    """What reading gives, with its errors as answers."""
    try:
        return read()
    except json.JSONDecodeError as error:
        refusal = not_json(error.msg)
    except json_pieces.NotUtf8:
        refusal = NOT_UTF8
    except json_pieces.NotUnicode:
        refusal = NOT_UNICODE
    except json_pieces.NoObject:
        refusal = NO_OBJECT
    except json_pieces.TooManyValues as error:
        assert limits is not None  # noqa: S101 - small bodies are not counted
        raise _too_many_values(error.place, limits) from None
    except (ValueError, RecursionError):
        refusal = UNREADABLE
    raise RequestRefused(refusal)


def _small_object(body: bytes) -> dict[str, Any]:
    if not is_utf8(body):
        raise json_pieces.NotUtf8
    found = json.loads(body) if body else None
    if has_surrogates(body):
        check_unicode(found)
    if not isinstance(found, dict):
        raise json_pieces.NoObject
    return found


def _too_many_values(place: str, limits: BodyLimits) -> TooManyValues:
    if place:
        return TooManyValues(
            f"{place} has more than {limits.max_record_values} JSON values inside. Send it as a "
            "text or as a payload in base64, or raise serve.max_record_values."
        )
    return TooManyValues(
        f"The request has more than {limits.max_request_values} JSON values. Send several, or "
        "raise serve.max_request_values."
    )


Model = TypeVar("Model", bound=BaseModel)


def _validated(model: type[Model], found: Any, *place: str | int) -> Model:
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise RequestRefused(refusal_of_body(error, place)) from None


def _wrong(place: str, why: str) -> RequestRefused:
    return RequestRefused(wrong_body(f"{place}: {why}"))


def _as_it_is(_: str, __: int, item: Any) -> Any:
    return item
