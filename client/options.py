"""What the options say, as values. Whatever cannot be right is refused here, by name."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from duolog.client.model import Source
from duolog.client.option_words import (
    CONNECTION,
    CONSUMER,
    PUBLISHER,
    RECREATED_WORDS,
    START_WORDS,
    Option,
    sorted_out,
)
from duolog.client.retry_rules import RetryRules
from duolog.errors import InvalidSetting
from duolog.log.model import Format
from duolog.reach.address import Address, check_privacy, parse_address
from duolog.reach.secret import Secret

Topics = str | Sequence[str] | Mapping[str, Sequence[int]]
"""One topic, several, or certain partitions of each."""

_MOST_RECORDS: Final = 1_000_000
_MOST_BYTES: Final = 64 << 20
_LAST: Final = 2**63 - 1
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How the host is reached. Shows no token."""

    address: Address
    token: Secret | None = None
    ca_path: str | None = None
    deadline_seconds: float = 60.0
    connect_timeout_seconds: float = 5.0
    answer_timeout_seconds: float = 30.0
    allow_plain_http: bool = False


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """What a consumer was told."""

    connection: ConnectionOptions
    sources: tuple[Source, ...]
    group: str | None = None
    start: Any = "Earliest"  # as the host reads it
    max_records: int = 500
    max_bytes: int = 8 << 20
    auto_ack: bool = False
    ack_interval_seconds: float = 5.0
    retries: RetryRules = field(default_factory=RetryRules)
    dead_letter_topic: str | None = None
    held_wait_seconds: float = 60.0
    idle_timeout_seconds: float = math.inf
    value_format: Format | None = None  # None: the topic's
    value_type: Any = None
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords
    session_timeout_seconds: float = 10.0
    max_poll_seconds: float = 300.0
    skip_damaged: bool = False
    restarts_topics: bool = True  # those that were dropped and made again

    @classmethod
    def of(cls, topics: Topics, given: Mapping[str, Any]) -> ConsumerOptions:
        """What these options say. Raises InvalidSetting."""
        read, registry = _read(given, CONSUMER, "A consumer")
        connection = _connection(read)
        sources = sources_of(topics)
        group = read.text("group")
        letters = read.text("dead_letter_topic")
        if letters is not None and letters in {source.topic for source in sources}:
            raise InvalidSetting(
                f"Topic '{letters}' is read and is to take the dead letters too, which would come "
                "back for ever. Name another one in dead_letter_topic."
            )
        auto_ack = read.flag("auto_ack", group is not None)
        if auto_ack and group is None:
            raise InvalidSetting("auto_ack acknowledges for a group. Give 'group' too.")
        rules = RetryRules(
            read.whole("max_attempts", 5, 1, 1_000_000),
            read.seconds("retry_pause_seconds", 1.0),
        )
        return cls(
            connection,
            sources,
            group,
            _start(read.given.get("start", "earliest")),
            read.whole("max_records", 500, 1, _MOST_RECORDS),
            read.whole("max_bytes", 8 << 20, 1, _MOST_BYTES),
            auto_ack,
            read.seconds("ack_interval_seconds", 5.0),
            rules,
            letters,
            read.seconds("held_wait_seconds", 60.0),
            read.seconds("idle_timeout_seconds", math.inf),
            _format(read.text("value_format")),
            read.given.get("value_type"),
            registry,
            _session(read.seconds("session_timeout_seconds", 10.0)),
            read.seconds("max_poll_seconds", 300.0),
            read.flag("skip_damaged", False),
            read.word("topic_recreated", RECREATED_WORDS) == "restart",
        )


@dataclass(frozen=True, slots=True)
class PublisherOptions:
    """What a publisher was told."""

    connection: ConnectionOptions
    writer: str | None = None
    next_sequence: int = 0
    in_order: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PublisherOptions:
        """What these options say. Raises InvalidSetting."""
        read, registry = _read(given, PUBLISHER, "A publisher")
        if registry:
            raise InvalidSetting("A publisher sends bytes, text and JSON, and asks no registry.")
        writer = read.text("writer")
        if (writer is None) != ("next_sequence" not in read.given):
            raise InvalidSetting(
                "'writer' and 'next_sequence' belong together: who sends again under its name has "
                "to know how many records it has sent. Without both, each publisher is its own."
            )
        in_order = read.flag("in_order", default=False)
        if in_order and writer is None:
            raise InvalidSetting(
                "'in_order' goes with 'writer' and 'next_sequence': the host compares them with "
                "what this writer has published."
            )
        return cls(_connection(read), writer, read.whole("next_sequence", 0, 0, _LAST), in_order)


