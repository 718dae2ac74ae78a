"""Batches that are wrong inside, with right checksums, are refused by name: never a crash.

Both bodies and both formats. Headers, the metadata of Arrow messages, places and lengths of
buffers, what they say they become, offsets, words and texts are changed; whatever is let in has to
be whole. A process of its own reads them, so that its death is seen.

Mutant: batches_unchecked.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.reading_hostile import MOST_BYTES
from tests.support.children import Child, ChildFailed


@dataclass
class Found:
    """How reading went."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def ended(self, outcome: str) -> int:
        return sum(count for name, count in self.outcomes.items() if name.endswith(outcome))


def read_hostile(
    folder: Path,
    chance: random.Random,
    *,
    tries: int,
    seconds: float | None = None,
    mutant: str | None = None,
) -> Found:
    """Let a process read so many, or for so long."""
    found = Found()
    current = folder / "current"
    current.write_bytes(bytes(MOST_BYTES))
    arguments = {
        "role": "read_hostile",
        "current": str(current),
        "seed": str(chance.random()),
        "tries": tries,
        "seconds": seconds,
        "mutant": mutant,
    }
    with Child(worker.__name__, arguments) as child:
        try:
            while (said := child.says()) is not None:
                found.outcomes.update(said["outcomes"])
                found.wrong += said["wrong"]
        except ChildFailed as failed:
            found.wrong.append(f"it hangs: {failed}; {_in_hand(current)}")
        else:
            if child.wait() != 0:
                found.wrong.append(f"it died: {child.wait()} {child.errors()} {_in_hand(current)}")
    return found


def _in_hand(current: Path) -> str:
    content = current.read_bytes()
    return content[4 : 4 + int.from_bytes(content[:4])].hex()[:8000]


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seconds", [None, pytest.param(1800.0, marks=pytest.mark.full)])
def test_a_hostile_batch_is_refused_by_name(
    tmp_path: Path, chance: random.Random, seconds: float | None
) -> None:
    found = read_hostile(tmp_path, chance, tries=6_000, seconds=seconds)
    print(dict(found.outcomes))
    assert found.wrong == []
    total = found.outcomes.total()
    assert total >= 6_000 or seconds is not None
    assert found.outcomes["whole read"] > total // 10
    for kind in ("packed", "arrow", "open"):
        assert found.outcomes[f"{kind} refused"] > total // 10, "hardly any was wrong"
        assert found.outcomes[f"{kind} read"] > 0, "all were so wrong that it was easy"


def test_hostile_batches_find_the_mutant(tmp_path: Path, chance: random.Random) -> None:
    assert read_hostile(tmp_path, chance, tries=3000, mutant="batches_unchecked").wrong
