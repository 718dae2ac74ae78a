"""A log at its host that somebody writes to while a drill does its worst to the mirror."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from duolog.log.model import Mode, Record, TopicSettings, Writer
from duolog.log.options import LogOptions
from tests.support.host_server import Host
from tests.support.records import part_of

PARTITIONS = 3
_AHEAD_SECONDS = 24 * 3600.0
_PAUSE_SECONDS = 0.008
_MOST_AT_ONCE = 30
_APPENDED_AT_ONCE = 600


class WrittenLog:
    """Owned and hosted by this process, written to by a thread until its block is left.

    A log that is there already is written on. `pause_seconds` lies between two writes, and
    `ahead_ms` is by how much the clock of who writes is wrong: both may be changed meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        topic: str,
        chance: random.Random,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self.folder = folder
        self.topic = topic
        self.pause_seconds = pause_seconds
        self.ahead_ms = 0
        self._chance = chance
        # Times that Kafka refuses are written on purpose: as by logs from before they were refused.
        self._host = Host(folder, options=LogOptions(max_timestamp_ahead_seconds=_AHEAD_SECONDS))
        self.log = self._host.log
        settings = TopicSettings(partitions=PARTITIONS)
        self._topic = self.log.create_topic(topic, settings, if_not_exists=True)
        self._writer = Writer(Mode.STREAM, "drill", topic)
        last = self.log.last_epoch(self._writer)
        self._epoch = 0 if last is None else last.epoch + 1
        self._numbers = itertools.count()
        self._guard = threading.Lock()  # of who writes
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="duolog-drill-writer")

    @property
    def records(self) -> int:
        """How many there are, in all partitions."""
        return sum(offsets.next_offset for offsets in self.log.offsets(self.topic))

    @property
    def mirrored(self) -> int:
        """How many of them are mirrored, by what the log has stored of it."""
        return sum(mirror.next_log_offset for mirror in self.log.mirrors(self.topic))

    def good(self, partition: int) -> Record:
        """A record like no other, that Kafka takes."""
        return Record(
            self._chance.randbytes(self._chance.choice([0, 20, 400])),
            b"%d" % next(self._numbers),
            partition=partition,
            ts_ms=int(time.time() * 1000) + self.ahead_ms if self.ahead_ms else None,
        )

    def publish(self, records: Sequence[Record]) -> None:
        """Something of the drill's own among the rest."""
        self.log.publish(self.topic, list(records))

    @contextmanager
    def nobody_writes(self) -> Iterator[None]:
        """In this block."""
        with self._guard:
            yield

    def grow(self, partitions: int) -> None:
        """Give the topic more partitions, which are written to from here on."""
        with self._guard:
            self._topic = self.log.set_partitions(self.topic, partitions)

    def stop_writing(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            while not self._stopped.wait(self.pause_seconds):
                with self._guard:
                    if self._chance.random() < 0.1 and not self.ahead_ms:
                        self._append()
                    else:
                        self._publish(self._chance.randint(1, _MOST_AT_ONCE))
        except BaseException as error:
            self._failure = error

    def _publish(self, count: int) -> None:
        numbers = range(self._topic.partitions)
        self.publish([self.good(self._chance.choice(numbers)) for _ in range(count)])

    def _append(self) -> None:
        values: dict[int, Sequence[bytes | None]] = {
            partition: [b"%d-%d" % (self._epoch, n) for n in range(_APPENDED_AT_ONCE)]
            for partition in range(self._topic.partitions)
        }
        self.log.append(self._writer, self._epoch, [part_of(self._topic, values)])
        self._epoch += 1

    def close(self) -> None:
        """Stop writing, and let go of the log."""
        try:
            self.stop_writing()
        finally:
            self._host.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
