"""The power fails while a process writes: what had been acknowledged is there when it is back.

A run under the fault shim gives a journal of all that it did to its files. At moments of that run,
most of them in the middle of a sync or right after an acknowledgement, the disk is made as a power
loss may leave it: cut back to what was synced, with any of the unsynced pages there or not, or with
all of them but one; names as ordered file systems or as POSIX keep them (see support/disk.py). Each
of these opens, has all that was acknowledged until then, and takes what was in flight once more.

Mutants: sync_without_flush, mark_before_sync, only_torn_tails.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import KINDS, write_ledger
from tests.support.children import Child
from tests.support.disk import Disk, Names, Unsynced
from tests.support.journal import Event, Kind, read_journal
from tests.support.shim import preloaded

_LARGE_BYTES = 16 << 10
_MOST_RUNS = 10  # of a mutant
_WAYS = [(names, unsynced) for unsynced in Unsynced for names in Names]


@dataclass(frozen=True, slots=True)
class Run:
    """What one writing process did."""

    watched: Path
    events: list[Event]
    violations: list[str]


def run_followed(
    folder: Path,
    seed: str,
    *,
    small_buffers: bool,
    failing: tuple[int, int] | None = None,
    mutant: str | None = None,
) -> Run:
    """Let a process write under the shim, from making the log to closing it."""
    watched, journal, ledger = folder / "disk", folder / "journal", folder / "ledger"
    watched.mkdir(parents=True)
    ledger.touch()
    arguments = {
        "role": "write",
        "mutant": mutant,
        "folder": str(watched / "log"),
        "ledger": str(ledger),
        "seed": seed,
        "publications": 40,
        "epochs": 7,
        "small_buffers": small_buffers,
        "failing": failing,
        "journal": (str(watched), str(journal)),
    }
    with Child(worker.__name__, arguments, environment=preloaded()) as child:
        wrong = [one for said in child.rest() if said[0] == "violations" for one in said[1]]
        if child.wait():
            wrong.append(f"the process failed: {child.errors()}")
    return Run(watched, read_journal(journal), wrong)


def moments(events: list[Event], count: int, chance: random.Random) -> list[int]:
    """Moments of a run, as how many of its events had happened."""
    syncing = [at for at, event in enumerate(events) if event.kind is Kind.SYNC_ENDED]
    told = [at + 1 for at, event in enumerate(events) if event.kind is Kind.NOTED]
    large = [at + 1 for at, event in enumerate(events) if len(event.first) > _LARGE_BYTES]
    anywhere = range(len(events) + 1)
    kinds = (syncing, told, large, syncing, anywhere)
    return sorted(chance.choice(kinds[number % len(kinds)]) for number in range(count))


def lose_power(
    folder: Path,
    run: Run,
    losses: int,
    chance: random.Random,
    court: Court,
    *,
    go_on: bool = True,
) -> list[str]:
    """Lose power so often; what was wrong afterwards."""
    disk = Disk()
    ledger, image = folder / "acknowledged", folder / "image"
    ledger.write_bytes(b"")
    followed = noted = 0
    ways = chance.sample(_WAYS * (losses // len(_WAYS) + 1), losses)
    for moment, (names, unsynced) in zip(moments(run.events, losses, chance), ways, strict=True):
        disk.follow(run.events[followed:moment])
        followed = moment
        told = [json.loads(note) for note in disk.notes[noted:]]
        noted = len(disk.notes)
        write_ledger(ledger, [one for one in told if one[0] in KINDS])
        disk.write_after_loss(image, names, unsynced, chance)
        wrong = _wrong_after(image / "log", ledger, court, go_on=go_on)
        if wrong:
            way = f"{names.value} names, {unsynced.value} of what was not synced"
            return [f"lost at event {moment} ({way}): {one}" for one in wrong]
        shutil.rmtree(image)
    return []


def _wrong_after(log: Path, ledger: Path, court: Court, *, go_on: bool) -> list[str]:
    if not (log / "db").is_dir() and not ledger.read_bytes():
        return []  # it had not been made
    return court.verdict(log, ledger, go_on=go_on).wrong_unless_whole()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("runs", "losses"), [(1, 14), pytest.param(10, 50, marks=pytest.mark.full)]
)
def test_what_was_acknowledged_outlives_a_power_loss(
    tmp_path: Path, chance: random.Random, court: Court, runs: int, losses: int
) -> None:
    for number in range(runs):
        folder = tmp_path / f"run{number}"
        run = run_followed(folder, str(chance.random()), small_buffers=number % 2 == 0)
        assert run.violations == []
        assert lose_power(folder, run, losses, chance, court) == []
        shutil.rmtree(folder)


def test_the_shim_sees_all_that_rocksdb_writes_and_syncs(
    tmp_path: Path, chance: random.Random
) -> None:
    run = run_followed(tmp_path, str(chance.random()), small_buffers=True)
    disk = Disk()
    disk.follow(run.events)
    there = {
        str(path.relative_to(run.watched)): path.read_bytes()
        for path in run.watched.rglob("*")
        if path.is_file()
    }
    assert disk.current() == there
    opened = {event.handle: event.path for event in run.events if event.kind is Kind.OPENED}
    synced = [opened[event.handle] for event in run.events if event.kind is Kind.SYNC_ENDED]
    assert len([path for path in synced if path.endswith(".log")]) > 50
    assert [path for path in synced if path.endswith(".sst")]


@pytest.mark.parametrize("mutant", ["sync_without_flush", "mark_before_sync", "only_torn_tails"])
def test_power_losses_find_the_mutant(tmp_path: Path, chance: random.Random, mutant: str) -> None:
    """Most runs show it; where nothing was under way at the wrong time, the next one does."""
    with Court(mutant) as court:
        for number in range(_MOST_RUNS):
            folder = tmp_path / f"run{number}"
            run = run_followed(folder, str(chance.random()), small_buffers=False, mutant=mutant)
            if lose_power(folder, run, 100, chance, court, go_on=False):
                return
    pytest.fail(f"{_MOST_RUNS} runs did not find it")