def admin_options(given: Mapping[str, Any]) -> ConnectionOptions:
    """What an admin's options say. Raises InvalidSetting."""
    read, registry = _read(given, CONNECTION, "An admin")
    if registry:
        raise InvalidSetting("An admin asks no registry but the host's own.")
    return _connection(read)


def sources_of(topics: Topics) -> tuple[Source, ...]:
    """What a subscription asks for, a request each."""
    if isinstance(topics, str):
        topics = (topics,)
    if isinstance(topics, Mapping):
        found = [Source(topic, each) for topic, numbers in topics.items() for each in numbers]
        empty = [topic for topic, numbers in topics.items() if not numbers]
        if empty:
            raise InvalidSetting(f"No partition of topic '{empty[0]}' is named. Name some.")
    else:
        found = [Source(topic) for topic in topics]
    for topic, partition in found:
        if not isinstance(topic, str) or not topic:
            raise InvalidSetting(f"A topic is a name or an alias; got {topic!r}.")
        if partition is not None and (not isinstance(partition, int) or partition < 0):
            raise InvalidSetting(f"A partition of topic '{topic}' is a number; got {partition!r}.")
    if not found:
        raise InvalidSetting("Name a topic to read.")
    if len(set(found)) < len(found):
        raise InvalidSetting("A topic or partition is named twice. Name each once.")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Read:
    given: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        value = self.given.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise InvalidSetting(f"Option '{name}' is a text; got {type(value).__name__}.")
        return value

    def word(self, name: str, words: Sequence[str]) -> str:
        value = self.given.get(name, words[0])
        if value not in words:
            known = " or ".join(map(repr, words))
            raise InvalidSetting(f"Option '{name}' is {known}; got {value!r}.")
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.given.get(name, default)
        if isinstance(value, str):
            value = _FLAGS.get(value.lower(), value)
        if not isinstance(value, bool):
            raise InvalidSetting(f"Option '{name}' is true or false; got {value!r}.")
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        value = self.given.get(name, default)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidSetting(
                f"Option '{name}' is a whole number from {least} to {most}; got {value!r}."
            )
        return value

    def seconds(self, name: str, default: float, *, above_zero: bool = False) -> float:
        value = self.given.get(name, default)
        try:
            seconds = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            seconds = math.nan
        if seconds < 0 or math.isnan(seconds) or (above_zero and not 0 < seconds < math.inf):
            least = "above 0" if above_zero else "0 or more"
            raise InvalidSetting(f"Option '{name}' is a number of seconds, {least}; got {value!r}.")
        return seconds


def _read(
    given: Mapping[str, Any], options: Sequence[Option], who: str
) -> tuple[_Read, dict[str, str]]:
    known, registry = sorted_out(given, options, who)
    if registry:
        from duolog.avro.registry.options import RegistryOptions

        RegistryOptions.of(registry)
    return _Read({name: value for name, value in known.items() if value is not None}), registry


def _connection(read: _Read) -> ConnectionOptions:
    url = read.text("url") or os.environ.get("DUOLOG_URL")
    if not url:
        raise InvalidSetting("Say where the log's host is: url, or the variable DUOLOG_URL.")
    token = read.text("token") or os.environ.get("DUOLOG_TOKEN")
    # Without a token there is nothing that somebody on the way could use.
    may_be_plain = read.flag("allow_plain_http", False) or token is None
    return ConnectionOptions(
        check_privacy(parse_address(url), allow_plain_http=may_be_plain),
        None if token is None else Secret(token),
        read.text("ca_path"),
        read.seconds("deadline_seconds", 60.0, above_zero=True),
        read.seconds("connect_timeout_seconds", 5.0, above_zero=True),
        read.seconds("answer_timeout_seconds", 30.0, above_zero=True),
        may_be_plain,
    )


def _session(seconds: float) -> float:
    if not 1 <= seconds <= 300:
        raise InvalidSetting(f"Option 'session_timeout_seconds' is from 1 to 300; got {seconds:g}.")
    return seconds


def _start(start: Any) -> Any:
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise InvalidSetting(
                "Option 'start' is a time without a zone. Give it one, as in tzinfo=UTC."
            )
        return {"Timestamp": max(0, int(start.timestamp() * 1000))}
    if isinstance(start, str) and start.lower() in START_WORDS:
        return start.capitalize()
    raise InvalidSetting(
        f"Option 'start' is 'earliest', 'latest' or a datetime; got {start!r}. For an offset, "
        "call seek()."
    )


def _format(word: str | None) -> Format | None:
    if word is None:
        return None
    try:
        return Format(word.lower())
    except ValueError:
        raise InvalidSetting(
            f"Option 'value_format' is {', '.join(Format)}; got '{word}'."
        ) from None
