"""Options of consumers and publishers: names, familiar names, values, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from duolog.client.model import Source
from duolog.client.option_words import (
    CONNECTION,
    CONSUMER,
    PUBLISHER,
    ConnectionWords,
    ConsumerWords,
    Option,
    PublisherWords,
)
from duolog.client.options import (
    ConsumerOptions,
    PublisherOptions,
    Topics,
    admin_options,
    sources_of,
)
from duolog.client.retry_rules import RetryRules
from duolog.errors import InvalidSetting
from duolog.log.model import Format

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"
HERE = {"url": "http://127.0.0.1:7070"}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DUOLOG_URL", "DUOLOG_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def of(**given: Any) -> ConsumerOptions:
    return ConsumerOptions.of("orders", {**HERE, **given})


@pytest.mark.parametrize(
    ("words", "options"),
    [(ConnectionWords, CONNECTION), (ConsumerWords, CONSUMER), (PublisherWords, PUBLISHER)],
)
def test_every_option_is_typed(words: Any, options: tuple[Option, ...]) -> None:
    assert list(words.__annotations__) == [option.name for option in options]


@pytest.mark.parametrize(
    ("heading", "options"),
    [
        ("## Options of a consumer", CONSUMER[len(CONNECTION) :]),
        ("## Options of all of them", CONNECTION),
        ("## Options of a publisher", PUBLISHER[len(CONNECTION) :]),
    ],
)
def test_the_guide_lists_the_options(heading: str, options: tuple[Option, ...]) -> None:
    rows = [
        f"| `{option.name}` | {', '.join(f'`{name}`' for name in option.also)} | {option.meaning} "
        f"| {option.default} |"
        for option in options
    ]
    _, _, rest = GUIDE.read_text().partition(f"{heading}\n")
    table = [line.replace("|  |", "| |") for line in rest.splitlines() if line.startswith("|")]
    assert table[2 : 2 + len(rows)] == [row.replace("|  |", "| |") for row in rows]


def test_without_more_than_a_topic_and_a_url() -> None:
    options = of()
    assert options.sources == (Source("orders"),)
    assert (options.group, options.auto_ack, options.start) == (None, False, "Earliest")
    assert str(options.connection.address) == "http://127.0.0.1:7070"
    assert (options.max_records, options.retries) == (500, RetryRules(5, 1.0))
    assert of(group="g").auto_ack is True


def test_the_words_of_kafkas_clients_are_taken() -> None:
    options = ConsumerOptions.of(
        "orders",
        {
            "bootstrap.servers": "127.0.0.1:7070",
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "max.poll.records": "7",
            "fetch.max.bytes": 1000,
            "enable.auto.commit": "false",
            "auto.commit.interval.ms": "250",
            "consumer.timeout.ms": 1500,
            "retry.backoff.ms": 10,
            "default.api.timeout.ms": 2000,
        },
    )
    assert str(options.connection.address) == "http://127.0.0.1:7070"
    assert (options.group, options.start, options.max_records) == ("g", "Earliest", 7)
    assert (options.max_bytes, options.auto_ack) == (1000, False)
    assert (options.ack_interval_seconds, options.idle_timeout_seconds) == (0.25, 1.5)
    assert options.retries.first_pause_seconds == 0.01
    assert options.connection.deadline_seconds == 2.0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"grup": "g"}, "A consumer has no option 'grup'. Did you mean 'group'?"),
        ({"max.pol.records": 1}, "Did you mean 'max_records'?"),
        ({"zzzzzz": 1}, "There are url, token, "),
        ({"basic.auth.user.info": "a:b"}, "A consumer has no option 'basic.auth.user.info'"),
        ({"group": "g", "group.id": "h"}, "Option 'group' is given twice, by two names"),
        ({"group": 7}, "Option 'group' is a text; got int"),
        ({"auto_ack": True}, "auto_ack acknowledges for a group. Give 'group' too."),
        ({"group": "g", "auto_ack": "yes"}, "Option 'auto_ack' is true or false; got 'yes'"),
        ({"max_records": 0}, "Option 'max_records' is a whole number from 1 to 1000000; got 0"),
        ({"max_records": True}, "whole number"),
        ({"max_records": "1.5"}, "whole number"),
        ({"max_attempts": 0}, "Option 'max_attempts' is a whole number from 1"),
        ({"deadline_seconds": 0}, "Option 'deadline_seconds' is a number of seconds, above 0"),
        ({"deadline_seconds": math.inf}, "above 0; got inf"),
        ({"idle_timeout_seconds": -1}, "0 or more; got -1"),
        ({"held_wait_seconds": "x"}, "0 or more; got 'x'"),
        ({"auto.commit.interval.ms": "x"}, "is milliseconds; got 'x'"),
        ({"start": "none"}, "Option 'start' is 'earliest', 'latest' or a datetime; got 'none'"),
        ({"start": datetime(2026, 1, 1)}, "a time without a zone"),  # noqa: DTZ001
        ({"value_format": "xml"}, "Option 'value_format' is json, avro, raw; got 'xml'"),
        ({"url": "ftp://a"}, "url must be http://HOST:PORT"),
        ({"url": "http://elsewhere", "token": "t"}, "is plain http to another machine"),
        ({"token": "two words"}, "printable ASCII characters without spaces"),
        ({"dead_letter_topic": "orders"}, "is to take the dead letters too"),
        ({"schema.registry.url": "nowhere"}, "must be http://HOST:PORT"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        of(**given)
    assert text in str(caught.value)


def test_a_url_has_to_come_from_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSetting, match="url, or the variable DUOLOG_URL"):
        ConsumerOptions.of("orders", {})
    monkeypatch.setenv("DUOLOG_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("DUOLOG_TOKEN", "secret")
    found = admin_options({})
    assert (found.address.port, found.token and found.token.reveal()) == (9, "secret")
    assert "secret" not in repr(found)


def test_over_a_network_a_token_needs_tls_or_ones_word() -> None:
    assert of(url="http://elsewhere").connection.allow_plain_http
    assert of(url="https://elsewhere", token="t").connection.address.is_tls
    assert of(url="http://elsewhere", token="t", allow_plain_http=True).connection.token


def test_a_registry_elsewhere_is_taken_with_all_its_options() -> None:
    given = {"schema.registry.url": "http://r:8081", "basic.auth.user.info": "a:secret"}
    options = of(**given, value_format="AVRO")
    assert options.registry == given
    assert options.value_format is Format.AVRO
    assert "secret" not in repr(options)


@pytest.mark.parametrize(
    ("start", "ms"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), 1767225600000),
        (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))), 1767222000000),
        (datetime(1900, 1, 1, tzinfo=UTC), 0),
    ],
)
def test_a_start_in_time(start: datetime, ms: int) -> None:
    assert of(start=start).start == {"Timestamp": ms}


@pytest.mark.parametrize(
    ("topics", "sources"),
    [
        ("a", [Source("a")]),
        (["a", "b"], [Source("a"), Source("b")]),
        ({"a": [1, 0], "b": [2]}, [Source("a", 1), Source("a", 0), Source("b", 2)]),
    ],
)
def test_topics_and_partitions(topics: Topics, sources: list[Source]) -> None:
    assert list(sources_of(topics)) == sources


@pytest.mark.parametrize(
    ("topics", "text"),
    [
        ([], "Name a topic to read"),
        ({}, "Name a topic to read"),
        ({"a": []}, "No partition of topic 'a' is named"),
        (["a", "a"], "named twice"),
        ([""], "A topic is a name or an alias; got ''"),
        ([7], "got 7"),
        ({"a": [-1]}, "A partition of topic 'a' is a number; got -1"),
        ({"a": ["0"]}, "got '0'"),
    ],
)
def test_strange_topics_are_refused(topics: Any, text: str) -> None:
    with pytest.raises(InvalidSetting, match=text):
        sources_of(topics)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"writer": "w"}, "'writer' and 'next_sequence' belong together"),
        ({"next_sequence": 1}, "belong together"),
        ({"group": "g"}, "A publisher has no option 'group'"),
        ({"schema.registry.url": "http://r"}, "A publisher sends bytes, text and JSON"),
    ],
)
def test_a_publishers_options(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSetting, match=text):
        PublisherOptions.of({**HERE, **given})
    found = PublisherOptions.of({**HERE, "writer": "w", "next_sequence": 7})
    assert (found.writer, found.next_sequence) == ("w", 7)


def test_without_httpx_it_says_what_to_install() -> None:
    code = """
import sys
sys.modules["httpx"] = None
import duolog
try:
    duolog.Consumer
except duolog.errors.InvalidSetting as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "The client needs httpx: pip install 'duolog[client]'.\n", done.stderr
