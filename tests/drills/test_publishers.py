"""24 publishers with 20 events each make 480 distinct records, gapless, each where it was said.

Mutant: one_offset_a_round.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills import worker
from tests.support.children import Child


def published_together(folder: Path, partitions: int, mutant: str | None = None) -> list[str]:
    """What is wrong afterwards."""
    arguments = {
        "role": "publish_together",
        "mutant": mutant,
        "folder": str(folder / "log"),
        "partitions": partitions,
    }
    with Child(worker.__name__, arguments) as child:
        kind, wrong = child.said()
    assert kind == "violations"
    return list(wrong)


@pytest.mark.parametrize("partitions", [1, 4])
def test_480_events_are_480_records(tmp_path: Path, partitions: int) -> None:
    assert published_together(tmp_path, partitions) == []


def test_the_480_find_the_mutant(tmp_path: Path) -> None:
    assert published_together(tmp_path, 1, "one_offset_a_round")
