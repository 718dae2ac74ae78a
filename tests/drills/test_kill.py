"""A writing process is killed with -9, again and again, and each time nothing is lost or doubled.

Killed at any moment: while it writes, at named points inside an append or a publish, and while it
opens and recovers. The next process opens the log, finds everything that was acknowledged once and
in its place, epochs whole or absent, positions as acknowledged, and sends again what was in flight.

Mutants: heads_first, debris_stays.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.drills import worker
from tests.drills.ledger import write_ledger
from tests.support.children import Child

_LIVES_OF_A_LOG = 25
_MOMENTS = (
    "append.records_written",
    "any",
    "opening",
    "publish.written",
    "any",
    "append.committed",
    "publish.synced",
    "append.records_written",
    "any",
    "append.verified",
    "append.files_made",
)


def killed_again_and_again(
    folder: Path, kills: int, chance: random.Random, mutant: str | None = None
) -> list[str]:
    """Kill so often; what was found wrong, with the kill before which it happened."""
    log, ledger = folder / "log0", folder / "ledger0"
    for kill in range(kills + 1):
        if kill % _LIVES_OF_A_LOG == 0:
            log, ledger = folder / f"log{kill}", folder / f"ledger{kill}"
            ledger.touch()
        moment = _MOMENTS[kill % len(_MOMENTS)]
        is_last_life = kill == kills or (kill + 1) % _LIVES_OF_A_LOG == 0
        wrong = _live(log, ledger, "end" if is_last_life else moment, chance, mutant)
        if wrong:
            return [f"after kill {kill}: {one}" for one in wrong]
    return []


def _live(
    log: Path, ledger: Path, moment: str, chance: random.Random, mutant: str | None
) -> list[str]:
    """One process from its start to its end; what it found wrong."""
    plan: dict[str, Any] = {}
    if "." in moment:
        plan["die_at"] = (moment, chance.randint(1, 2))
    elif moment == "end":
        plan.update(publications=30, epochs=3)
    arguments = {
        "role": "write",
        "mutant": mutant,
        "folder": str(log),
        "ledger": str(ledger),
        "seed": str(chance.random()),
        "small_buffers": chance.random() < 0.5 or moment == "append.files_made",
        "slices_kept": chance.random() < 0.5,
        **plan,
    }
    heard: list[Any] = []
    with Child(worker.__name__, arguments) as child:
        if moment in {"any", "opening"}:
            _kill_at(child, moment, heard, chance)
        heard.extend(child.rest())
        errors = child.errors()
    write_ledger(ledger, heard)
    wrong = [one for said in heard if said[0] == "violations" for one in said[1]]
    if not any(said[0] == "opening" for said in heard) or "Traceback" in errors:
        wrong.append(f"the process failed: {errors}")
    if moment == "end" and heard[-1] != ["done"]:
        wrong.append(f"the process did not come to its end: {heard[-1]}")
    return wrong


def _kill_at(child: Child, moment: str, heard: list[Any], chance: random.Random) -> None:
    lines = 1 if moment == "opening" else chance.randint(4, 150)
    while len(heard) < lines and (said := child.says()) is not None:
        heard.append(said)
    heard.extend(child.until_silent(chance.random() * 0.03))
    child.kill()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.full)])
def test_nothing_is_lost_or_doubled_by_kills(
    tmp_path: Path, chance: random.Random, kills: int
) -> None:
    assert killed_again_and_again(tmp_path, kills, chance) == []


@pytest.mark.parametrize("mutant", ["heads_first", "debris_stays"])
def test_kills_find_the_mutant(tmp_path: Path, chance: random.Random, mutant: str) -> None:
    assert killed_again_and_again(tmp_path, 12, chance, mutant)
