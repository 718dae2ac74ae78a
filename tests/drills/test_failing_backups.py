"""The log's disk fails while a backup is made: it is refused by name, and the next one is whole.

RocksDB writes its tables out for a backup, and after a failed write of its own it makes no other
one before it was opened again. Nobody may have been told of that failure yet. Where the backup's
own files cannot be written, the log is left alone.

Mutant: backups_take_failures_as_they_are.
"""

from __future__ import annotations

import errno
import itertools
import random
from pathlib import Path

import pytest

from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import write_ledger
from tests.support.children import Child
from tests.support.shim import preloaded

_TARGET = "backups of Corruption/beside/"
_OF_THE_LOG = [
    *itertools.product(("sync", "write", "short"), ("log/db/MANIFEST", ".sst", ".log", ""), (1,),
                       (1, 1_000_000), (errno.EIO,)),
    *itertools.product(("write", "open", "link"), ("log/db/MANIFEST", ".sst", ""), (1,),
                       (1_000_000,), (errno.ENOSPC,)),
]  # fmt: skip
_OF_THE_BACKUP = [
    *itertools.product(("sync", "write", "open"), (_TARGET,), range(1, 10), (1,),
                       (errno.EIO, errno.ENOSPC)),
]  # fmt: skip
_WAYS = [*_OF_THE_LOG, *_OF_THE_BACKUP]
_SHORT = [
    ("sync", "log/db/MANIFEST", 1, 1_000_000, errno.EIO),
    ("sync", "log/db/MANIFEST", 1, 1, errno.EIO),
    ("sync", _TARGET, 3, 1, errno.EIO),
    ("write", _TARGET, 3, 1, errno.ENOSPC),
]
_REFUSALS = ("NotWritten", "DiskFull", "UnsupportedLocation")

Way = tuple[str, str, int, int, int]
"""Which call fails on which files, from which time on, how often, and with what."""


def backed_up_beside(
    folder: Path,
    court: Court,
    chance: random.Random,
    way: Way,
    mutant: str | None = None,
) -> tuple[list[str], bool]:
    """What is wrong, and whether the first backup was refused."""
    log, ledger, target = folder / "log", folder / "ledger", folder / "backups of Corruption"
    ledger.touch()
    target.mkdir()
    call, text, first, count, error = way
    arguments = {
        "role": "back_up",
        "mutant": mutant,
        "folder": str(log),
        "ledger": str(ledger),
        "target": str(target),
        "seed": str(chance.random()),
        "call": call,
        "text": text,
        "first": first,
        "count": count,
        "error": error,
    }
    with Child(worker.__name__, arguments, environment=preloaded()) as child:
        heard = list(child.rest())
        if not heard or heard[-1] != ["done"]:
            return [f"the process failed: {child.errors()}"], False
    backed_up = next(at for at, said in enumerate(heard) if said[0] == "backed up")
    _, refused, refused_after, recoveries = heard[backed_up]
    wrong = [one for said in heard if said[0] == "violations" for one in said[1]]
    if refused_after is not None:
        wrong.append(f"a backup after it: {refused_after}")
    if refused is not None and not refused.startswith(_REFUSALS):
        wrong.append(f"a backup beside it: {refused}")
    if text == _TARGET and recoveries:
        wrong.append(f"the log was opened again {recoveries} times, and was in order: {refused}")
    write_ledger(ledger, heard[:backed_up])
    for name, is_there in (("beside", refused is None), ("after", refused_after is None)):
        if (target / name).exists() != is_there:
            wrong.append(f"the folder of the backup '{name}' is {'' if is_there else 'not '}gone")
        elif is_there:
            wrong += court.verdict(target / name, ledger).wrong_unless_whole()
    write_ledger(ledger, heard)
    wrong += court.verdict(log, ledger, go_on=True).wrong_unless_whole()
    return wrong, refused is not None


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ways", [_SHORT, pytest.param(_WAYS, marks=pytest.mark.full)])
def test_a_backup_beside_a_failing_disk_is_refused_or_whole(
    tmp_path: Path, court: Court, chance: random.Random, ways: list[Way]
) -> None:
    wrong, refused = {}, 0
    for number, way in enumerate(ways):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, was_refused = backed_up_beside(folder, court, chance, way)
        refused += was_refused
        if found:
            wrong[way] = found
    assert not wrong, "\n".join(f"{way}: {each}" for way, found in wrong.items() for each in found)
    assert refused


def test_failing_backups_find_the_mutant(
    tmp_path: Path, court: Court, chance: random.Random
) -> None:
    wrong, _ = backed_up_beside(
        tmp_path, court, chance, _SHORT[0], "backups_take_failures_as_they_are"
    )
    assert wrong
