"""Options as users write them: names in any case, values as text, mistakes named."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from duolog.connector.bad_rows import BadRecords
from duolog.connector.options import DEFAULT_SMALL_BATCH_ROWS, SINK_OPTIONS, SinkOptions
from duolog.connector.place import LogPlace
from duolog.errors import InvalidSetting
from duolog.log.model import Unrouted

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"


def test_names_are_taken_in_any_case() -> None:
    options = SinkOptions.of(
        {
            "PATH": "shop.log",
            "table": "shop.orders",
            "keycolumns": "id, line",
            "UNROUTED": "Drop",
            "sequenceby": "at,seq",
            "BadRecords": "DLQ",
            "dlqtopic": "bad",
            "TxnAppId": "job",
            "txnversion": "7",
            "beginanywhere": "TRUE",
            "smallbatchrows": "5",
        }
    )
    assert options == SinkOptions(
        LogPlace("shop.log"),
        table="shop.orders",
        key_columns=("id", "line"),
        unrouted=Unrouted.DROP,
        sequence_by=("at", "seq"),
        bad_records=BadRecords.DLQ,
        dlq_topic="bad",
        app_id="job",
        version=7,
        begin_anywhere=True,
        small_batch_rows=5,
    )


def test_python_values_are_taken_where_the_meaning_is_plain() -> None:
    options = SinkOptions.of(
        {"path": "l", "table": "t", "keyColumns": ["a", "b"], "txnVersion": 3, "txnAppId": "x"}
        | {"beginAnywhere": True}
    )
    assert (options.key_columns, options.version, options.begin_anywhere) == (("a", "b"), 3, True)


def test_defaults() -> None:
    options = SinkOptions.of({"path": "l"})
    assert options.unrouted is Unrouted.FAIL
    assert options.bad_records is BadRecords.FAIL
    assert options.sequence_by == ()
    assert options.small_batch_rows == DEFAULT_SMALL_BATCH_ROWS
    assert not options.begin_anywhere
    assert options.version is None


def test_sparks_own_options_are_passed_over() -> None:
    options = SinkOptions.of({"path": "l", "checkpointLocation": "/tmp/c"})
    assert options == SinkOptions(LogPlace("l"))


def test_registry_options_are_kept_apart_and_not_shown() -> None:
    options = SinkOptions.of(
        {
            "path": "l",
            "topic": "t",
            "schema.registry.url": "https://registry.example.com",
            "basic.auth.user.info": "me:secret",
            "auto.register.schemas": "false",
        }
    )
    assert set(options.registry) == {
        "schema.registry.url",
        "basic.auth.user.info",
        "auto.register.schemas",
    }
    assert "secret" not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "option 'path' names its folder"),
        ({"path": "l", "url": "http://127.0.0.1:1"}, "Give one of them"),
        ({"path": "l", "token": "t"}, "'token' belongs to 'url'"),
        ({"path": "l", "caPath": "t"}, "'caPath' belongs to 'url'"),
        ({"url": "http://h", "token": b"abc"}, "'token' is of no use"),
        ({"path": ""}, "Option 'path' is ''"),
        ({"path": "l", "topics": "t"}, "There is no option 'topics'. Did you mean 'topic'?"),
        ({"path": "l", "key_columns": "t"}, "Did you mean 'keyColumns'?"),
        ({"path": "l", "kafka.bootstrap.servers": "h:1"}, "There is no option 'kafka.boot"),
        ({"path": "l", "topic": "t", "table": "s"}, "'topic' and 'table' exclude each other"),
        ({"path": "l", "topic": "t", "keyColumns": "a"}, "'keyColumns' is for rows of a table"),
        ({"path": "l", "unrouted": "drop"}, "'unrouted' is for rows of a table"),
        ({"path": "l", "rowColumns": "a INT"}, "'rowColumns' is for rows of a table"),
        ({"path": "l", "table": "t", "unrouted": "keep"}, "must be fail or drop; got 'keep'"),
        ({"path": "l", "table": "t", "keyColumns": "a,,b"}, "'keyColumns' is 'a,,b'. Name columns"),
        ({"path": "l", "topic": "t", "sequenceBy": ",a"}, "'sequenceBy' is ',a'. Name columns"),
        ({"path": "l", "topic": "t", "badRecords": "skip"}, "must be fail or dlq; got 'skip'"),
        ({"path": "l", "topic": "t", "dlqTopic": "d"}, "badRecords=dlq. Give that too"),
        ({"path": "l", "txnVersion": "1.5"}, "'txnVersion' must be a whole number from 0"),
        ({"path": "l", "txnVersion": -1}, "'txnVersion' must be a whole number from 0"),
        ({"path": "l", "smallBatchRows": "many"}, "'smallBatchRows' must be a whole number"),
        ({"path": "l", "beginAnywhere": "yes"}, "must be true or false; got 'yes'"),
        ({"path": "l", "topic": "t", "Topic": "u"}, "'topic' is given twice"),
        ({"path": "l", "topic": None}, "Option 'topic' is None"),
        ({"path": "l", "schema.registry.url": "nonsense"}, "schema.registry.url"),
    ],
)
def test_mistakes_are_named(given: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidSetting, match=re.escape(told)):
        SinkOptions.of(given)


def test_the_guide_has_every_option_as_the_code_has_it() -> None:
    _, _, table = GUIDE.read_text().partition("## Options")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert rows == [(option.name, option.meaning, option.default) for option in SINK_OPTIONS]
