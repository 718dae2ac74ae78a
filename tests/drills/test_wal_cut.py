"""The write-ahead log is cut at every byte of its last two records: a prefix, or a refusal.

With the mark as it is, whatever is missing had been durable: the log is refused, and left as it is,
so that it opens again once the bytes are back. With an older mark, as a power loss may leave it,
the log opens with what comes before the cut: a record or an epoch is there or not, whole, and there
is nothing after one that is missing.

Mutants: mark_unchecked (the mark as it is), debris_stays (an older mark).
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import write_ledger
from tests.support.children import Child
from tests.support.wal import newest_wal, record_bounds

_GO_ON_EVERY = 10


@dataclass(frozen=True, slots=True)
class Cuttable:
    """A log whose last two records of the write-ahead log are known, and what was told of it."""

    folder: Path
    wal: str
    first: tuple[int, int]
    last: tuple[int, int]
    older_mark: Path
    before: Path
    with_first: Path
    whole: Path

    def ledger_at(self, cut: int) -> Path:
        """What must be there when the write-ahead log ends at this byte."""
        if cut < self.first[1]:
            return self.before
        return self.with_first if cut < self.last[1] else self.whole

    def cut_copy(self, cut: int, target: Path, *, older_mark: bool) -> None:
        """The log with its write-ahead log cut there."""
        shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns("LOG*", "LOCK"))
        with (target / "db" / self.wal).open("r+b") as wal:
            wal.truncate(cut)
        if older_mark:
            shutil.copy(self.older_mark, target / "mark")


def cuttable(
    folder: Path,
    ending: str,
    chance: random.Random,
    *,
    epochs: int = 4,
    slices_kept: bool = False,
) -> Cuttable:
    """Let a process write and end with two publications or one epoch, and kill it.

    After four epochs comes a tiny one, so that each of its bytes can be tried.
    """
    folder.mkdir()
    log, empty = folder / "log", folder / "empty"
    empty.touch()
    arguments = {
        "role": "write",
        "folder": str(log),
        "ledger": str(empty),
        "seed": str(chance.random()),
        "publications": 20,
        "epochs": epochs,
        "ending": ending,
        "slices_kept": slices_kept,
    }
    with Child(worker.__name__, arguments) as child:
        heard = []
        while (said := child.said()) != ["finished"]:
            heard.append(said)
        child.kill()
    told_at_end = heard[heard.index(["ending"]) + 1 :]
    ledgers = [folder / "before", folder / "with_first", folder / "whole"]
    for ledger, last in zip(ledgers, (0, 1, 2), strict=True):
        # An epoch is there with its second record only: the first one holds its rows.
        told = told_at_end[:last] if ending == "publications" else told_at_end[: last // 2]
        write_ledger(ledger, heard[: heard.index(["ending"])] + told)
    wal = newest_wal(log)
    first, last_bounds = record_bounds(wal)[-2:]
    return Cuttable(log, wal.name, first, last_bounds, folder / "log.mark", *ledgers)


def cut_with_the_mark(folder: Path, log: Cuttable, cuts: list[int], court: Court) -> list[str]:
    """Cut with the mark as it is; what was not refused, or was changed by the refusal."""
    for cut in cuts:
        copy = folder / "copy"
        log.cut_copy(cut, copy, older_mark=False)
        before = _contents(copy)
        verdict = court.verdict(copy, log.whole)
        if verdict.refused != "DamagedLog":
            return [f"cut at {cut}: not refused ({verdict})"]
        if _contents(copy) != before:
            return [f"cut at {cut}: the refusal changed files"]
        shutil.copy(log.folder / "db" / log.wal, copy / "db" / log.wal)
        if wrong := court.verdict(copy, log.whole).wrong_unless_whole():
            return [f"cut at {cut} and mended: {one}" for one in wrong]
        shutil.rmtree(copy)
    return []


def cut_with_an_older_mark(folder: Path, log: Cuttable, cuts: list[int], court: Court) -> list[str]:
    """Cut with an older mark; what is not a prefix."""
    for number, cut in enumerate(cuts):
        copy = folder / "copy"
        log.cut_copy(cut, copy, older_mark=True)
        go_on = number % _GO_ON_EVERY == 0
        verdict = court.verdict(copy, log.ledger_at(cut), go_on=go_on)
        if wrong := verdict.wrong_unless_whole():
            return [f"cut at {cut}: {one}" for one in wrong]
        shutil.rmtree(copy)
    return []


def _contents(log: Path) -> dict[str, bytes]:
    """The files that hold the log; not those in which RocksDB tells what it does."""
    return {
        str(path.relative_to(log)): path.read_bytes()
        for path in sorted(log.rglob("*"))
        if path.suffix in {".log", ".sst"} or path.name.startswith(("MANIFEST", "CURRENT", "mark"))
    }


def some_cuts(log: Cuttable, count: int | None, chance: random.Random) -> list[int]:
    """So many bytes of the last two records, with all their bounds; all bytes for None."""
    every = range(log.first[0], log.last[1])
    if count is None:
        return list(every)
    bounds = {log.first[0], log.first[1] - 1, log.first[1], log.last[1] - 1}
    return sorted(bounds | set(chance.sample(every, count)))


_HOW_MANY = [8, pytest.param(None, marks=pytest.mark.full)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", _HOW_MANY)
@pytest.mark.parametrize("ending", ["publications", "epoch"])
def test_a_cut_of_what_was_durable_is_refused(
    tmp_path: Path, chance: random.Random, court: Court, ending: str, count: int | None
) -> None:
    log = cuttable(tmp_path / "made", ending, chance)
    assert cut_with_the_mark(tmp_path, log, some_cuts(log, count, chance), court) == []


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", _HOW_MANY)
@pytest.mark.parametrize("ending", ["publications", "epoch"])
def test_a_cut_of_what_may_be_lost_leaves_a_prefix(
    tmp_path: Path, chance: random.Random, court: Court, ending: str, count: int | None
) -> None:
    log = cuttable(tmp_path / "made", ending, chance)
    cuts = [*some_cuts(log, count, chance), log.last[1]]
    assert cut_with_an_older_mark(tmp_path, log, cuts, court) == []


def test_cuts_find_the_mutant_mark_unchecked(tmp_path: Path, chance: random.Random) -> None:
    log = cuttable(tmp_path / "made", "publications", chance)
    with Court("mark_unchecked") as court:
        assert cut_with_the_mark(tmp_path, log, some_cuts(log, 8, chance), court)


def test_cuts_find_the_mutant_debris_stays(tmp_path: Path, chance: random.Random) -> None:
    log = cuttable(tmp_path / "made", "epoch", chance, epochs=3, slices_kept=True)
    with Court("debris_stays") as court:
        heads_cut_off = [log.last[0]] * 3
        assert cut_with_an_older_mark(tmp_path, log, heads_cut_off, court)
