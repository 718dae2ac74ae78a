"""Reads batches that are wrong inside and have a right checksum, as fast as it can make them.

What is let in has to be whole: every value of it is looked at. The batch in hand lies in a file, so
that it is known even if reading it ends the process.
"""

from __future__ import annotations

import mmap
import random
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from duolog.errors import DamagedLog, InvalidRecord, UnsupportedFormat
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch import HEADER_BYTES, RECORD_SCHEMA, decode, encode, encode_small
from duolog.log.batch_check import BatchLimits, check_batch
from duolog.log.model import Op, PayloadMode, Record
from tests.drills.worker import say
from tests.support.hostile import (
    ArrowPlaces,
    laid_open,
    summed,
    with_body,
    with_bytes,
    with_header,
    with_number,
)

MOST_BYTES: Final = 1 << 20  # of the file; larger batches are not made
_MOST_MEMORY: Final = 256 << 20
_TRIES_PER_LINE: Final = 1000
_LIMITS: Final = BatchLimits()
_NOW: Final = 1_700_000_000_000
_NUMBERS: Final = (
    *(-1, 0, 1, 7, 8, 64, 255, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62),
    *(2**63 - 1, -(2**31), -(2**63), -8),
)
# By now it is too strange for the next change to find its place.
_NOT_TO_BE_CHANGED: Final = (struct.error, AssertionError, LookupError, ValueError, OverflowError)
Change = Callable[[bytes, random.Random], bytes]


def read_hostile(current: str, *, seed: str, tries: int, seconds: float | None) -> None:
    """The role. Says after some tries how they have ended, until there are enough of them."""
    chance = random.Random(seed)
    until = None if seconds is None else time.monotonic() + seconds
    with Path(current).open("r+b") as file, mmap.mmap(file.fileno(), MOST_BYTES) as in_hand:
        done = 0
        while done < tries if until is None else time.monotonic() < until:
            outcomes: Counter[str] = Counter()
            wrong: list[str] = []
            for _ in range(_TRIES_PER_LINE):
                _try_one(chance, in_hand, outcomes, wrong)
            done += _TRIES_PER_LINE
            say({"outcomes": dict(outcomes), "wrong": wrong[:10]})


def _try_one(
    chance: random.Random, in_hand: mmap.mmap, outcomes: Counter[str], wrong: list[str]
) -> None:
    kind, encoded = _batch(chance)
    changes = chance.choice((0, 1, 1, 1, 2, 3))
    mutated = encoded
    for _ in range(changes):
        with suppress(*_NOT_TO_BE_CHANGED):
            mutated = chance.choice(_CHANGES[kind])(mutated, chance)
    if len(mutated) > MOST_BYTES - 4:
        return
    in_hand[: 4 + len(mutated)] = len(mutated).to_bytes(4) + mutated
    outcome = _outcome(mutated)
    is_whole = mutated == encoded
    outcomes[f"{'whole' if is_whole else kind} {outcome}"] += 1
    if outcome not in {"read", "refused"} or (is_whole and outcome != "read"):
        wrong.append(f"{outcome}: {mutated.hex()[:4000]}")


def _outcome(encoded: bytes) -> str:
    try:
        records = decode(encoded)
    except (DamagedLog, UnsupportedFormat):
        records = None
    except Exception as error:
        return f"decode raised {type(error).__name__}"
    try:
        _, let_in = check_batch(encoded, _LIMITS)
    except (WrongBatch, InvalidRecord, UnsupportedFormat):
        let_in = None
    except Exception as error:
        return f"check raised {type(error).__name__}"
    if pa.default_memory_pool().max_memory() > _MOST_MEMORY:
        return "took too much memory"
    if records is None:
        return "refused" if let_in is None else "let in and not readable"
    return _looked_at(records)


def _looked_at(records: Any) -> str:
    try:
        records.validate(full=True)
        rows = records.to_pylist()
    except Exception as error:
        return f"cannot be looked at: {type(error).__name__}"
    fits = all(
        row["ts"] >= 0
        and row["op"] in set(Op)
        and row["payload"] in set(PayloadMode)
        and all(isinstance(header["name"], str) for header in row["headers"] or ())
        for row in rows
    )
    return "read" if fits and records.schema == RECORD_SCHEMA else "is none of records"


