"""Parts whose batches nobody could read are refused before anything is written, in every form."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from duolog.errors import DamagedPart, DuologError, InvalidRecord, RecordTooLarge
from duolog.log.access import LogAccess
from duolog.log.batch import HEADER_BYTES, encode, encode_small, read_header
from duolog.log.hole import HoleNote, encode_hole
from duolog.log.model import Record, Topic, TopicSettings
from duolog.log.part import Fingerprint, Part, PartTopic, StagedBatch
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.hostile import ArrowPlaces, with_bytes, with_header, with_number
from tests.support.records import STREAM, part_of
from tests.unit.test_batch import NOW, arrow_of

GOOD = [Record(b"value%d" % n, b"key", ts_ms=NOW) for n in range(5)]
ARROW = encode(arrow_of(GOOD))
PACKED = encode_small(GOOD, NOW)[0]
PLACES = ArrowPlaces.of(ARROW)

HOSTILE = {
    "count of 2^32-1": with_header(PACKED, count=2**32 - 1),
    "latest time of 2^64-1": with_header(ARROW, max_ts_ms=2**64 - 1),
    "ends beyond the body": with_bytes(PACKED, 8 * 5, b"\xff\xff\xff\x7f" * 5),
    "operation": with_bytes(PACKED, 16 * 5, b"\x09"),
    "buffer outside": with_number(ARROW, PLACES.buffers[3], 1 << 40),
    "more values than records": with_number(ARROW, PLACES.nodes[1], 1 << 40),
    "no records": with_bytes(ARROW, PLACES.kind, b"\x02"),
    "newer format": b"\x03" + ARROW[1:],
    "hole": encode_hole(5, HoleNote()),
    "checksum": ARROW[:-1] + b"x",
    "nothing": b"",
}


_TOPIC = Topic(1, "orders", TopicSettings(), (), 0, 0)


def part_with(topic: Topic, encoded: bytes, **claims: Any) -> Part:
    """A part as an attacker would make it: its own numbers agree with its batch."""
    count, latest = 5, NOW
    if len(encoded) >= HEADER_BYTES and encoded[0] < 3:
        header = read_header(encoded)
        count, latest = min(header.count, 2**31 - 1), min(header.max_ts_ms, 2**63 - 1)
    staged = replace(StagedBatch(topic.id, 0, 0, count, len(encoded), latest), **claims)
    share = PartTopic(topic.id, topic.partitions, Fingerprint(5, 0, 7))
    return Part((staged,), (share,), len(encoded), zlib.crc32(encoded), encoded)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_batch_that_nobody_could_read_is_refused(log: LogAccess, name: str) -> None:
    topic = log.create_topic("orders")
    good = part_of(topic, {0: [b"good"]})
    with pytest.raises(DuologError) as refused:
        log.append(STREAM, 0, [good, part_with(topic, HOSTILE[name])])
    assert refused.value.code in {"DamagedPart", "UnsupportedFormat", "InvalidTimestamp"}
    assert log.last_epoch(STREAM) is None
    log.append(STREAM, 0, [good])
    assert values(log, "orders") == [b"good"]


def test_right_batches_of_both_bodies_are_taken(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    log.append(STREAM, 0, [part_with(topic, ARROW), part_with(topic, PACKED)])
    assert values(log, "orders") == 2 * [record.value for record in GOOD]


@pytest.mark.parametrize("claims", [{"count": 4}, {"count": 6}, {"max_ts_ms": NOW + 1}])
def test_a_message_names_what_its_batches_have(log: LogAccess, claims: dict[str, int]) -> None:
    topic = log.create_topic("orders")
    with pytest.raises(DamagedPart, match="message names"):
        log.append(STREAM, 0, [part_with(topic, ARROW, **claims)])
    assert values(log, "orders") == []


def test_no_record_of_a_part_is_over_the_limit(form: Form, log: LogAccess) -> None:
    log.create_topic("orders")
    form.configure(max_record_bytes=1000)
    log = form.restart()
    topic = log.topic("orders")
    for record in (
        Record(b"v" * 1001, ts_ms=NOW),
        Record(b"v" * 500, headers=(("h", b"v" * 500),), ts_ms=NOW),
        Record(b"v", table="t" * 1000, ts_ms=NOW),
    ):
        with pytest.raises(RecordTooLarge, match="over the limit of 1000"):
            log.append(STREAM, 0, [part_with(topic, encode(arrow_of([record])))])
    many = Record(b"", headers=(("", None),) * 1001, ts_ms=NOW)
    with pytest.raises(InvalidRecord, match="headers"):
        log.append(STREAM, 0, [part_with(topic, encode(arrow_of([many])))])
    assert values(log, "orders") == []


def test_a_small_part_of_one_huge_record_is_refused(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    encoded = encode(arrow_of([Record(bytes(200 << 20), ts_ms=NOW)]))
    assert len(encoded) < 1 << 20
    with pytest.raises(DamagedPart, match="over the limit"):
        log.append(STREAM, 0, [part_with(topic, encoded)])
    assert values(log, "orders") == []


def changed(part: Part, path: tuple[Any, ...], value: Any) -> bytes:
    fields = json.loads(part.message())
    inside = fields
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return json.dumps(fields).encode()


NO_NUMBERS: tuple[Any, ...] = (None, True, 1.0, 1e400, -1, 2**64, "1", [], {}, "\ud800")


@pytest.mark.parametrize(
    "path",
    [
        *(("batches", 0, name) for name in ("topic_id", "partition", "count", "length")),
        ("batches", 0, "max_ts_ms"),
        ("topics", 0, "topic_id"),
        ("topics", 0, "partitions"),
        *(("topics", 0, "fingerprint", name) for name in ("routed", "filtered_out", "content")),
        ("length",),
        ("crc32",),
    ],
)
def test_numbers_of_a_message_are_numbers(path: tuple[Any, ...]) -> None:
    part = part_with(_TOPIC, ARROW)
    for value in NO_NUMBERS:
        with pytest.raises(DamagedPart, match="Run the write again"):
            Part.from_message(changed(part, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("batches", 0, "order"), 2**31),
        (("batches", 0, "order"), 0.5),
        (("batches", 0, "order"), None),
        (("batches", 0, "length"), 0),
        (("batches", 0, "length"), len(ARROW) + 1),
        (("batches", 0, "count"), 0),
        (("batches",), None),
        (("batches",), [None]),
        (("batches",), [[1, 2, 3, 4, 5, 6]]),
        (("batches",), "text"),
        (("batches", 0, "more"), 1),
        (("topics",), 5),
        (("topics", 0), None),
        (("topics", 0, "fingerprint"), None),
        (("topics", 0, "fingerprint", "more"), 1),
        (("body",), 5),
        (("body",), "no base64!"),
        (("body",), [1]),
        (("path",), 5),
        (("path",), ["x"]),
    ],
)
def test_other_shapes_of_a_message_are_refused(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(DamagedPart):
        Part.from_message(changed(part_with(_TOPIC, ARROW), path, value))


@pytest.mark.parametrize(
    "message", [b"", b"[" * 100_000, b"5", b"[]", b"null", b"\xff", b'{"v":1}']
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises(DamagedPart):
        Part.from_message(message)


def test_a_parts_claims_are_looked_at_where_no_message_was(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    for claims in ({"order": "x"}, {"count": -1}, {"topic_id": None}, {"length": 2**70}):
        with pytest.raises(DuologError):
            log.append(STREAM, 0, [part_with(topic, ARROW, **claims)])
    assert values(log, "orders") == []


def test_a_staged_file_that_is_exchanged_meanwhile_is_refused(form: Form) -> None:
    file: Any = None

    def exchange(point: str) -> None:
        if point == "append.verified":
            content = file.read_bytes()
            other = file.with_name("other")
            other.write_bytes(content)
            other.replace(file)

    form.configure(fault=exchange)
    log = form.open()
    topic = log.create_topic("orders")
    part = part_of(topic, {0: [b"value"] * 100}, folder=log.staging(STREAM, 0))
    file = form.staged_file(part.path)
    with pytest.raises(DamagedPart, match="changed while"):
        log.append(STREAM, 0, [part])
    assert values(log, "orders") == []
