"""Appends epochs as files while RocksDB's MANIFEST cannot be synced; says what was refused."""

from __future__ import annotations

import errno
import os
import random
import signal
from pathlib import Path
from typing import Any

from duolog.log import store
from duolog.log.embedded import open_log
from duolog.log.options import LogOptions
from tests.drills.checker import outcome
from tests.drills.content import make_topics
from tests.drills.ledger import read_ledger
from tests.drills.worker import say
from tests.drills.writing import Writing, use_small_files
from tests.support.shim import Shim


def hand_over(
    folder: str, ledger: str, *, seed: str, first: int, count: int, full: bool, dies: bool
) -> None:
    """The role: from the `first` sync of a MANIFEST on, `count` of them fail.

    `full`: no new MANIFEST can be made either, for a while, as on a full disk. `dies`: the process
    ends before it opens the log again.
    """
    shim = Shim()
    shim.watch(Path(folder))
    known = read_ledger(ledger)
    use_small_files()
    with open_log(folder, options=LogOptions(min_free_bytes=0, cache_bytes=0)) as log:
        make_topics(log)
        shim.fail_calls("sync", "MANIFEST", first=first, count=count, error=errno.EIO)
        opens = _Opens(shim, dies=dies, full=full)
        writing = Writing(log, known, say, random.Random(seed))
        writing.append(6)
        met = shim.seen >= first
        opens.heal()
        say(["violations", outcome(log, known)])
    say(["done", met, len(writing.refusals)])


class _Opens:
    """Watches how the log is opened again."""

    def __init__(self, shim: Shim, *, dies: bool, full: bool) -> None:
        self._shim = shim
        self._real = store._open
        self._dies = dies
        if full:
            # Not the one that is in use, which is read when the log is opened.
            for number in range(1, 4):
                shim.fail_calls("open", f"MANIFEST-0000{number}", count=3, error=errno.ENOSPC)
        store._open = self._open

    def _open(self, path: Path, *, read_only: bool = False) -> Any:
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._real(path, read_only=read_only)

    def heal(self) -> None:
        self._shim.heal()
        store._open = self._real