# -- batches


def _batch(chance: random.Random) -> tuple[str, bytes]:
    records = [_record(chance) for _ in range(chance.choice((1, 2, 3, 8, 9, 40)))]
    kind = chance.choice(("packed", "arrow", "open"))
    if kind == "packed":
        encoded = encode_small(records, _NOW)[0]
    else:
        encoded = encode(_columns(records))
        encoded = laid_open(encoded) if kind == "open" else encoded
    return kind, summed(b"\x01" + encoded[1:]) if chance.random() < 0.3 else encoded


def _record(chance: random.Random) -> Record:
    def content() -> bytes | None:
        return None if chance.random() < 0.2 else chance.randbytes(chance.choice((0, 1, 5, 200)))

    def text() -> str:
        return chance.choice(("", "a", "shop.orders", "ünï", "h" * 30))

    return Record(
        content(),
        content(),
        tuple((text(), content()) for _ in range(chance.choice((0, 0, 1, 3)))),
        None,
        _NOW + chance.randrange(1000),
        chance.choice(list(Op)),
        None if chance.random() < 0.5 else text(),
        chance.choice(list(PayloadMode)),
    )


def _columns(records: list[Record]) -> Any:
    rows = [
        {
            "ts": record.ts_ms,
            "key": record.key,
            "value": record.value,
            "headers": [{"name": n, "value": v} for n, v in record.headers] or None,
            "op": int(record.op),
            "table": record.table,
            "payload": int(record.payload),
        }
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


# -- changes


def _other_number(chance: random.Random, now: int = 0) -> int:
    near = now + chance.choice((-8, -1, 1, 8))
    return chance.choice((*_NUMBERS, near, 8 * chance.randrange(200), chance.randrange(2**63)))


def _fitting(number: int, bits: int) -> int:
    return number % (1 << bits)


def _header(encoded: bytes, chance: random.Random) -> bytes:
    field, bits = chance.choice((("count", 32), ("first_ts_ms", 64), ("max_ts_ms", 64)))
    now = len(encoded) if field != "count" else int.from_bytes(encoded[8:12])
    return with_header(encoded, **{field: _fitting(_other_number(chance, now), bits)})


def _kind(encoded: bytes, chance: random.Random) -> bytes:
    return with_header(encoded, body=chance.choice((0, 1, 2, 3)))


def _any_byte(encoded: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(encoded) - HEADER_BYTES) if len(encoded) > HEADER_BYTES else 0
    return with_bytes(encoded, at, bytes([chance.randrange(256)]))


def _any_word(encoded: bytes, chance: random.Random) -> bytes:
    room = len(encoded) - HEADER_BYTES - 8
    if room <= 0:
        return encoded
    at = chance.randrange(room)
    size = chance.choice((2, 4, 8))
    number = _fitting(_other_number(chance), 8 * size)
    return with_bytes(encoded, at - at % size, number.to_bytes(size, "little"))


def _cut(encoded: bytes, chance: random.Random) -> bytes:
    return summed(encoded[: chance.randrange(HEADER_BYTES, len(encoded) + 1)])


def _longer(encoded: bytes, chance: random.Random) -> bytes:
    return summed(encoded + chance.choice((b"\0", bytes(8), chance.randbytes(16), encoded[28:])))


def _moved(encoded: bytes, chance: random.Random) -> bytes:
    """Some of the body is put where some other of it lies."""
    body = encoded[HEADER_BYTES:]
    if len(body) < 32:
        return encoded
    size = chance.choice((4, 8, 16, 32))
    source, target = (chance.randrange(len(body) - size + 1) for _ in range(2))
    return with_bytes(encoded, target - target % 4, body[source - source % 4 :][:size])


def _arrow_number(encoded: bytes, chance: random.Random) -> bytes:
    """One of the numbers that a message declares."""
    places = ArrowPlaces.of(encoded)
    at = chance.choice(
        (
            places.body_length,
            places.length,
            *(at + behind for at in places.nodes for behind in (0, 8)),
            *(at + behind for at in places.buffers for behind in (0, 8)),
            *(_content_at(encoded, places, at) for at in places.buffers),
        )
    )
    now = struct.unpack_from("<q", encoded, HEADER_BYTES + at)[0]
    number = _other_number(chance, now)
    return with_number(encoded, at, number if -(2**63) <= number < 2**63 else 0)


def _content_at(encoded: bytes, places: ArrowPlaces, buffer: int) -> int:
    at = places.body + int(struct.unpack_from("<q", encoded, HEADER_BYTES + buffer)[0])
    return at if 0 <= at <= len(encoded) - HEADER_BYTES - 8 else places.length


def _arrow_count(encoded: bytes, chance: random.Random) -> bytes:
    """All that name the number of records name another one, and agree."""
    count = chance.choice((1, 2, 10, 100, 1000, 2**20, 2**31 - 1))
    places = ArrowPlaces.of(encoded)
    lying = with_header(encoded, count=count)
    for at in (places.length, *(places.nodes[nth] for nth in (0, 1, 2, 3, 7, 8, 9))):
        lying = with_number(lying, at, count)
    return lying


def _swapped_buffers(encoded: bytes, chance: random.Random) -> bytes:
    source, target = chance.sample(ArrowPlaces.of(encoded).buffers, 2)
    return with_bytes(encoded, target, encoded[HEADER_BYTES + source :][:16])


def _in_a_buffer(encoded: bytes, chance: random.Random) -> bytes:
    """An offset, or a value, of a buffer that is not packed."""
    places = ArrowPlaces.of(encoded)
    begin, length = struct.unpack_from("<qq", encoded, HEADER_BYTES + chance.choice(places.buffers))
    if not 8 < length <= 1 << 16 or begin < 0:
        return encoded
    at = places.body + begin + 8 + chance.randrange(length - 8)
    now = struct.unpack_from("<i", encoded, HEADER_BYTES + at - at % 4)[0]
    number = _fitting(_other_number(chance, now), 32)
    return with_bytes(encoded, at - at % 4, number.to_bytes(4, "little"))


def _packed_number(encoded: bytes, chance: random.Random) -> bytes:
    """A time, an end, a word or a flag."""
    count = int.from_bytes(encoded[8:12])
    if 19 * count > len(encoded) - HEADER_BYTES:
        return encoded
    nth = chance.randrange(count)
    number = _other_number(chance)
    match chance.randrange(4):
        case 0:
            return with_bytes(encoded, 8 * nth, _fitting(number, 64).to_bytes(8, "little"))
        case 1:
            at = 8 * count + 4 * chance.randrange(2 * count)
            return with_bytes(encoded, at, _fitting(number, 32).to_bytes(4, "little"))
        case _:
            at = 16 * count + chance.randrange(3 * count)
            return with_bytes(encoded, at, bytes([_fitting(number, 8)]))


def _rest(encoded: bytes, chance: random.Random) -> bytes:
    """Other words in the headers and tables."""
    at = encoded.find(b"[[", HEADER_BYTES)
    if at < 0:
        return encoded
    rest = encoded[at:]
    old, new = chance.choice(
        (
            (b"[[", b"[[["),
            (b'"', b'"\\ud800'),
            (b'"', b"\xed\xa0\x80"),
            (b"null", b"0"),
            (b"null", b'"text"'),
            (b",", b""),
            (b"]]", b"]]]"),
            (b"[", b"[" * 5000),
            (b"]", b",[]]"),
            (b"a", b"\xff"),
            (b'["', b'[{},"'),
        )
    )
    return with_body(encoded[:HEADER_BYTES], encoded[HEADER_BYTES:at] + rest.replace(old, new, 1))


_ANY: Final = (_header, _any_byte, _any_word, _cut, _longer, _moved, _kind)
_ARROW: Final = (_arrow_number, _arrow_number, _arrow_count, _swapped_buffers)
_CHANGES: Final[dict[str, tuple[Change, ...]]] = {
    "arrow": (*_ANY, *_ARROW, *_ARROW),
    "open": (*_ANY, *_ARROW, _in_a_buffer, _in_a_buffer, _in_a_buffer, _in_a_buffer),
    "packed": (*_ANY, _packed_number, _packed_number, _packed_number, _rest, _rest),
}
