"""Single bytes are flipped in what was synced: it is refused loudly, or nothing is any different.

A log whose writer was killed has content in RocksDB's tables and in its write-ahead log. In copies
of it one byte is changed, in any of its files. Either opening or reading is refused by name, or all
that was acknowledged is there as it was: never another value, never a gap.

Mutant: mark_unchecked. (Flips aimed at records: test_flipped_records.)
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import write_ledger
from tests.support.children import Child

_LINES_BEFORE_THE_KILL = 400
_DAMAGE = frozenset({"DamagedLog", "DamagedBatch", "UnsupportedFormat"})
_FILES = ("*.log", "*.sst", "MANIFEST-*", "CURRENT", "mark", "FORMAT")
_WEIGHTS = (5, 5, 2, 1, 1, 1)


def killed_log(
    folder: Path, chance: random.Random, *, with_tables: bool = True
) -> tuple[Path, Path]:
    """A log with tables and a write-ahead log, and the ledger of what was acknowledged."""
    log, ledger = folder / "log", folder / "ledger"
    ledger.touch()
    arguments = {
        "role": "write",
        "folder": str(log),
        "ledger": str(ledger),
        "seed": str(chance.random()),
        "small_buffers": with_tables,
    }
    heard: list[Any] = []
    with Child(worker.__name__, arguments) as child:
        while len(heard) < _LINES_BEFORE_THE_KILL:
            heard.append(child.said())
        child.kill()
        heard.extend(child.rest())
    write_ledger(ledger, heard)
    return log, ledger


def flipped(
    folder: Path, court: Court, chance: random.Random, flips: int, kinds: tuple[str, ...] = _FILES
) -> tuple[list[str], Counter[str]]:
    """What is wrong after so many flips, and how often each kind of file was refused."""
    log, ledger = killed_log(folder, chance, with_tables="*.sst" in kinds)
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    there = [kind for kind in kinds if any(file.stat().st_size for file in log.rglob(kind))]
    weights = [_WEIGHTS[_FILES.index(kind)] for kind in there]
    for number in range(flips):
        kind = chance.choices(there, weights)[0]
        copy = folder / f"flipped{number}"
        shutil.copytree(log, copy)
        file = chance.choice([file for file in sorted(copy.rglob(kind)) if file.stat().st_size])
        content = bytearray(file.read_bytes())
        at, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
        content[at] ^= bit
        file.write_bytes(content)
        verdict = court.verdict(copy, ledger)
        what = f"byte {at} of {len(content)} in {file.relative_to(copy)} ^ {bit}"
        if verdict.refused in _DAMAGE:
            refused[kind] += 1
        elif verdict.refused is not None:
            wrong.append(f"{what}: refused as {verdict.refused}: {verdict.message}")
        else:
            wrong += [f"{what}: {one}" for one in verdict.violations]
        shutil.rmtree(copy)
    return wrong, refused


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("flips", [20, pytest.param(100, marks=pytest.mark.full)])
def test_a_flipped_byte_is_refused_or_changes_nothing(
    tmp_path: Path, court: Court, chance: random.Random, flips: int
) -> None:
    wrong, refused = flipped(tmp_path, court, chance, flips)
    print(f"refused: {dict(refused)}")
    assert wrong == []
    assert refused["*.log"] + refused["*.sst"] > 0


def test_flips_find_the_mutant(tmp_path: Path, chance: random.Random) -> None:
    with Court("mark_unchecked") as court:
        wrong, _ = flipped(tmp_path, court, chance, 8, ("*.log",))
    assert wrong
