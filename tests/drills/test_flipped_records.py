"""One byte of a durable record is another one: the log says so, always.

Any byte of the write-ahead log, all of which was synced, and any byte of a record that lies in a
table. (Other bytes of tables may be ones that nobody reads: test_flips.py.)

Mutants: mark_unchecked (write-ahead log), sums_unchecked (tables).
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duolog.log import open_log
from tests.drills import worker
from tests.drills.content import published_value
from tests.drills.courts import Court
from tests.drills.ledger import read_ledger, write_ledger
from tests.support.children import Child
from tests.support.wal import newest_wal


@dataclass(frozen=True, slots=True)
class Flip:
    """One byte to change."""

    file: str
    byte: int
    change: int
    may_be_out_of_use: bool = False  # a small batch that was merged stays in its table for a while


def synced_log(folder: Path, chance: random.Random) -> tuple[Path, Path]:
    """A log with tables and a write-ahead log, all of it synced, and its ledger."""
    log, ledger = folder / "log", folder / "ledger"
    ledger.touch()
    arguments = {
        "role": "write",
        "folder": str(log),
        "ledger": str(ledger),
        "seed": str(chance.random()),
        "publications": 60,
        "epochs": 6,
        "small_buffers": True,
        "ending": "publications",
    }
    heard: list[Any] = []
    with Child(worker.__name__, arguments) as child:
        while (said := child.said()) != ["finished"]:
            heard.append(said)
        child.kill()
    write_ledger(ledger, heard)
    return log, ledger


def flips_in_the_wal(log: Path, ledger: Path, count: int, chance: random.Random) -> list[Flip]:
    """Flips anywhere in the newest write-ahead log."""
    del ledger
    wal = newest_wal(log)
    size = wal.stat().st_size
    name = str(wal.relative_to(log))
    return [Flip(name, chance.randrange(size), chance.randint(1, 255)) for _ in range(count)]


def flips_in_tables(log: Path, ledger: Path, count: int, chance: random.Random) -> list[Flip]:
    """Flips in the values of published records that lie in a table."""
    with open_log(log, create=False):
        pass  # recovery puts into tables what the kill left in the write-ahead log
    tables = {path: path.read_bytes() for path in sorted(log.glob("db/*.sst"))}
    published = sorted(read_ledger(ledger).published)
    found: list[Flip] = []
    for writer, sequence in chance.sample(published, len(published)):
        value = published_value(writer, sequence)
        places = [(path, at) for path, held in tables.items() if (at := held.find(value)) >= 0]
        if len(places) == 1 and len(found) < count:  # in two when one of them is out of use
            path, at = places[0]
            byte = at + chance.randrange(len(value))
            file = str(path.relative_to(log))
            found.append(Flip(file, byte, chance.randint(1, 255), may_be_out_of_use=True))
    return found


def not_noticed(
    folder: Path, log: Path, ledger: Path, flips: list[Flip], court: Court
) -> list[str]:
    """Flip one byte at a time; what was not refused as damage."""
    wrong = []
    for flip in flips:
        copy = folder / "copy"
        shutil.copytree(log, copy, ignore=shutil.ignore_patterns("LOG*", "LOCK"))
        with (copy / flip.file).open("r+b") as file:
            file.seek(flip.byte)
            (was,) = file.read(1)
            file.seek(flip.byte)
            file.write(bytes([was ^ flip.change]))
        verdict = court.verdict(copy, ledger)
        if verdict.refused not in {"DamagedLog", "DamagedBatch"} and not (
            flip.may_be_out_of_use and verdict.wrong_unless_whole() == []
        ):
            wrong.append(f"{flip}: {verdict}")
        shutil.rmtree(copy)
    return wrong


Where = Callable[[Path, Path, int, random.Random], list[Flip]]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.full)])
@pytest.mark.parametrize("where", [flips_in_the_wal, flips_in_tables])
def test_a_flipped_byte_of_a_durable_record_is_refused(
    tmp_path: Path, chance: random.Random, court: Court, where: Where, count: int
) -> None:
    log, ledger = synced_log(tmp_path, chance)
    flips = where(log, ledger, count, chance)
    assert len(flips) >= min(count, 20)
    assert not_noticed(tmp_path, log, ledger, flips, court) == []
    assert court.verdict(log, ledger).wrong_unless_whole() == []


@pytest.mark.parametrize(
    ("mutant", "where"),
    [("mark_unchecked", flips_in_the_wal), ("sums_unchecked", flips_in_tables)],
)
def test_flipped_records_find_the_mutant(
    tmp_path: Path, chance: random.Random, mutant: str, where: Where
) -> None:
    log, ledger = synced_log(tmp_path, chance)
    with Court(mutant) as court:
        assert not_noticed(tmp_path, log, ledger, where(log, ledger, 5, chance), court)
