"""The gate for batches: what is wrong inside is refused by name, whatever its checksum says."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import DamagedLog, InvalidRecord, RecordTooLarge
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch import (
    HEADER_BYTES,
    RECORD_SCHEMA,
    arrow_message,
    decode,
    encode,
    encode_small,
)
from duolog.log.batch_check import BatchLimits, check_batch
from duolog.log.batch_values import header_counts, record_sizes
from duolog.log.model import Op, PayloadMode, Record
from duolog.log.record_check import MAX_HEADERS, MAX_NAME_CHARACTERS, checked_record
from tests.support.hostile import (
    ArrowPlaces,
    number_at,
    summed,
    with_body,
    with_bytes,
    with_header,
    with_number,
)
from tests.unit.test_batch import FORMAT_2, NOW, OLD, OLD_RECORDS, arrow_of

RECORDS = [
    Record(b"value" * 30, b"key", (("h", b"1"), ("empty", None)), None, NOW, Op.UPDATE, "shop.x"),
    Record(None, b"key", (), None, NOW + 5, Op.DELETE, None, PayloadMode.KEY),
    Record(b"last", None, (("ü", b""),), None, NOW + 1, Op.INSERT, "", PayloadMode.FULL),
]
COUNT = len(RECORDS)
ARROW = encode(arrow_of(RECORDS))
PACKED = encode_small(RECORDS, NOW)[0]
PLAIN = encode_small([Record(b"v", b"k", ts_ms=NOW), Record(b"w", b"l", ts_ms=NOW)], NOW)[0]
PLACES = ArrowPlaces.of(ARROW)
LIMITS = BatchLimits()
TIME, OP, PAYLOAD = 0, 7, 9  # nodes
KEY_OFFSETS, HEADER_OFFSETS, NAME_OFFSETS, TABLE_OFFSETS = 3, 9, 12, 20  # buffers
ENDS = 8 * COUNT  # of keys, in the packed body
FLAGS = (8 + 4 + 4 + 1 + 1) * COUNT
REST = PACKED.index(b"[[", HEADER_BYTES) - HEADER_BYTES


def refused(encoded: bytes) -> str:
    """Why a batch is refused, alike by who lets it in and by who reads it."""
    with pytest.raises(WrongBatch) as wrong:
        check_batch(encoded, LIMITS)
    with pytest.raises(DamagedLog) as damaged:
        decode(encoded)
    assert str(wrong.value) in str(damaged.value)
    assert ("restore the log" in str(damaged.value)) != ("came in like" in str(damaged.value))
    return str(wrong.value)


@pytest.mark.parametrize("encoded", [ARROW, PACKED, PLAIN, *OLD, *FORMAT_2])
def test_a_right_batch_is_let_in(encoded: bytes) -> None:
    header, records = check_batch(encoded, LIMITS)
    assert records.num_rows == header.count
    assert records.equals(decode(encoded))
    assert summed(encoded) == encoded


@pytest.mark.parametrize("encoded", [ARROW, PACKED, OLD[0], OLD[1]])
@pytest.mark.parametrize(
    "change",
    [
        {"count": COUNT + 1},
        {"count": 1},
        {"count": 2**32 - 1},
        {"count": 2**31},
        {"count": 0},
        {"first_ts_ms": NOW + 5},
        {"first_ts_ms": 2**64 - 1},
        {"max_ts_ms": NOW + 6},
        {"max_ts_ms": NOW - 1},
        {"max_ts_ms": 2**64 - 1},
        {"max_ts_ms": 2**63},
        {"body": 3},
        {"reserved": 1},
    ],
)
def test_the_header_says_what_the_body_has(encoded: bytes, change: dict[str, int]) -> None:
    assert refused(with_header(encoded, **change))


@pytest.mark.parametrize(("encoded", "body"), [(ARROW, 2), (PACKED, 1)])
def test_a_body_is_of_the_kind_that_the_header_names(encoded: bytes, body: int) -> None:
    assert refused(with_header(encoded, body=body))


@pytest.mark.parametrize("encoded", [ARROW, PACKED])
def test_a_body_that_is_cut_or_followed_by_more_is_refused(encoded: bytes) -> None:
    for end in range(HEADER_BYTES, len(encoded) - 1, 7):
        assert refused(summed(encoded[:end]))
    assert refused(summed(encoded + b"x"))
    assert refused(summed(encoded + encoded[HEADER_BYTES:]))


# -- Arrow


@pytest.mark.parametrize("node", range(len(PLACES.nodes)))
@pytest.mark.parametrize("length", [-1, 0, COUNT + 1, 2**31, 2**40, 2**63 - 1, -(2**63)])
def test_a_column_has_as_many_values_as_there_are_records(node: int, length: int) -> None:
    assert refused(with_number(ARROW, PLACES.nodes[node], length))


@pytest.mark.parametrize("node", range(len(PLACES.nodes)))
@pytest.mark.parametrize("nulls", [-1, COUNT + 1, 2**40])
def test_a_column_has_as_many_nulls_as_it_says(node: int, nulls: int) -> None:
    assert refused(with_number(ARROW, PLACES.nodes[node] + 8, nulls))


@pytest.mark.parametrize("node", [TIME, OP, PAYLOAD])
def test_time_operation_and_payload_are_never_null(node: int) -> None:
    assert "lacks" in refused(with_number(ARROW, PLACES.nodes[node] + 8, 1))


def test_more_records_than_the_message_has_are_refused() -> None:
    """All numbers that name the count agree, and the buffers are too short for it."""
    count = 100_000
    lying = with_header(ARROW, count=count)
    for place in [PLACES.length, *(PLACES.nodes[nth] for nth in (0, 1, 2, 3, 7, 8, 9))]:
        lying = with_number(lying, place, count)
    assert "Arrow" in refused(lying)


@pytest.mark.parametrize("buffer", range(len(PLACES.buffers)))
def test_a_buffer_lies_within_its_message(buffer: int) -> None:
    at = PLACES.buffers[buffer]
    for place in (-8, 4, 1 << 20, 2**62, -(2**63)):
        # Where nothing is to be read, any place within the body is as good.
        assert refused(with_number(ARROW, at, place))
    for length in (-1, 1 << 20, 2**62, 2**63 - 1):
        assert refused(with_number(ARROW, at + 8, length))


@pytest.mark.parametrize("declared", [-2, 2**20, 2**30 + 1, 2**40, 2**63 - 1, -(2**63)])
def test_a_buffer_does_not_claim_to_become_more_than_it_can(declared: int) -> None:
    for at in PLACES.buffers:
        if number_at(ARROW, at + 8):
            place = PLACES.body + number_at(ARROW, at)
            assert refused(with_number(ARROW, place, declared))


def test_a_buffer_that_becomes_another_size_than_it_says_is_refused() -> None:
    for at in PLACES.buffers:
        place = PLACES.body + number_at(ARROW, at)
        if number_at(ARROW, at + 8) and number_at(ARROW, place) > 0:
            assert refused(with_number(ARROW, place, number_at(ARROW, place) + 1))


def test_a_message_claims_the_body_that_it_has() -> None:
    for length in (0, -8, number_at(ARROW, PLACES.body_length) + 8, 2**62):
        assert refused(with_number(ARROW, PLACES.body_length, length))


@pytest.mark.parametrize("size", [0, 4, 1 << 20, 2**31 - 8, 2**32 - 8])
def test_metadata_claims_no_more_than_there_is(size: int) -> None:
    assert refused(with_bytes(ARROW, 4, struct.pack("<I", size)))


@pytest.mark.parametrize("kind", [0, 1, 2, 4, 5, 255])
def test_only_records_are_taken(kind: int) -> None:
    assert "records" in refused(with_bytes(ARROW, PLACES.kind, bytes([kind])))


def test_other_versions_of_messages_are_refused() -> None:
    assert refused(with_bytes(ARROW, PLACES.version_byte, b"\x03"))


def written(records: Any, **options: Any) -> bytes:
    """A batch whose body pyarrow has written from other columns, or otherwise packed."""
    sink = pa.BufferOutputStream()
    options.setdefault("compression", "lz4")
    with pa.ipc.new_stream(sink, records.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_batch(records)
    content = sink.getvalue().to_pybytes()
    schema = 8 + int.from_bytes(content[4:8], "little")
    return with_body(ARROW, content[schema:-8])


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_only_our_own_packing_is_taken(compression: str | None) -> None:
    assert "packed" in refused(written(arrow_of(RECORDS), compression=compression))


def test_a_dictionary_in_place_of_records_is_refused() -> None:
    tables = arrow_of(RECORDS).column("table").dictionary_encode()
    records = arrow_of(RECORDS)
    at = RECORD_SCHEMA.get_field_index("table")
    assert refused(written(records.set_column(at, pa.field("table", tables.type), tables)))


def test_other_columns_are_refused() -> None:
    records = arrow_of(RECORDS)
    assert "columns" in refused(written(records.select(["ts", "key", "value"])))
    assert "columns" in refused(written(records.append_column("more", pa.array([1] * COUNT))))


def column(name: str, values: Any) -> Callable[[Any], Any]:
    at = RECORD_SCHEMA.get_field_index(name)
    return lambda records: records.set_column(at, RECORD_SCHEMA.field(at), values)


def with_offset(encoded: bytes, buffer: int, nth: int, offset: int) -> bytes:
    """Another offset in a buffer that LZ4 has left as it is."""
    places = ArrowPlaces.of(encoded)
    frame = places.body + number_at(encoded, places.buffers[buffer]) + 8
    begin = encoded[HEADER_BYTES + frame :][:11]
    assert begin == bytes.fromhex("04224d18604082") + struct.pack("<I", 4 * (COUNT + 1) | 1 << 31)
    return with_bytes(encoded, frame + len(begin) + 4 * nth, struct.pack("<i", offset))


@pytest.mark.parametrize("buffer", [KEY_OFFSETS, HEADER_OFFSETS, NAME_OFFSETS, TABLE_OFFSETS])
@pytest.mark.parametrize("nth", [0, 1, COUNT])
@pytest.mark.parametrize("offset", [-1, -(2**31), 1000, 2**30, 2**31 - 1])
def test_offsets_ascend_within_their_values(buffer: int, nth: int, offset: int) -> None:
    assert "Arrow" in refused(with_offset(ARROW, buffer, nth, offset))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (column("op", pa.array([0, 1, 5], pa.int8())), "op"),
        (column("op", pa.array([0, 1, -1], pa.int8())), "op"),
        (column("payload", pa.array([0, 4, 1], pa.int8())), "payload"),
        (column("ts", pa.array([NOW, NOW + 5, -1])), "1970"),
        (column("ts", pa.array([NOW + 1, NOW + 5, NOW])), "times"),
        (column("ts", pa.array([NOW, None, NOW + 5])), "lacks"),
    ],
)
def test_values_are_those_of_records(change: Callable[[Any], Any], why: str) -> None:
    assert why in refused(written(change(arrow_of(RECORDS))))


def headers_of(names: Any, ends: list[int]) -> Any:
    kind = RECORD_SCHEMA.field("headers").type
    items = pa.StructArray.from_arrays(
        [names, pa.nulls(len(names), pa.binary())], fields=list(kind.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items, type=kind)


def test_headers_have_names() -> None:
    names = pa.array(["a", None, "c"])
    lying = column("headers", headers_of(names, [0, 1, 2, 3]))
    assert "header" in refused(written(lying(arrow_of(RECORDS))))


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"a\x80"])
def test_texts_are_utf_8(text: bytes) -> None:
    records = arrow_of([Record(b"", table="~" * len(text), headers=(("^" * 3, None),), ts_ms=NOW)])
    encoded = with_header(encode(records), count=1)
    for known in (b"~" * len(text), b"^" * 3):
        at = encoded.index(known) - HEADER_BYTES
        assert "Arrow" in refused(with_bytes(encoded, at, text))


# -- packed


@pytest.mark.parametrize("column_at", [ENDS, ENDS + 4 * COUNT])
@pytest.mark.parametrize(
    "ends", [(9, 3, 9), (0, 0, 2**31), (0, 0, 2**32 - 1), (2**32 - 1, 2**32 - 1, 2**32 - 1)]
)
def test_packed_lengths_ascend_within_the_body(column_at: int, ends: tuple[int, ...]) -> None:
    assert "lengths" in refused(with_bytes(PACKED, column_at, struct.pack("<3I", *ends)))


@pytest.mark.parametrize(
    ("at", "content", "why"),
    [
        (FLAGS, b"\x10", "flags"),
        (FLAGS, b"\xff", "flags"),
        (FLAGS, b"\x0c", "headers or tables"),
        (FLAGS - COUNT, b"\x04", "payload"),
        (FLAGS - COUNT, b"\xff", "payload"),
        (FLAGS - 2 * COUNT, b"\x05", "op"),
        (FLAGS - 2 * COUNT, b"\x80", "op"),
        (0, struct.pack("<q", -1), "1970"),
        (8, struct.pack("<q", 2**62), "times"),
    ],
)
def test_packed_numbers_are_those_of_records(at: int, content: bytes, why: str) -> None:
    assert why in refused(with_bytes(PACKED, at, content))


def test_packed_headers_and_tables_may_not_be_missing() -> None:
    assert "missing" in refused(with_bytes(PLAIN, (8 + 4 + 4 + 1 + 1) * 2, b"\x00\x0c"))


ROWS: list[Any] = json.loads(PACKED[HEADER_BYTES + REST :])


def with_rest(rest: bytes) -> bytes:
    return summed(PACKED[: HEADER_BYTES + REST] + rest)


def test_the_rest_as_it_is_is_let_in() -> None:
    assert with_rest(json.dumps(ROWS, separators=(",", ":")).encode()) == PACKED


WRONG_ROWS: list[Any] = [
    None,
    [],
    {},
    "ab",
    ["shop.x"],
    ["shop.x", [["h", "MQ=="]], 3],
    [None, [["h", "MQ=="]]],
    [5, [["h", "MQ=="]]],
    [True, [["h", "MQ=="]]],
    [["shop.x"], [["h", "MQ=="]]],
    ["\ud800", [["h", "MQ=="]]],
    ["shop.x", []],
    ["shop.x", {"h": "MQ=="}],
    ["shop.x", "h"],
    ["shop.x", [["h"]]],
    ["shop.x", [["h", "MQ==", 1]]],
    ["shop.x", [{"h": 1, "v": 2}]],
    ["shop.x", [[None, "MQ=="]]],
    ["shop.x", [[5, "MQ=="]]],
    ["shop.x", [["\ud800", "MQ=="]]],
    ["shop.x", [["h", 5]]],
    ["shop.x", [["h", "no base64"]]],
    ["shop.x", [["h", "MQ"]]],
    ["shop.x", [["h", "MQ==\n"]]],
    ["shop.x", [["h", ["MQ=="]]]],
]


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b"1" * 10_000,
        json.dumps(ROWS[:2]).encode(),
        json.dumps([*ROWS, ROWS[0]]).encode(),
        json.dumps(ROWS).encode()[:-1],
        *(json.dumps([row, *ROWS[1:]]).encode() for row in WRONG_ROWS),
        json.dumps(ROWS).encode().replace(b"shop.x", b"\xed\xa0\x80"),
    ],
)
def test_headers_and_tables_are_as_pack_writes_them(rest: bytes) -> None:
    assert "headers or tables" in refused(with_rest(rest))


# -- sizes


def test_a_small_batch_of_one_huge_record_is_refused_before_it_is_unpacked() -> None:
    encoded = encode(arrow_of([Record(bytes(300 << 20), ts_ms=NOW)]))
    assert len(encoded) < 2 << 20
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    most_before = pool.max_memory()
    with pytest.raises(WrongBatch, match="over the limit"):
        check_batch(encoded, LIMITS)
    assert pa.total_allocated_bytes() == before
    assert pool.max_memory() == most_before


def test_many_records_do_not_make_a_batch_larger_than_the_limit() -> None:
    encoded = encode(arrow_of([Record(bytes(1 << 20), ts_ms=NOW)] * 70))
    with pytest.raises(WrongBatch, match="over the limit"):
        check_batch(encoded, LIMITS)


def test_a_packed_batch_is_one_of_few_records() -> None:
    headers = (("h", bytes(1000)),) * 1000
    encoded = encode_small([Record(b"", headers=headers, ts_ms=NOW)] * 5, NOW)[0]
    with pytest.raises(WrongBatch, match="go in"):
        check_batch(encoded, LIMITS)
    check_batch(encoded, BatchLimits(4 << 20))


def test_metadata_of_very_many_columns_is_not_read() -> None:
    nodes = PLACES.nodes[0] - 4
    padding = bytes(2 << 20)
    lying = with_body(ARROW, ARROW[HEADER_BYTES:][:8] + ARROW[HEADER_BYTES + 8 :] + padding)
    lying = with_bytes(lying, 4, struct.pack("<I", len(lying) - HEADER_BYTES - 8 & ~7))
    lying = with_number(lying, PLACES.body_length, 0)
    assert "columns" in refused(with_bytes(lying, nodes, struct.pack("<I", 100_000)))


def test_what_is_in_the_log_already_is_read_up_to_a_limit() -> None:
    encoded = encode(arrow_of([Record(bytes(2 << 20), ts_ms=NOW)]))
    assert decode(encoded).num_rows == 1
    with pytest.raises(DamagedLog, match="over the limit"):
        decode(encoded, max_unpacked_bytes=2 << 20)


@pytest.mark.parametrize(
    "record",
    [
        Record(b"v" * 101, ts_ms=NOW),
        Record(b"v" * 51, b"k" * 50, ts_ms=NOW),
        Record(b"v" * 50, b"k" * 40, (("name", b"value!!"),), ts_ms=NOW),
        Record(b"v", ts_ms=NOW, table="t" * 100),
    ],
)
def test_no_record_is_over_the_limit_with_all_that_it_has(record: Record) -> None:
    fits = Record(b"v" * 100, ts_ms=NOW)
    for batch in ([record], [fits, record], [fits, record, fits]):
        for encoded in (encode(arrow_of(batch)), encode_small(batch, NOW)[0]):
            with pytest.raises(RecordTooLarge, match=f"Record {batch.index(record)} of a batch"):
                check_batch(encoded, BatchLimits(100))
            check_batch(encoded, BatchLimits(101))


def test_no_record_has_more_headers_than_go_in() -> None:
    several = (("", None),) * MAX_HEADERS
    for headers, is_refused in ((several, False), ((*several, ("", None)), True)):
        batch = [Record(b"", ts_ms=NOW), Record(b"", headers=headers, ts_ms=NOW)]
        for encoded in (encode(arrow_of(batch)), encode_small(batch, NOW)[0]):
            if is_refused:
                with pytest.raises(InvalidRecord, match="Record 1 of a batch has 1001 headers"):
                    check_batch(encoded, LIMITS)
            else:
                check_batch(encoded, LIMITS)


@pytest.mark.parametrize("letter", ["a", "ü"])
def test_names_are_as_long_as_those_that_are_published(letter: str) -> None:
    for length, is_refused in ((MAX_NAME_CHARACTERS, False), (MAX_NAME_CHARACTERS + 1, True)):
        name = letter * length
        for record in (
            Record(b"", table=name, ts_ms=NOW),
            Record(b"", headers=((name, None),), ts_ms=NOW),
        ):
            for encoded in (encode(arrow_of([record])), encode_small([record], NOW)[0]):
                if not is_refused:
                    check_batch(encoded, LIMITS)
                    checked_record(record)
                    continue
                with pytest.raises(InvalidRecord, match="characters"):
                    check_batch(encoded, LIMITS)
                with pytest.raises(InvalidRecord, match="characters"):
                    checked_record(record)


def test_sizes_and_headers_are_counted_for_slices_too() -> None:
    records = arrow_of(RECORDS * 3)
    sizes, counts = record_sizes(records), header_counts(records)
    assert sizes.tolist()[:3] == [150 + 3 + 1 + 1 + 5 + 6, 3, 4 + 2]
    assert counts.tolist()[:3] == [2, 0, 1]
    for first in range(9):
        assert record_sizes(records.slice(first, 4)).tolist() == sizes[first : first + 4].tolist()
        assert header_counts(records.slice(first, 4)).tolist() == counts[first : first + 4].tolist()


def test_a_message_is_not_passed_on_unpacked_when_it_is_wrong() -> None:
    assert arrow_message(ARROW) is not None
    assert arrow_message(PACKED) is None
    for at in PLACES.buffers:
        with pytest.raises(DamagedLog):
            arrow_message(with_number(ARROW, at + 8, 2**40))


def test_old_records_are_let_in_as_they_are() -> None:
    for old in OLD + FORMAT_2:
        assert check_batch(old, LIMITS)[1].to_pylist() == arrow_of(OLD_RECORDS).to_pylist()


@pytest.mark.parametrize("encoded", [ARROW, PACKED])
def test_a_machine_without_memory_is_no_damage(
    encoded: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc failed")

    monkeypatch.setattr("duolog.log.arrow_body.pa.ipc.open_stream", no_memory)
    monkeypatch.setattr("duolog.log.packed.pa.array", no_memory)
    with pytest.raises(MemoryError):
        decode(encoded)
