"""Files are handed over to RocksDB while its MANIFEST cannot be synced.

RocksDB takes the files back then, and leaves their names in the MANIFEST: without what is kept of
them the log does not open. In this process, or in the next one when this one dies first, all that
was acknowledged is there, and what was refused is taken when it is sent again.

Then small tables are joined while RocksDB's files cannot be read, written or synced.

Mutant: handed_over_not_kept.
"""

from __future__ import annotations

import errno
import random
from itertools import product
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import write_ledger
from tests.support.children import Child, ChildFailed
from tests.support.shim import preloaded

_SHORT = [(2, 1, False, False), (2, 1, True, False), (4, 3, True, False), (2, 1, False, True)]
_LONG = list(product(range(1, 13), (1, 2, 5), (False, True), (False, True)))

Way = tuple[int, int, bool, bool]


def handed_over(
    folder: Path, court: Court, chance: random.Random, way: Way, mutant: str | None = None
) -> tuple[list[str], bool]:
    """What is wrong afterwards, and whether a sync of the MANIFEST failed at all."""
    first, count, full, dies = way
    log, ledger = folder / "log", folder / "ledger"
    ledger.touch()
    arguments = {
        "role": "hand_over",
        "mutant": mutant,
        "folder": str(log),
        "ledger": str(ledger),
        "seed": str(chance.random()),
        "first": first,
        "count": count,
        "full": full,
        "dies": dies,
    }
    with Child(worker.__name__, arguments, environment=preloaded()) as child:
        try:
            heard = list(child.rest())
        except ChildFailed as failed:
            return [str(failed)], True
        errors = child.errors()
    ended = bool(heard) and heard[-1][0] == "done"
    wrong = [one for said in heard if said[0] == "violations" for one in said[1]]
    if not ended and not dies:
        return [*wrong, f"the process failed: {errors}"], True
    write_ledger(ledger, heard)
    wrong += court.verdict(log, ledger, go_on=True).wrong_unless_whole()
    return wrong, not ended or heard[-1][1]


def all_found(
    folder: Path,
    court: Court,
    chance: random.Random,
    ways: list[Way],
    mutant: str | None = None,
) -> list[str]:
    found: list[str] = []
    met = 0
    for number, way in enumerate(ways):
        place = folder / str(number)
        place.mkdir()
        wrong, was_met = handed_over(place, court, chance, way, mutant)
        met += was_met
        found += [f"sync, count, full, dies {way}: {one}" for one in wrong]
        if mutant is not None and found:
            return found
    if not met:
        found.append("no sync ever failed: the shim does not see them")
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ways", [_SHORT, pytest.param(_LONG, marks=pytest.mark.full)])
def test_a_manifest_that_cannot_be_synced_costs_no_file(
    tmp_path: Path, court: Court, chance: random.Random, ways: list[Way]
) -> None:
    assert all_found(tmp_path, court, chance, ways) == []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("firsts", [(1,), pytest.param(range(1, 8), marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("call", "text", "error"),
    [
        ("sync", "MANIFEST", errno.EIO),
        ("sync", ".sst", errno.EIO),
        ("write", ".sst", errno.ENOSPC),
        ("read", ".sst", errno.EIO),
    ],
)
def test_a_disk_that_fails_while_tables_are_joined_costs_nothing(
    tmp_path: Path, chance: random.Random, call: str, text: str, error: int, firsts: range
) -> None:
    for first in firsts:
        arguments = {
            "role": "join",
            "folder": str(tmp_path / str(first)),
            "call": call,
            "text": text,
            "error": error,
            "first": first,
            "seed": str(chance.random()),
        }
        with Child(worker.__name__, arguments, environment=preloaded()) as child:
            assert child.said()["violations"] == []


def test_a_manifest_that_cannot_be_synced_finds_the_mutant(
    tmp_path: Path, court: Court, chance: random.Random
) -> None:
    assert all_found(tmp_path, court, chance, _SHORT, "handed_over_not_kept")
