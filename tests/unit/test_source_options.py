"""The source's options: Kafka's words with Kafka's meaning, mistakes named."""

from __future__ import annotations

import logging
import pickle
import re
from pathlib import Path

import pytest

from duolog.connector.place import LogPlace
from duolog.connector.source.choice import Assign, Subscribe, SubscribePattern
from duolog.connector.source.options import SOURCE_OPTIONS, SourceOptions
from duolog.connector.source.points import Each, Everywhere
from duolog.errors import InvalidSetting
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark-read.md"
LEAST = {"path": "l", "subscribe": "t"}


def batch(**given: object) -> SourceOptions:
    return SourceOptions.of({**LEAST, **given}, streaming=False)


def stream(**given: object) -> SourceOptions:
    return SourceOptions.of({**LEAST, **given}, streaming=True)


def test_names_are_taken_in_any_case() -> None:
    options = SourceOptions.of(
        {
            "PATH": "l",
            "Subscribe": "a, b,,a",
            "maxoffsetspertrigger": "10",
            "MINOFFSETSPERTRIGGER": "2",
            "maxtriggerdelay": "30s",
            "minpartitions": 4,
            "maxrecordsperpartition": "100",
            "failondataloss": "FALSE",
            "skipdamaged": "TRUE",
            "includeheaders": True,
            "includechange": "true",
            "availablenow": "true",
            "decode": "true",
            "group": "g",
        },
        streaming=True,
    )
    assert options == SourceOptions(
        place=LogPlace("l"),
        choice=Subscribe(("a", "b")),
        starting=Everywhere(Latest()),
        ending=Everywhere(Latest()),
        max_offsets=10,
        min_offsets=2,
        max_delay_seconds=30,
        min_partitions=4,
        max_records=100,
        fail_on_data_loss=False,
        skip_damaged=True,
        include_headers=True,
        include_change=True,
        available_now=True,
        decode=True,
        group="g",
    )
    assert pickle.loads(pickle.dumps(options)) == options


def test_defaults_are_those_of_kafkas_source() -> None:
    assert stream().starting == Everywhere(Latest())
    assert batch().starting == Everywhere(Earliest())
    assert batch().ending == Everywhere(Latest())
    assert stream().fail_on_data_loss
    assert stream().max_delay_seconds == 900
    assert not stream().include_headers
    assert stream().error_without_match


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"subscribe": "orders"}, Subscribe(("orders",))),
        ({"subscribePattern": " ord.* "}, SubscribePattern("ord.*")),
        ({"assign": '{"a": [1, 0, 1], "b": [2]}'}, Assign({"a": (0, 1), "b": (2,)})),
    ],
)
def test_what_to_read(given: dict[str, str], choice: object) -> None:
    assert SourceOptions.of({"path": "l", **given}).choice == choice


@pytest.mark.parametrize(
    ("given", "point"),
    [
        ({"startingOffsets": "Earliest"}, Everywhere(Earliest())),
        ({"startingOffsets": "latest"}, Everywhere(Latest())),
        (
            {"startingOffsets": '{"a":{"0":23,"1":-1},"b":{"0":-2}}'},
            Each(
                "startingOffsets",
                {("a", 0): AtOffset(23), ("a", 1): Latest(), ("b", 0): Earliest()},
            ),
        ),
        (
            {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":1000}}'},
            Each("startingOffsetsByTimestamp", {("a", 0): AtTimestamp(1000)}),
        ),
        (
            {
                "startingOffsets": "earliest",
                "startingOffsetsByTimestamp": '{"a":{"0":1000}}',
                "startingTimestamp": "7",
            },
            Everywhere(AtTimestamp(7)),
        ),
    ],
)
def test_where_a_read_begins(given: dict[str, str], point: object) -> None:
    assert stream(**given).starting == point


def test_where_a_read_ends() -> None:
    ends = batch(endingOffsets='{"a":{"0":50,"1":-1}}').ending
    assert ends == Each("endingOffsets", {("a", 0): AtOffset(50), ("a", 1): Latest()})
    assert batch(endingOffsets="latest", endingTimestamp=5).ending == Everywhere(AtTimestamp(5))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("15m", 900), ("15 min", 900), ("1h", 3600), ("500ms", 0.5), ("20", 0.02), ("2d", 172_800)],
)
def test_stretches_of_time_are_sparks(words: str, seconds: float) -> None:
    assert stream(maxTriggerDelay=words).max_delay_seconds == pytest.approx(seconds)


