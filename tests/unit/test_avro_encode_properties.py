"""Bodies of rows of any shape, held byte by byte against fastavro."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from duolog.avro.encode import node
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.from_arrow import record_of
from duolog.avro.schema import Array, Field, Map, Record, Schema
from tests.unit.avro_fastavro import Fastavro
from tests.unit.avro_rows import Varied, columns_from, rows_of, union_column

ROWS = 60
CASES: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def _cases_are_told() -> Iterator[None]:
    yield
    print(f"\nrows compared with fastavro: {dict(CASES)}")


def any_seed(examples: int) -> settings:
    """All is made from one seed; hypothesis prints it when a test fails."""
    return settings(
        max_examples=examples, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
    )


def compare(columns: pa.Schema, schema: Schema, random: Random, called: str) -> None:
    values, rows = rows_of(columns, random.randrange(ROWS), random)
    reference = Fastavro(schema)
    expected = [reference.body(row, columns) for row in values]
    assert encoder_of(columns, schema).encode(rows).to_pylist() == expected
    CASES[called] += len(values)


@any_seed(160)
@given(st.integers(0, 2**32))
def test_bodies_are_those_of_fastavro(seed: int) -> None:
    note(f"seed {seed}")
    random = Random(seed)
    columns = columns_from(random)
    compare(columns, record_of(columns, "shop.orders"), random, "own schema")


@any_seed(120)
@given(st.integers(0, 2**32))
def test_bodies_in_another_schema_are_those_of_fastavro(seed: int) -> None:
    note(f"seed {seed}")
    random = Random(seed)
    columns = columns_from(random, depth=3)
    schema = Varied(random).record(record_of(columns, "shop.orders"), columns)
    compare(columns, schema, random, "another schema")


@any_seed(60)
@given(st.integers(0, 2**32))
def test_unions_of_several_types_are_those_of_fastavro(seed: int) -> None:
    note(f"seed {seed}")
    random = Random(seed)
    written: set[str] = set()
    (one, first), (many, second), (named, third) = (
        union_column("u", random, written) for _ in range(3)
    )
    columns = pa.schema(
        [
            one,
            pa.field("many", pa.list_(many), nullable=False),
            pa.field("named", pa.map_(pa.string(), named), nullable=False),
        ]
    )
    fields = (Field("u", first), Field("many", Array(second)), Field("named", Map(third)))
    record = Record("r", fields)
    compare(columns, record, random, "unions")


@any_seed(60)
@given(st.integers(0, 2**32))
def test_how_many_rows_are_done_at_a_time_does_not_show(seed: int) -> None:
    note(f"seed {seed}")
    random = Random(seed)
    columns = columns_from(random, depth=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node, "_FEWEST_ROWS", 1)
        patch.setattr(node, "_MOST_ROWS", random.randint(1, 9))
        compare(columns, record_of(columns, "shop.orders"), random, "small steps")
