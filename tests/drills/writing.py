"""A process that writes all the time, and says what it was told.

Several publishers with sequences, one stream that appends epochs over all partitions, one group
that acknowledges. What was in flight when the process before died is sent again first; whatever is
refused is sent again as it is until it is taken.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from duolog.errors import WritesRefused
from duolog.log import merge_queue, record_files, slice_merge, store
from duolog.log.access import LogAccess
from duolog.log.embedded import open_log
from duolog.log.options import FaultPoint, LogOptions, no_fault
from tests.drills.checker import outcome
from tests.drills.content import (
    GROUP,
    PLACES,
    SHIFTER,
    STREAM,
    make_topics,
    parts_of_epoch,
    publication,
)
from tests.drills.ledger import Ledger, ranges_of, read_ledger
from tests.drills.worker import say
from tests.support.shim import Shim

PUBLISHERS = ("ada", "bob", "cleo")
ENDLESS = 1 << 40
_MOST_TRIES = 500
_SMALL_BUFFER_BYTES = 128 << 10
_SMALL_SHARE_BYTES = 4 << 10

T = TypeVar("T")
Say = Callable[[Any], None]


class Writing:
    """Writes into an opened log, and keeps the ledger of it."""

    def __init__(self, log: LogAccess, ledger: Ledger, say: Say, chance: random.Random) -> None:
        self._log = log
        self._ledger = ledger
        self._say = say
        self._chance = chance
        self._noting = threading.Lock()  # of the ledger
        self._stopping = threading.Event()
        self.refusals: list[str] = []

    def run(self, publications: int, epochs: int) -> None:
        """Publish so many records with each publisher, and append so many epochs meanwhile."""
        self.insist(lambda: make_topics(self._log))
        # First, so that an epoch which was cut short does not fall on the same offsets again.
        self.publish(SHIFTER, len(PLACES) + self._chance.randrange(10))
        threads = [
            threading.Thread(target=self._guarded, args=(self.publish, writer, publications))
            for writer in PUBLISHERS
        ]
        threads.append(threading.Thread(target=self._guarded, args=(self.append, epochs)))
        acker = threading.Thread(target=self._guarded, args=(self._acknowledge,))
        for thread in (*threads, acker):
            thread.start()
        for thread in threads:
            thread.join()
        self._stopping.set()
        acker.join()
        self.acknowledge_all()

    def publish(self, writer: str, count: int) -> None:
        """A publisher goes on where it was."""
        first = self._ledger.last_sequence.get(writer, -1) + 1
        for sequence in range(first, first + count):
            topic, record = publication(writer, sequence)
            publish = partial(self._log.publish, topic, record, writer=writer, sequence=sequence)
            (placed,) = self.insist(publish)
            place = [placed.topic, placed.partition, placed.offset]
            self._note(["published", writer, sequence, *place])

    def append(self, count: int) -> None:
        """The stream goes on, and first repeats its last epoch as after a lost answer.

        If the epoch after it is there too, it was that one's answer that was lost.
        """
        last = self._ledger.last_epoch
        stored = self.insist(lambda: self._log.last_epoch(STREAM))
        if stored is not None and stored.epoch == last:
            self._append(last)
        for epoch in range(last + 1, last + 1 + count):
            self._append(epoch)

    def end_with(self, ending: str) -> None:
        """Two publications, or one epoch."""
        if ending == "epoch":
            self._append(self._ledger.last_epoch + 1)
        else:
            self.publish(PUBLISHERS[0], 1)
            self.publish(PUBLISHERS[1], 1)

    def _append(self, epoch: int) -> None:
        appended = self.insist(
            lambda: self._log.append(STREAM, epoch, parts_of_epoch(self._log, epoch))
        )
        ranges = ranges_of((r.topic, r.partition, r.start, r.next_offset) for r in appended.ranges)
        known = self._ledger.epochs.get(epoch)
        if known is not None and (known, True) != (ranges, appended.repeated):
            self._say(["violations", [f"epoch {epoch} again got {ranges}, first {known}"]])
        self._note(["appended", epoch, ranges])

    def acknowledge_all(self) -> None:
        """The group moves on a little in every partition."""
        for topic, partition in PLACES:
            self._acknowledge_one(topic, partition)

    def _acknowledge_one(self, topic: str, partition: int) -> None:
        head = self._log.offsets(topic)[partition].next_offset
        position = self._ledger.asked_positions.get((topic, partition), 0)
        if position == self._ledger.positions.get((topic, partition), 0):
            if position == head:
                return
            position = self._chance.randint(position + 1, head)
        self._note(["acking", topic, partition, position])
        self.insist(lambda: self._log.ack(GROUP, topic, position - 1, partition))
        self._note(["acked", topic, partition, position])

    def _acknowledge(self) -> None:
        while not self._stopping.is_set():
            head = self._log.offsets("single")[0].next_offset
            self.acknowledge_all()
            self._log.wait_for_append({("single", 0): head + 20}, 0.05)

    def insist(self, call: Callable[[], T]) -> T:
        """Call until it is not refused."""
        for _ in range(_MOST_TRIES):
            try:
                return call()
            except WritesRefused as refused:
                self.refusals.append(refused.code)
                self._say(["refused", refused.code, str(refused)])
        raise RuntimeError(f"refused {_MOST_TRIES} times")

    def _note(self, entry: Any) -> None:
        with self._noting:
            self._ledger.note(entry)
            self._say(entry)

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            self._say(["violations", [f"{type(error).__name__}: {error}"]])
            traceback.print_exc()
            os._exit(1)  # the other threads would go on


def write(
    folder: str,
    ledger: str,
    seed: str,
    *,
    publications: int = ENDLESS,
    epochs: int = ENDLESS,
    die_at: tuple[FaultPoint, int] | None = None,
    small_buffers: bool = False,
    slices_kept: bool = False,
    journal: tuple[str, str] | None = None,
    failing: tuple[int, int] | None = None,
    ending: str | None = None,
) -> None:
    """The role: check what is there, write until killed or done, check again.

    `failing` lets syncs fail under the shim: from which one on, and how many.

    With an `ending`, write two records ("publications") or one more epoch ("epoch") as the very
    last, keep the mark of before, and wait to be killed.
    """
    tell = say if journal is None else _followed(*journal)
    if small_buffers:
        use_small_buffers()
    if slices_kept:
        keep_slices()
    known = read_ledger(ledger)
    fault = no_fault if die_at is None else _dying(*die_at)
    tell(["opening"])
    options = LogOptions(fault=fault, min_free_bytes=0, cache_bytes=0)  # read what is stored
    with open_log(folder, options=options) as log:
        tell(["violations", outcome(log, known)])
        tell(["opened"])
        if failing is not None:
            Shim().fail_syncs(*failing)
        writing = Writing(log, known, tell, random.Random(seed))
        writing.run(publications, epochs)
        if ending is not None:
            shutil.copy(f"{folder}/mark", f"{folder}.mark")
            tell(["ending"])
            writing.end_with(ending)
            tell(["finished"])
            sys.stdin.read()
        tell(["violations", outcome(log, known)])
    tell(["done"])


def use_small_buffers() -> None:
    """Let RocksDB write files and begin new write-ahead logs all the time, and take files, and let
    small batches be merged all the time.
    """
    store._RECORDS_BUFFER_BYTES = _SMALL_BUFFER_BYTES
    use_small_files()
    merge_queue.ENOUGH, merge_queue.MANY = 8, 16  # type: ignore[misc]


def use_small_files() -> None:
    """Let large shares of epochs go into files, when they are a little larger than others."""
    record_files.SHARE_BYTES = _SMALL_SHARE_BYTES  # type: ignore[misc]
    record_files._FILE_BYTES = 4 * _SMALL_SHARE_BYTES


def keep_slices() -> None:
    """Store what tasks staged batch by batch, so that an epoch is many of them."""
    slice_merge.SMALL_BYTES = 0  # type: ignore[attr-defined]


def _dying(at: FaultPoint, nth: int) -> Callable[[FaultPoint], None]:
    """kill -9 by itself, when it passes a point for the nth time."""
    left = nth

    def fault(point: FaultPoint) -> None:
        nonlocal left
        if point == at:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return fault


def _followed(folder: str, journal: str) -> Say:
    """Watch the files, and say everything to their journal too."""
    shim = Shim()
    shim.watch(Path(folder), Path(journal))

    def tell(what: Any) -> None:
        shim.note(json.dumps(what).encode())
        say(what)

    return tell
