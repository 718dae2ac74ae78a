"""A log is backed up and copied inside its owner while another process tries to get in.

It never does: closing a descriptor of a lock file gives up a POSIX lock, but not a flock. Each
backup opens as a log of its own, with the content of its moment; so does a copy, or it is refused.

Mutants: rocksdb_lock_alone, copies_keep_their_id.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from duolog.errors import DuologError
from duolog.log.embedded import open_log
from tests.drills import worker
from tests.drills.owning import RECORDS
from tests.support.children import Child

_TRIES_A_ROUND = 3


def copied_while_owned(folder: Path, rounds: int, mutant: str | None = None) -> list[str]:
    """What is wrong afterwards."""
    wrong: list[str] = []
    at = {"folder": str(folder), "mutant": mutant}
    with (
        Child(worker.__name__, {"role": "own", "rounds": rounds, **at}) as owner,
        Child(worker.__name__, {"role": "intrude", **at}) as intruder,
    ):
        _, log_id = owner.said()
        intruder.said()
        for _ in range(rounds):
            wrong += _let_try(intruder)
            owner.said()
            wrong += _let_try(intruder)
            if wrong:
                return wrong
            owner.tell("go on")
    return wrong + _wrong_copies(folder, rounds, log_id)


def _let_try(intruder: Child) -> list[str]:
    wrong = []
    for _ in range(_TRIES_A_ROUND):
        intruder.tell("try")
        if intruder.said() != "busy":
            wrong.append("another process got in")
    return wrong


def _wrong_copies(folder: Path, rounds: int, log_id: str) -> list[str]:
    wrong = []
    for number in range(rounds):
        for kind in ("backup", "copy"):
            try:
                with open_log(folder / f"{kind}{number}") as log:
                    count = log.offsets("orders")[0].next_offset
                    read = log.fetch("orders", 0, 0).count
                    if log.log_id == log_id:
                        wrong.append(f"{kind} {number} has the id of its original")
            except DuologError as refused:
                if kind == "backup":
                    wrong.append(f"backup {number} was refused: {refused}")
                continue
            if read != count or count != (number + 1) * RECORDS:
                wrong.append(f"{kind} {number} has {count} records, {read} of them readable")
    return wrong


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.full)])
def test_nobody_gets_in_while_a_log_is_copied(tmp_path: Path, rounds: int) -> None:
    assert copied_while_owned(tmp_path, rounds) == []


def test_copying_finds_the_mutant_that_has_no_flock(tmp_path: Path) -> None:
    assert "another process got in" in copied_while_owned(tmp_path, 1, "rocksdb_lock_alone")


def test_copying_finds_the_mutant_that_keeps_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.log.identity._home", lambda folder: [0])
    wrong = copied_while_owned(tmp_path, 1, "copies_keep_their_id")
    assert any("id of its original" in one for one in wrong)
