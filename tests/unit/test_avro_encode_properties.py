"""Bodies of rows of any shape, held byte by byte against fastavro."""

from __future__ import annotations

from random import Random

from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
from tests.unit.avro_rows import Reference_, columns_from, rows_of

ROWS = 40

# All is made from one seed, which hypothesis prints when a test fails: that is the case.
any_seed = settings(max_examples=150, deadline=None, phases=[Phase.explicit, Phase.generate])


@any_seed
@given(st.integers(0, 2**32))
def test_bodies_are_those_of_fastavro(seed: int) -> None:
    note(f"seed {seed}")
    random = Random(seed)
    columns = columns_from(random)
    record = record_of(columns, "shop.orders")
    values, rows = rows_of(columns, random.randrange(ROWS), random)
    reference = Reference_(record)
    got = encoder_of(columns, record).encode(rows).to_pylist()
    assert got == [reference.body(row, columns) for row in values]
