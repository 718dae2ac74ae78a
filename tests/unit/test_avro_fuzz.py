"""Bytes that nobody wrote: refused by name, or read exactly as fastavro reads them."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.decode.decoder import BodyDecoder, decoder_of
from duolog.errors import Undecodable
from tests.unit.avro_cases import Cases, Reference, has_empty_items, parsed, shown

SEEDS = st.integers(0, 2**32)

# What fastavro lets pass, and the decoder does not.
STRICTER = (
    "bytes are left over",
    "neither 0 nor 1",
    "is no int:",  # fastavro reads an int as a long
    "is no time of day",
    "does not fit decimal",
    "a number has more than 64 bits",
    "a block of",  # whose size is not what is announced
    "items without bytes",
    "it has 9223372036854775808 items",  # written as a negative number that has no positive one
    "it is branch -",  # an index from the end, to Python
    "it is symbol -",
    "its length is given as -",  # to Python, all that is left
)
REASON = re.compile(
    r"Row (\d+)(, field '[^']+')?: (.+?)\. (These are not bytes|The reader)", re.DOTALL
)


def reading_of(reference: Reference, body: bytes) -> tuple[str, Any]:
    """What fastavro makes of it: a value, or the name of what it raises."""
    try:
        return "value", reference.value(body)
    except Exception as error:  # it raises many kinds
        return type(error).__name__, None


def decoding_of(decoder: BodyDecoder, bodies: list[bytes]) -> tuple[pa.Array | None, str]:
    """What the decoder makes of them: values, or why not."""
    try:
        return decoder.decode(pa.array(bodies, pa.binary())), ""
    except Undecodable as error:
        return None, str(error)


def check(decoder: BodyDecoder, reference: Reference, body: bytes) -> bool:
    """Whether it was read, as fastavro reads it. Anything but that and Undecodable fails."""
    array, refusal = decoding_of(decoder, [body])
    if array is None:
        reason = REASON.match(refusal)
        assert reason, refusal
        assert reason[1] == "0"
        if not any(part in reason[3] for part in STRICTER) and not has_empty_items(
            reference.schema
        ):
            kind, answer = reading_of(reference, body)
            assert kind != "value" or answer[1], (reason[3], repr(answer)[:200])
        return False
    kind, answer = reading_of(reference, body)
    assert kind == "value", (kind, array)
    array.validate(full=True)
    assert (shown(array)[0], 0) == answer
    return True


@st.composite
def mutations(draw: st.DrawFn, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(changed)))
        match draw(st.sampled_from(("flip", "cut", "insert", "remove", "replace"))):
            case "flip" if place < len(changed):
                changed[place] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del changed[place:]
            case "insert":
                changed[place:place] = draw(st.binary(max_size=12))
            case "remove":
                del changed[place : place + 1]
            case _:
                changed[place : place + 1] = draw(st.sampled_from(NASTY))
    return bytes(changed)


NASTY = (
    b"\xff" * 9 + b"\x01",  # the least long
    b"\xfe" + b"\xff" * 8 + b"\x01",  # the largest
    b"\xff" * 10 + b"\x01",
    b"\x80" * 9 + b"\x00",  # nought, in ten bytes
    b"\xff\xff\xff\xff\x0f",
    b"\x01\xfe\xff\xff\xff\x0f",
    b"\x02",
    b"\x01",
    b"\x00",
    b"\xed\xa0\x80",  # a surrogate
)


@settings(max_examples=300, deadline=None)
@given(SEEDS, st.lists(st.binary(max_size=40), min_size=3, max_size=10))
def test_random_bytes_are_refused_or_read_as_fastavro_reads_them(
    seed: int, bodies: list[bytes]
) -> None:
    schema = Cases(seed).schema(3)
    decoder, reference = decoder_of(parsed(schema)), Reference(schema)
    for body in bodies:
        check(decoder, reference, body)


@settings(max_examples=300, deadline=None)
@given(st.data(), SEEDS)
def test_changed_bodies_are_refused_or_read_as_fastavro_reads_them(
    data: st.DataObject, seed: int
) -> None:
    cases = Cases(seed)
    schema = cases.record(4)
    decoder, reference = decoder_of(parsed(schema)), Reference(schema)
    for _ in range(4):
        body = reference.body(cases.value(schema))
        check(decoder, reference, data.draw(mutations(body)))


@settings(max_examples=100, deadline=None)
@given(st.data(), SEEDS, st.sampled_from((2, 40, 90)))
def test_the_first_bad_row_of_a_batch_is_named(data: st.DataObject, seed: int, rows: int) -> None:
    cases = Cases(seed)
    schema = cases.record(4)
    decoder, reference = decoder_of(parsed(schema)), Reference(schema)
    bodies = [reference.body(cases.value(schema)) for _ in range(rows)]
    for row in data.draw(st.sets(st.integers(0, rows - 1), min_size=1, max_size=3)):
        bodies[row] = data.draw(mutations(bodies[row]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bad = [row for row, body in enumerate(bodies) if not check(decoder, reference, body)]
        array, refusal = decoding_of(decoder, bodies)
    if bad:
        assert refusal.startswith(f"Row {bad[0]}"), (bad, refusal)
    else:
        assert shown(array) == [reference.value(body)[0] for body in bodies]
