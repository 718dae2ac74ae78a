"""Varints by whole columns, held against the loop that the specification describes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from duolog.avro.varint import LONGEST, varint, varints, zigzag, zigzag_of

INT64 = st.integers(-(2**63), 2**63 - 1)
# Numbers of all sizes, not mostly large ones.
ANY_SIZE = st.tuples(INT64, st.integers(0, 63)).map(lambda pair: pair[0] >> pair[1])


def fastavro_bytes(number: int) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, "long", number)
    return stream.getvalue()


def columns_as_bytes(numbers: list[int]) -> list[bytes]:
    texts = [b""] * len(numbers)
    for words, sizes, largest in varints(zigzag(np.array(numbers, np.int64))):
        for row, word in enumerate(words.tolist()):
            size = sizes if isinstance(sizes, int) else int(sizes[row])
            whole = word.to_bytes(8, "little")
            assert size <= largest <= len(whole)
            assert not any(whole[size:])
            texts[row] += whole[:size]
    return texts


@given(st.lists(ANY_SIZE, max_size=30))
def test_columns_of_numbers_are_those_of_fastavro(numbers: list[int]) -> None:
    assert columns_as_bytes(numbers) == [fastavro_bytes(number) for number in numbers]


@given(INT64)
def test_a_single_number_is_that_of_fastavro(number: int) -> None:
    assert varint(number) == fastavro_bytes(number)
    assert len(varint(number)) <= LONGEST


@pytest.mark.parametrize("bits", range(64))
def test_every_length_begins_and_ends_where_it_should(bits: int) -> None:
    edges = [(1 << bits) - 1, -(1 << bits)]
    edges += [number for number in (edges[0] + 1, edges[1] - 1) if -(2**63) <= number < 2**63]
    for numbers in (edges, [0, *edges], [edges[0]], [edges[1]], [2**63 - 1, *edges]):
        assert columns_as_bytes(numbers) == [fastavro_bytes(number) for number in numbers]


def test_zigzag_makes_small_numbers_of_small_ones() -> None:
    numbers = [0, -1, 1, -2, 2**63 - 1, -(2**63)]
    assert zigzag(np.array(numbers)).tolist() == [0, 1, 2, 3, 2**64 - 2, 2**64 - 1]
    assert [zigzag_of(number) for number in numbers] == [0, 1, 2, 3, 2**64 - 2, 2**64 - 1]


def test_the_numbers_handed_over_stay_as_they_are() -> None:
    numbers = np.array([1, 300, 2**63, 2**40], np.uint64)
    numbers.flags.writeable = False
    assert len(varints(numbers)) == 2
    assert numbers.tolist() == [1, 300, 2**63, 2**40]
