"""Writes while syncs fail on order; says what is wrong and what was refused."""

from __future__ import annotations

import random
from pathlib import Path

from duolog.errors import DuologError
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.options import LogOptions
from tests.drills.checker import outcome
from tests.drills.ledger import read_ledger
from tests.drills.worker import say
from tests.drills.writing import Writing, use_small_files
from tests.support.shim import Call, Shim


def fail_syncs(folder: str, ledger: str, *, seed: str, first: int, count: int) -> None:
    """The role: from the `first` sync on, `count` of them fail."""
    shim = Shim()
    shim.watch(Path(folder))
    known = read_ledger(ledger)
    chance = random.Random(seed)
    if chance.random() < 0.5:
        use_small_files()
    with open_log(folder, options=LogOptions(min_free_bytes=0, cache_bytes=0)) as log:
        before = shim.syncs
        shim.fail_syncs(first, count)
        writing = Writing(log, known, say, chance)
        writing.run(publications=15, epochs=4)
        met = shim.syncs - before >= first
        shim.fail_syncs(0, 0)
        say(["violations", outcome(log, known)])
    say(["done", met, len(writing.refusals)])


def back_up(
    folder: str,
    ledger: str,
    target: str,
    *,
    seed: str,
    call: Call,
    text: str,
    first: int,
    count: int,
    error: int,
) -> None:
    """The role: calls to files with this text in their path fail while a backup is made; then
    another one is made.

    Says what they were refused with, or None, and how often the log was opened again for them.
    """
    shim = Shim()
    shim.watch(Path(folder))
    known = read_ledger(ledger)
    use_small_files()
    with open_log(folder, options=LogOptions(min_free_bytes=0, cache_bytes=0)) as log:
        writing = Writing(log, known, say, random.Random(seed))
        writing.run(publications=15, epochs=2)
        recoveries = log._state.store.recoveries
        shim.fail_calls(call, text, first=first, count=count, error=error)
        refused = _refusal(log, Path(target) / "beside")
        shim.heal()
        refused_after = _refusal(log, Path(target) / "after")
        say(["backed up", refused, refused_after, log._state.store.recoveries - recoveries])
        writing.run(publications=15, epochs=2)
        say(["violations", outcome(log, known)])
    say(["done"])


def _refusal(log: EmbeddedLog, target: Path) -> str | None:
    try:
        log.backup(target)
    except DuologError as error:
        return f"{type(error).__name__}: {error}"
    return None
