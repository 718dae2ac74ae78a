"""Bodies of rows of any shape, held byte by byte against fastavro."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
from tests.unit.avro_rows import Reference_, columns, rows_of

ROWS = 40


@settings(max_examples=150, deadline=None)
@given(columns(), st.integers(0, 2**32))
def test_bodies_are_those_of_fastavro(schema: pa.Schema, seed: int) -> None:
    random = Random(seed)
    record = record_of(schema, "shop.orders")
    values, rows = rows_of(schema, random.randrange(ROWS), random)
    rows.validate()
    reference = Reference_(record)
    got = encoder_of(schema, record).encode(rows).to_pylist()
    assert got == [reference.body(row, schema) for row in values]
