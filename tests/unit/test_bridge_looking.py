"""A glance says what a look would say, when there is nothing; else it leaves it to the look."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.looking import Looks, Share, Wanted, without_bound
from duolog.bridge.http.starts import AtOffsets, Begin
from duolog.bridge.http.stored_pages import fetch_stored
from duolog.bridge.members.coordinator import Place
from duolog.errors import OffsetOutOfRange, UnknownPartition
from duolog.log import EmbeddedLog, open_log
from duolog.log.fetched import Fetched
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Record, TopicSettings
from tests.support.poison import Poison, poison
from tests.support.records import STREAM, part_of


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path_factory.mktemp("looking") / "log") as opened:
        opened.create_topic("two", TopicSettings(partitions=2))
        opened.create_topic("empty")
        opened.create_topic("wide", TopicSettings(partitions=65))
        for partition in (0, 1):
            opened.publish("two", [Record(b"v", partition=partition)] * 3)
        opened.ack("through", "two", 2, 0)
        opened.ack("through", "two", 2, 1)
        opened.ack("behind", "two", 2, 0)
        opened.ack("behind", "two", 1, 1)
        yield opened


def looks(
    log: EmbeddedLog,
    topic: str,
    begin: Begin,
    group: str | None = None,
    partition: int | None = None,
) -> Looks[Fetched]:
    wanted = Wanted(log.topic(topic).id, group, partition, begin, 10, 1000)
    return Looks(log, wanted, without_bound(log.fetch))


@pytest.mark.parametrize(
    ("asked", "is_nothing"),
    [
        ({"topic": "two", "begin": Latest()}, True),
        ({"topic": "two", "begin": Earliest()}, False),
        ({"topic": "empty", "begin": Earliest()}, True),
        ({"topic": "two", "begin": AtOffset(3), "partition": 1}, True),
        ({"topic": "two", "begin": AtOffset(2), "partition": 1}, False),
        ({"topic": "two", "begin": AtOffsets({0: 3, 1: 3})}, True),
        ({"topic": "two", "begin": AtOffsets({0: 3})}, False),
        ({"topic": "two", "begin": Earliest(), "group": "through"}, True),
        ({"topic": "two", "begin": Latest(), "group": "behind"}, False),
        ({"topic": "two", "begin": Latest(), "group": "behind", "partition": 0}, True),
        ({"topic": "wide", "begin": Latest()}, False),
        ({"topic": "two", "begin": AtTimestamp(2**60)}, False),
    ],
)
def test_a_glance_agrees_with_the_look(
    log: EmbeddedLog, asked: dict[str, Any], is_nothing: bool
) -> None:
    glanced = looks(log, **asked).glance()
    assert (glanced is not None) is is_nothing
    if glanced is not None:
        assert glanced == looks(log, **asked).look()


def test_a_time_is_searched_for_once(log: EmbeddedLog) -> None:
    poll = looks(log, "two", AtTimestamp(2**60))
    assert poll.glance() is None
    found = poll.look()
    assert not found.pages
    assert poll.glance() == found


def test_latest_is_settled_by_the_first_glance(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        poll = looks(log, "orders", Latest())
        assert poll.glance() is not None
        log.publish("orders", Record(b"v"))
        assert poll.glance() is None
        assert poll.look().next_offsets == {0: 1}


def test_an_offset_that_is_not_kept_is_left_to_the_look(log: EmbeddedLog) -> None:
    poll = looks(log, "two", AtOffset(9), partition=0)
    assert poll.glance() is None
    with pytest.raises(OffsetOutOfRange):
        poll.look()


def test_a_partition_that_is_not_there_is_refused_at_once(log: EmbeddedLog) -> None:
    with pytest.raises(UnknownPartition):
        looks(log, "two", Latest(), partition=7).glance()


@pytest.mark.parametrize("upto", range(9, 31))
@pytest.mark.parametrize("form", ["decoded", "stored"])
def test_a_member_reads_over_a_hole_up_to_what_is_in_kafka(
    tmp_path: Path, upto: int, form: str
) -> None:
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("holed")
        for epoch in range(3):
            log.append(STREAM, epoch, [part_of(topic, {0: [b"v"] * 10})])
        poison(log, "holed", 0, 10, Poison.MISSING)
        log.skip_to("holed", 0, 20)
        log.seek("g", "holed", 0, 5)
        wanted = Wanted(topic.id, "g", None, Latest(), 5000, 1 << 20)
        place = Place("m", 1, frozenset({0}), frozenset())
        fetch: Any = log.fetch if form == "decoded" else partial(fetch_stored, log)
        found = Looks(log, wanted, without_bound(fetch), Share(place, {0: upto})).look()
    offsets = [
        offset
        for page in found.pages
        for batch in page.batches
        for offset in range(batch.base_offset, batch.next_offset)
    ]
    assert offsets == [at for at in range(5, upto) if not 10 <= at < 20]
    # It may stop before the hole, and the next poll passes over it.
    assert found.next_offsets[0] in ({10, upto} if 10 <= upto <= 20 else {upto})
