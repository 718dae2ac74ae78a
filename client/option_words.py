"""Which options there are, for messages and documents. Values are read in `options.py`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from duolog.errors import InvalidSetting

START_WORDS: Final = ("earliest", "latest")
RECREATED_WORDS: Final = ("restart", "raise")


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `also`: what users of Kafka's clients call it; with `.ms`, in milliseconds."""

    name: str
    meaning: str
    default: str = ""
    also: tuple[str, ...] = ()


CONNECTION: Final = (
    Option(
        "url",
        "the host, as in `https://bridge.example:7070`",
        "the variable `DUOLOG_URL`",
        ("bootstrap.servers",),
    ),
    Option("token", "what the host lets in", "the variable `DUOLOG_TOKEN`"),
    Option("allow_plain_http", "send the token over a network without TLS", "false"),
    Option(
        "ca_path",
        "a PEM file of who vouches for the host",
        "the usual authorities",
        ("ssl.ca.location",),
    ),
    Option(
        "deadline_seconds",
        "for so long a request is tried again while the host does not answer, or not now",
        "60",
        ("default.api.timeout.ms",),
    ),
    Option(
        "connect_timeout_seconds",
        "for one try to connect",
        "5",
        ("socket.connection.setup.timeout.ms",),
    ),
    Option(
        "answer_timeout_seconds",
        "for one answer, beyond what a poll waits by itself",
        "30",
        ("request.timeout.ms",),
    ),
)
CONSUMER: Final = (
    *CONNECTION,
    Option(
        "group",
        "whose position it is; without one nothing is remembered",
        "none",
        ("group.id",),
    ),
    Option(
        "start",
        "`earliest`, `latest` or a `datetime`: where to begin; for a group its first read says so",
        "earliest",
        ("auto.offset.reset",),
    ),
    Option(
        "topic_recreated",
        "`restart` or `raise`: what becomes of a topic that was dropped and made again. Its "
        "records are read from the first one on, or polls raise `TopicRecreated`",
        "restart",
    ),
    Option("max_records", "that one poll gives at most", "500", ("max.poll.records",)),
    Option(
        "max_bytes",
        "of keys and values that one request brings; a single record may be larger",
        "8388608",
        ("fetch.max.bytes",),
    ),
    Option(
        "auto_ack",
        "asking for more acknowledges what came before",
        "true with a group",
        ("enable.auto.commit",),
    ),
    Option(
        "ack_interval_seconds",
        "how often `auto_ack` tells the host while a loop is within a page, and how far a member "
        "may be ahead of its acknowledgements",
        "5",
        ("auto.commit.interval.ms",),
    ),
    Option(
        "max_attempts",
        "how often a record is handed out that `nack` gives back",
        "5",
    ),
    Option("dead_letter_topic", "where it goes after that", "`nack` raises `AttemptsExhausted`"),
    Option(
        "retry_pause_seconds",
        "before the second attempt; twice as long before each other one, a minute at most",
        "1",
        ("retry.backoff.ms",),
    ),
    Option(
        "held_wait_seconds",
        "how long to wait while another consumer of the group reads the partition; then "
        "`PartitionHeld`",
        "60",
    ),
    Option(
        "skip_damaged",
        "go on behind stored batches that cannot be decoded, in place of `DamagedBatch`",
        "false",
    ),
    Option(
        "session_timeout_seconds",
        "a consumer that was not heard of for so long has lost its partitions to others of the "
        "group",
        "10",
        ("session.timeout.ms",),
    ),
    Option(
        "max_poll_seconds",
        "so has one that was not polled for so long, as it hangs",
        "300",
        ("max.poll.interval.ms",),
    ),
    Option(
        "idle_timeout_seconds",
        "a loop ends when no record came for so long",
        "it waits for ever",
        ("consumer.timeout.ms",),
    ),
    Option(
        "value_format",
        "`json`, `avro` or `raw`: how values are decoded",
        "as the topic says",
    ),
    Option("value_type", "a dataclass or pydantic model that values are made into", "none"),
)
PUBLISHER: Final = (
    *CONNECTION,
    Option(
        "writer",
        "a name of one's own, for a publisher that sends again after a restart",
        "a new one each time",
    ),
    Option("next_sequence", "with `writer`: the number of the next record", ""),
    Option(
        "in_order",
        "with `writer`: refuse a record whose number does not follow the last one's",
        "false",
    ),
)


class ConnectionWords(TypedDict, total=False):
    """Options of everything that asks a host."""

    url: str
    token: str
    allow_plain_http: bool
    ca_path: str
    deadline_seconds: float
    connect_timeout_seconds: float
    answer_timeout_seconds: float


class ConsumerWords(ConnectionWords, total=False):
    """Options of a consumer. Kafka's names are taken too, from a mapping with `**`."""

    group: str
    start: Any
    topic_recreated: str
    max_records: int
    max_bytes: int
    auto_ack: bool
    ack_interval_seconds: float
    max_attempts: int
    dead_letter_topic: str
    retry_pause_seconds: float
    held_wait_seconds: float
    skip_damaged: bool
    session_timeout_seconds: float
    max_poll_seconds: float
    idle_timeout_seconds: float
    value_format: str
    value_type: Any


class PublisherWords(ConnectionWords, total=False):
    """Options of a publisher."""

    writer: str
    next_sequence: int
    in_order: bool


def sorted_out(
    given: Mapping[str, Any], options: Sequence[Option], who: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ours by their own names, and a registry's. Milliseconds have become seconds."""
    by_name = {_plain(option.name): option.name for option in options}
    by_name |= {_plain(also): option.name for option in options for also in option.also}
    known: dict[str, Any] = {}
    registry: dict[str, Any] = {}
    has_registry = any(name.lower() == "schema.registry.url" for name in given)
    for name, value in given.items():
        ours = by_name.get(_plain(name))
        if ours is None:
            if not (has_registry and _is_registry_option(name)):
                raise InvalidSetting(f"{who} has no option '{name}'. {_hint(name, by_name)}")
            registry[name] = value
        elif ours in known:
            raise InvalidSetting(f"Option '{ours}' is given twice, by two names. Give it once.")
        else:
            known[ours] = _in_seconds(name, value) if _plain(name).endswith("_ms") else value
    return known, registry


def _plain(name: str) -> str:
    return name.lower().replace(".", "_")


def _in_seconds(name: str, value: Any) -> float:
    try:
        return float(value) / 1000
    except (TypeError, ValueError):
        raise InvalidSetting(f"Option '{name}' is milliseconds; got {value!r}.") from None


def _is_registry_option(name: str) -> bool:
    from duolog.avro.registry.options import is_registry_option

    return is_registry_option(name)


def _hint(name: str, by_name: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(_plain(name), by_name, n=1)
    if near:
        return f"Did you mean '{by_name[near[0]]}'?"
    return f"There are {', '.join(dict.fromkeys(by_name.values()))}."