def test_registry_options_are_kept_apart_and_not_shown() -> None:
    options = batch(**{"schema.registry.url": "https://r.example", "basic.auth.user.info": "me:pw"})
    assert set(options.registry) == {"schema.registry.url", "basic.auth.user.info"}
    assert "me:pw" not in repr(options)


def test_a_token_is_not_shown() -> None:
    options = SourceOptions.of({"url": "https://h", "token": "s3cret", "subscribe": "t"})
    assert options.place == LogPlace(None, "https://h", "s3cret")
    assert "s3cret" not in repr(options)


def test_a_host_is_asked_as_the_sink_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOG_TOKEN", "from-outside")
    given = {"url": "http://h", "subscribe": "t", "allowPlainHttp": "true", "caPath": "/ca.pem"}
    place = SourceOptions.of(given).place
    assert place == LogPlace(None, "http://h", "from-outside", True, "/ca.pem")
    assert batch().place == LogPlace("l")


def test_limits_of_streams_are_passed_over_in_batch_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        batch(maxOffsetsPerTrigger=5)
    assert "maxOffsetsPerTrigger is for streams" in caplog.text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": ""}, "Option 'path' is ''"),
        ({"topic": "t"}, "There is no option 'topic' for reading"),
        ({"startOffsets": "earliest"}, "Did you mean 'startingOffsets'?"),
        ({"kafka.bootstrap.servers": "h:1"}, "There are no brokers here"),
        ({"assign": '{"t": [0]}'}, "got subscribe and assign"),
        ({"subscribe": ","}, "Name topics, comma between"),
        ({"startingOffsets": "soon"}, 'must be like {"orders": {"0": 23, "1": -1}}; got \'soon\''),
        ({"startingOffsets": "{}"}, "must be like"),
        ({"startingOffsets": '{"t": 3}'}, "must be like"),
        ({"startingOffsets": '{"t": {"x": 3}}'}, "must be like"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "must be like"),
        ({"startingOffsets": '{"t": {"0": "3"}}'}, "must be like"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "has the offset -3"),
        ({"startingTimestamp": "May"}, "must be milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "must be error or latest"),
        ({"minPartitions": "0"}, "'minPartitions' must be a whole number from 1; got '0'"),
        ({"maxRecordsPerPartition": "-1"}, "must be a whole number from 1"),
        ({"maxOffsetsPerTrigger": "many"}, "must be a whole number from 1"),
        ({"minOffsetsPerTrigger": 3, "maxOffsetsPerTrigger": 2}, "is more than 'maxOffsetsPer"),
        ({"maxTriggerDelay": "soon"}, "must be a number with a unit"),
        ({"failOnDataLoss": "maybe"}, "must be true or false; got 'maybe'"),
        ({"Decode": "true", "decode": "true"}, "'decode' is given twice"),
        ({"schema.registry.url": "nonsense"}, "schema.registry.url"),
    ],
)
def test_mistakes_are_named(given: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(told)):
        SourceOptions.of({**LEAST, **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "option 'path' names its folder"),
        ({"path": "l", "url": "https://h", "subscribe": "t"}, "option 'path' names its folder"),
        ({"path": "l", "token": "x", "subscribe": "t"}, "'token' belongs to 'url'"),
        ({"path": "l"}, "subscribe, subscribePattern, assign; got none"),
        ({"path": "l", "subscribePattern": "("}, "is no regular expression"),
        ({"path": "l", "assign": "t"}, "must be like {\"orders\": [0, 1]}; got 't'"),
        ({"path": "l", "assign": '{"t": []}'}, "must be like"),
        ({"path": "l", "assign": '{"t": [-1]}'}, "must be like"),
    ],
)
def test_what_has_to_be_given(given: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(told)):
        SourceOptions.of(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"startingOffsets": "latest"}, "cannot start at the latest offset"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "cannot start at the latest offset"),
        ({"endingOffsets": "earliest"}, "cannot end at the earliest offset"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "cannot end at the earliest offset"),
        ({"group": "g"}, "'group' is for streams"),
        ({"availableNow": "true"}, "'availableNow' is for streams"),
    ],
)
def test_what_a_batch_read_cannot_have(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(told)):
        batch(**given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"'{name}' is for batch reads"):
        stream(**{name: '{"t": {"0": 5}}' if "Offsets" in name else "5"})


def test_the_guide_has_every_option_as_the_code_has_it() -> None:
    _, _, table = GUIDE.read_text().partition("## Options")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert rows == [(option.name, option.meaning, option.default) for option in SOURCE_OPTIONS]
