"""Who writes: names that make a repeat known."""

from __future__ import annotations

import pytest

from duolog.connector.identity import (
    batch_writer,
    is_anonymous,
    stream_name,
    stream_writer,
    target_of,
)
from duolog.connector.options import SinkOptions
from duolog.connector.place import LogPlace
from duolog.errors import InvalidSetting
from duolog.log.model import Mode, Writer


@pytest.mark.parametrize(
    ("topic", "table", "target"),
    [("orders", None, "topic:orders"), (None, "shop.o", "table:shop.o"), (None, None, "topics")],
)
def test_targets(topic: str | None, table: str | None, target: str) -> None:
    assert target_of(topic, table) == target


def test_a_stream_is_named_by_its_query() -> None:
    options = SinkOptions(LogPlace("l"), query_name="q")
    assert stream_writer(options, "topics") == Writer(Mode.STREAM, "q", "topics")


def test_txn_app_id_goes_before_the_query_name() -> None:
    assert stream_name(SinkOptions(LogPlace("l"), query_name="q", app_id="a")) == "a"


def test_a_stream_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"A stream needs a name .* Set queryName"):
        stream_name(SinkOptions(LogPlace("l")))


def test_a_stream_takes_no_version() -> None:
    with pytest.raises(InvalidSetting, match="'txnVersion' is for batch writes"):
        stream_name(SinkOptions(LogPlace("l"), query_name="q", version=1))


def test_two_targets_of_one_name_are_two_writers() -> None:
    options = SinkOptions(LogPlace("l"), app_id="job", version=4)
    first, epoch = batch_writer(options, "topic:a")
    second, _ = batch_writer(options, "topic:b")
    assert first == Writer(Mode.BATCH, "job", "topic:a")
    assert first != second
    assert epoch == 4


def test_a_batch_write_without_a_name_is_a_writer_of_its_own() -> None:
    options = SinkOptions(LogPlace("l"), query_name="left over from a stream's options")
    first, epoch = batch_writer(options, "topics")
    second, _ = batch_writer(options, "topics")
    assert first != second
    assert epoch == 0
    assert is_anonymous(options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (SinkOptions(LogPlace("l"), app_id="a"), "'txnAppId' needs 'txnVersion'"),
        (SinkOptions(LogPlace("l"), version=0), "'txnVersion' needs 'txnAppId'"),
    ],
)
def test_half_a_name_is_refused(options: SinkOptions, told: str) -> None:
    with pytest.raises(InvalidSetting, match=told):
        batch_writer(options, "topics")
