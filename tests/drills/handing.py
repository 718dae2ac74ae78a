"""Hands files over to RocksDB, and joins them, while its own files fail; says what was wrong."""

from __future__ import annotations

import errno
import os
import random
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from duolog.errors import WritesRefused
from duolog.log import store
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import TopicSettings
from duolog.log.options import LogOptions
from tests.drills.checker import outcome
from tests.drills.content import make_topics
from tests.drills.ledger import read_ledger
from tests.drills.worker import say
from tests.drills.writing import Writing, use_small_files
from tests.support.records import STREAM, part_of
from tests.support.shim import Call, Shim


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


def join(folder: str, *, call: Call, text: str, error: int, first: int, seed: str) -> None:
    """The role: join small tables while calls to RocksDB's files fail, and go on."""
    chance = random.Random(seed)
    shim = Shim()
    shim.watch(Path(folder))
    use_small_files()
    options = LogOptions(min_free_bytes=0, cache_bytes=0)
    wrong: list[str] = []
    refused: list[str] = []
    expected: dict[int, list[bytes | None]] = {partition: [] for partition in range(2)}
    with open_log(folder, options=options) as log:
        topic = log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(9):
            rows: dict[int, list[bytes | None]] = {
                partition: [chance.randbytes(2000) for _ in range(30)] for partition in expected
            }
            part = part_of(topic, dict(rows))
            if epoch == 8:
                shim.fail_calls(call, text, first=first, count=2, error=error)
                while log.join_small_tables():
                    pass
                refused += _insist(partial(log.append, STREAM, epoch, [part]))
                shim.heal()
            log.append(STREAM, epoch, [part])
            for partition, values in rows.items():
                expected[partition] += values
        wrong += _differences(log, expected)
    with open_log(folder, options=options) as log:
        log.check_whole()
        wrong += _differences(log, expected)
    say({"violations": wrong, "refused": refused})


def _insist(call: Callable[[], object]) -> list[str]:
    refused: list[str] = []
    while len(refused) < 50:
        try:
            call()
        except WritesRefused as error:
            refused.append(error.code)
        else:
            return refused
    return refused


def _differences(log: EmbeddedLog, expected: dict[int, list[bytes | None]]) -> list[str]:
    return [
        f"partition {partition} has other records"
        for partition, values in expected.items()
        if [record.value for record in log.fetch("orders", partition, 0)] != values
    ]
