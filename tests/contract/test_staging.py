"""Where tasks stage what an epoch is made of, on every form of a log."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from duolog.errors import DuologError, LogClosed
from duolog.log.access import LogAccess
from duolog.log.model import Format, Op, PayloadMode, Record, Route, TopicSettings
from duolog.log.part import Part, PartBuilder
from duolog.log.routing.changes import Changes
from duolog.log.routing.route import route_prepared
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.host_server import TOKEN
from tests.support.records import BATCH, STREAM, part_of

NUMBERS = [b"%d" % n for n in range(1000)]


def test_staged_parts_are_committed_and_then_swept(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    place = log.staging(STREAM, 0)
    parts = [part_of(topic, {0: NUMBERS}, folder=place) for _ in range(3)]
    files = [form.staged_file(part.path) for part in parts]
    assert all(file.stat().st_size == part.length for file, part in zip(files, parts, strict=True))
    sent = [Part.from_message(part.message()) for part in parts]
    assert log.append(STREAM, 0, sent).ranges[0].count == 3000
    assert not any(file.exists() for file in files)
    assert log.append(STREAM, 0, sent).repeated  # although the files are gone


def test_a_place_goes_to_tasks_and_shows_no_token(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    place = pickle.loads(pickle.dumps(log.staging(STREAM, 4))).at(0)
    assert TOKEN not in repr(place)
    secret = form.folder / "secret"
    assert not secret.exists() or secret.read_text() not in repr(place)
    part = part_of(topic, {0: NUMBERS}, folder=place)
    assert form.staged_file(part.path).parent.name == "0"
    log.append(STREAM, 0, [part])
    assert values(log, "orders") == NUMBERS


def test_what_is_staged_can_be_read_and_removed(form: Form, log: LogAccess) -> None:
    place = log.staging(STREAM, 0)
    names = []
    for content in (b"", b"small", b"large" * 1_000_000):
        file = place.begin()
        for at in range(0, len(content), 1 << 20):
            file.write(content[at : at + (1 << 20)])
        name = file.finish()
        assert place.read(name) == content
        names.append(name)
    assert len(set(names)) == 3
    place.remove(names[0])
    place.remove(names[0])
    with pytest.raises(DuologError, match=r"the write again|the same for tasks"):
        place.read(names[0])
    other = log.staging(BATCH, 0).begin()
    kept = form.staged_file(other.finish())
    place.remove_writer()
    assert not form.staged_file(names[1]).parent.parent.exists()
    assert kept.exists()


def test_what_is_aborted_leaves_nothing(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    place = log.staging(STREAM, 0)
    begun = PartBuilder(place)
    begun.abort()
    finished = place.begin()
    finished.write(b"x" * 100)
    file = form.staged_file(finished.finish())
    assert file.exists()
    finished.abort()
    assert list((form.folder / "staging").rglob("*.part*")) == []
    assert topic.partitions == 1


def test_many_large_parts_in_memory_are_one_epoch_too(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    content = [b"%04d" % n * 1000 for n in range(500)]
    parts = [part_of(topic, {0: content}, keys=[b"%d" % task] * 500) for task in range(10)]
    assert all(part.path is None for part in parts)
    assert log.append(STREAM, 0, parts).ranges[0].count == 5000


ROWS = pa.RecordBatch.from_pydict({"id": [1, 2], "note": ["a", None], "qty": [2**40, 5]})


@pytest.mark.parametrize("value_format", [Format.JSON, Format.AVRO])
def test_rows_prepared_for_tasks_are_those_that_are_published(
    log: LogAccess, value_format: Format
) -> None:
    for name in ("staged", "published"):
        log.create_topic(name, TopicSettings(value_format=value_format))
    for name in ("shop.staged", "shop.published"):
        route = Route(name, frozenset({Op.INSERT}), payload=PayloadMode.FULL)
        log.add_route(name.removeprefix("shop."), route)
    prepared = pickle.loads(pickle.dumps(log.prepare_rows("shop.staged", ROWS.schema, ["id"])))
    changes = Changes.from_rows("shop.staged", Op.INSERT, ROWS, ["id"], 7)
    builder = PartBuilder(log.staging(STREAM, 0), max_record_bytes=log.max_record_bytes)
    for routed in route_prepared(changes, prepared).records:
        builder.add(log.topic(routed.topic_id), routed.partition, routed.records)
    log.append(STREAM, 0, [builder.finish()])
    log.publish_rows("shop.published", Op.INSERT, ROWS, ["id"], ts_ms=7)
    staged, published = list(log.fetch("staged", 0, 0)), list(log.fetch("published", 0, 0))
    assert [r.key for r in staged] == [r.key for r in published]
    if value_format is Format.JSON:
        assert [(r.value or b"").replace(b"staged", b"published") for r in staged] == [
            r.value for r in published
        ]
    else:
        assert all((r.value or b"").startswith(b"\x00\x00\x00\x00") for r in staged + published)
        assert staged[0].value != published[0].value  # other ids: the records have other names


def test_the_limit_of_records_is_known(form: Form) -> None:
    form.configure(max_record_bytes=12_345)
    assert form.open().max_record_bytes == 12_345


def test_encoded_batches_are_what_a_fetch_decodes(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    for epoch in range(10):
        content = NUMBERS[epoch * 100 : epoch * 100 + 100]
        log.append(STREAM, epoch, [part_of(topic, {0: content})])
    log.publish("orders", Record(b"last"))
    for offset in (0, 1, 99, 100, 550, 1000, 1001):
        encoded = pickle.loads(pickle.dumps(log.fetch_encoded("orders", 0, offset)))
        assert (encoded.earliest, encoded.latest, encoded.next_offset) == (0, 1001, 1001)
        assert (encoded.topic, encoded.topic_id) == ("orders", topic.id)
        found = [
            value for batch in encoded.decode() for value in batch.records["value"].to_pylist()
        ]
        assert found == [*NUMBERS, b"last"][offset:]
    few = log.fetch_encoded("orders", 0, 150, max_records=60)
    assert [batch.base_offset for batch in few.batches] == [100, 200]
    assert sum(batch.records.num_rows for batch in few.decode(upto=210)) == 60
    one = log.fetch_encoded("orders", 0, 150, max_bytes=1)
    assert one.next_offset == 200


def test_a_closed_log_says_so(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"a"))
    log.close()
    log.close()
    for use in (
        lambda: log.publish("orders", Record(b"c")),
        lambda: log.fetch("orders", 0, 0),
        lambda: log.create_topic("more"),
        lambda: log.ack("g", "orders", 0),
    ):
        with pytest.raises(LogClosed):
            use()
