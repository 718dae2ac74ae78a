"""A sync fails, the process goes on, and then the power fails too: nothing acknowledged is lost.

After a sync that failed, Linux takes the pages for clean although they never reached the disk: a
later sync that succeeds says nothing about them, while every read still finds them. So a write may
be acknowledged after a failed sync only when it has been written anew.

Mutant: failures_settled.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.drills.courts import Court
from tests.drills.test_power_loss import lose_power, run_followed


def fail_and_lose_power(
    folder: Path,
    numbers: list[int],
    losses: int,
    chance: random.Random,
    court: Court,
    mutant: str | None = None,
) -> list[str]:
    """Let the sync of each number fail, once or three times in a row, and then the power."""
    for number in numbers:
        for count in (1, 3):
            run = run_followed(
                folder / "run",
                str(chance.random()),
                small_buffers=number % 2 == 0,
                failing=(number, count),
                mutant=mutant,
            )
            wrong = run.violations or lose_power(folder, run, losses, chance, court, go_on=False)
            if wrong:
                return [f"sync {number}, {count} in a row: {one}" for one in wrong]
            shutil.rmtree(folder / "run")
    return []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("failures", "losses"), [(2, 10), pytest.param(50, 20, marks=pytest.mark.full)]
)
def test_a_failed_sync_before_a_power_loss_loses_nothing(
    tmp_path: Path, chance: random.Random, court: Court, failures: int, losses: int
) -> None:
    numbers = chance.sample(range(1, 101), failures)
    assert fail_and_lose_power(tmp_path, numbers, losses, chance, court) == []


def test_failed_syncs_before_a_power_loss_find_the_mutant(
    tmp_path: Path, chance: random.Random
) -> None:
    with Court("failures_settled") as court:
        numbers = chance.sample(range(1, 41), 4)
        assert fail_and_lose_power(tmp_path, numbers, 20, chance, court, "failures_settled")
