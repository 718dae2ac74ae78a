"""A checkpoint is lost and the last epoch planned anew.

With the same rows, in whatever order and split, it gets the offsets of the first time. With a row
more, less or changed it is refused by name. The log stays as it was, also over a restart.

Mutants: content_ignored, order_matters.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills import worker
from tests.support.children import Child


def replanned(
    folder: Path, times: int, chance: random.Random, mutant: str | None = None
) -> list[str]:
    """What is wrong after so many lost checkpoints."""
    wrong: list[str] = []
    for number in range(times):
        arguments = {
            "role": "replan",
            "mutant": mutant,
            "folder": str(folder / f"log{number}"),
            "seed": str(chance.random()),
        }
        with Child(worker.__name__, arguments) as child:
            wrong += child.said()[1]
    return wrong


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("times", [4, pytest.param(60, marks=pytest.mark.full)])
def test_a_replanned_epoch_is_told_from_a_repeated_one(
    tmp_path: Path, chance: random.Random, times: int
) -> None:
    assert replanned(tmp_path, times, chance) == []


@pytest.mark.parametrize("mutant", ["content_ignored", "order_matters"])
def test_replanning_finds_the_mutant(tmp_path: Path, chance: random.Random, mutant: str) -> None:
    assert replanned(tmp_path, 2, chance, mutant)
