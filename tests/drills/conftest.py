"""What drills share: chance with a seed that is shown, and a process that judges logs."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.drills.courts import Court

_SEED = os.environ.get("DUOLOG_DRILL_SEED") or str(random.SystemRandom().randrange(10**9))


def pytest_report_header() -> str:
    return f"drills: DUOLOG_DRILL_SEED={_SEED}"


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The same for each run of one test with one seed."""
    print(f"DUOLOG_DRILL_SEED={_SEED}")
    return random.Random(f"{_SEED} {request.node.name}")


@pytest.fixture(scope="session")
def court() -> Iterator[Court]:
    """Judges logs with the product as it is."""
    with Court() as court:
        yield court
