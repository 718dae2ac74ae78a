"""Retention, CLEAR, DROP and merging beside readers and writers, with failing syncs and kill -9.

Each reader gets the right records, or is told that they are gone. A start that a reader was told
never goes back, and what a writer was told is there or below the start, also after a kill.

Mutants: records_go_first, retention_beside_merging.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.removing import PARTITIONS
from tests.support.children import Child


def removed_beside_readers(
    folder: Path, lives: int, seconds: float, chance: random.Random, mutant: str | None = None
) -> list[str]:
    """What was found wrong in so many lives, all but the last of which are cut short."""
    starts, nexts = [0] * PARTITIONS, [0] * PARTITIONS
    for life in range(lives):
        arguments = {
            "role": "remove_beside_readers",
            "mutant": mutant,
            "folder": str(folder / "log"),
            "seed": str(chance.random()),
            "seconds": seconds,
            "starts": starts,
            "nexts": nexts,
        }
        killed_after = chance.uniform(0.1, seconds) if life < lives - 1 else None
        with Child(worker.__name__, arguments) as child:
            heard = [child.said()]
            if killed_after is not None:
                heard.extend(child.until_silent(killed_after))
                child.kill()
            heard.extend(child.rest())
            errors = child.errors()
        for said in heard:
            if said[0] == "violations" and said[1]:
                return [f"life {life}: {each}" for each in said[1]]
            if said[0] == "told":
                starts = list(map(max, starts, said[1]))
                nexts = list(map(max, nexts, said[2]))
        if "Traceback" in errors or (killed_after is None and heard[-1] != ["done"]):
            return [f"life {life}: the process failed: {errors}"]
    return []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("lives", "seconds"), [(4, 2.0), pytest.param(60, 20.0, marks=pytest.mark.full)]
)
def test_readers_beside_removals_are_never_misled(
    tmp_path: Path, chance: random.Random, lives: int, seconds: float
) -> None:
    assert removed_beside_readers(tmp_path, lives, seconds, chance) == []


@pytest.mark.parametrize("mutant", ["records_go_first", "retention_beside_merging"])
def test_removals_beside_readers_find_the_mutant(
    tmp_path: Path, chance: random.Random, mutant: str
) -> None:
    assert removed_beside_readers(tmp_path, 1, 90.0, chance, mutant)
