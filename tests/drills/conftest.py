"""What drills share: chance with a seed that is shown, and a process that judges logs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.drills.courts import Court


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The same for each run of one test with one seed."""
    seed = os.environ["DUOLOG_DRILL_SEED"]
    print(f"DUOLOG_DRILL_SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture(scope="session")
def court() -> Iterator[Court]:
    """Judges logs with the product as it is."""
    with Court() as court:
        yield court
