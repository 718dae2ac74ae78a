"""The Nth fsync fails, for each N: an error means unknown, and sending again settles it.

The fault shim lets a sync fail with EIO and undoes nothing of what was written, once or several
times in a row, in whatever RocksDB or we were doing. The writer sends each refused record and epoch
again with its number. Afterwards all is there once, in the same process and in the next one.

Mutants: never_recovered, sequences_forgotten.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import write_ledger
from tests.support.children import Child, ChildFailed
from tests.support.shim import preloaded

_SHORT = (1, 4, 12, 30)


def with_failing_syncs(
    folder: Path,
    court: Court,
    chance: random.Random,
    *,
    first: int,
    count: int,
    mutant: str | None = None,
) -> tuple[list[str], bool]:
    """What is wrong afterwards, and whether the sync that was to fail was ever made."""
    log, ledger = folder / "log", folder / "ledger"
    ledger.touch()
    arguments = {
        "role": "fail_syncs",
        "mutant": mutant,
        "folder": str(log),
        "ledger": str(ledger),
        "seed": str(chance.random()),
        "first": first,
        "count": count,
    }
    with Child(worker.__name__, arguments, environment=preloaded()) as child:
        try:
            heard = list(child.rest())
        except ChildFailed as failed:
            return [str(failed)], True
        errors = child.errors()
    wrong = [one for said in heard if said[0] == "violations" for one in said[1]]
    if not heard or heard[-1][0] != "done":
        return [*wrong, f"the process failed: {errors}"], True
    write_ledger(ledger, heard)
    return wrong + court.verdict(log, ledger, go_on=True).wrong_unless_whole(), heard[-1][1]


def all_found(
    folder: Path,
    court: Court,
    chance: random.Random,
    numbers: range | tuple[int, ...],
    mutant: str | None = None,
) -> list[str]:
    found: list[str] = []
    met = 0
    for first in numbers:
        for count in (1, 3):
            place = folder / f"{first}-{count}"
            place.mkdir()
            wrong, was_met = with_failing_syncs(
                place, court, chance, first=first, count=count, mutant=mutant
            )
            met += was_met
            found += [f"sync {first}, {count} in a row: {one}" for one in wrong]
            if mutant is not None and found:
                return found
    if not met:
        found.append("no sync ever failed: the shim does not see them")
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("numbers", [_SHORT, pytest.param(range(1, 101), marks=pytest.mark.full)])
def test_a_failed_sync_loses_and_doubles_nothing(
    tmp_path: Path, court: Court, chance: random.Random, numbers: range | tuple[int, ...]
) -> None:
    assert all_found(tmp_path, court, chance, numbers) == []


@pytest.mark.parametrize("mutant", ["never_recovered", "sequences_forgotten"])
def test_failing_syncs_find_the_mutant(
    tmp_path: Path, court: Court, chance: random.Random, mutant: str
) -> None:
    assert all_found(tmp_path, court, chance, _SHORT, mutant)
