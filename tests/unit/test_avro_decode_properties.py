"""Random schemas and values: what fastavro wrote is read as fastavro reads it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.avro.decode import blocks
from duolog.avro.decode.decoder import decoder_of
from tests.unit.avro_cases import Cases, Reference, parsed, shown

SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module", autouse=True)
def counted() -> Iterator[list[int]]:
    yield COUNT
    print(f"{sum(COUNT)} values of {len(COUNT)} schemas were read as fastavro reads them")


COUNT: list[int] = []


@settings(max_examples=400, deadline=None)
@given(SEEDS, st.sampled_from((1, 3, 40, 120)), st.sampled_from((0, blocks.FEW_ROWS)))
def test_what_fastavro_wrote_is_read_as_fastavro_reads_it(seed: int, rows: int, few: int) -> None:
    cases = Cases(seed)
    schema = cases.record(4) if cases.random.random() < 0.8 else cases.schema(4)
    reference = Reference(schema)
    bodies = [
        None if cases.random.random() < 0.05 else reference.body(cases.value(schema))
        for _ in range(rows)
    ]
    decoder = decoder_of(parsed(schema))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "FEW_ROWS", few)  # 0: never byte by byte
        array = decoder.decode(pa.array(bodies, pa.binary()))
    assert array.type == decoder.type
    array.validate(full=True)
    assert shown(array) == [None if body is None else reference.value(body)[0] for body in bodies]
    COUNT.append(rows)
