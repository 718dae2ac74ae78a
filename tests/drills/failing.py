"""Writes while syncs fail on order; says what is wrong and what was refused."""

from __future__ import annotations

import random
from pathlib import Path

from duolog.log.embedded import open_log
from duolog.log.options import LogOptions
from tests.drills.checker import outcome
from tests.drills.ledger import read_ledger
from tests.drills.worker import say
from tests.drills.writing import Writing, use_small_files
from tests.support.shim import Shim


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
