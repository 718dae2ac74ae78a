"""A log at its host that somebody writes to while a drill does its worst to the mirror."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from duolog.log.model import Mode, Record, TopicSettings, Writer
from tests.support.host_server import Host
from tests.support.records import part_of

PARTITIONS = 3
_PAUSE_SECONDS = 0.002


class WrittenLog:
    """Owned and hosted by this process, written to by a thread until its block is left."""

    def __init__(self, folder: Path, topic: str, chance: random.Random) -> None:
        self.folder = folder
        self.topic = topic
        self._chance = chance
        self._host = Host(folder)
        self.log = self._host.log
        self._topic = self.log.create_topic(topic, TopicSettings(partitions=PARTITIONS))
        self._writer = Writer(Mode.STREAM, "drill", topic)
        self._epoch = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write, name="duolog-drill-writer")

    def _write(self) -> None:
        while not self._stopped.wait(_PAUSE_SECONDS):
            if self._chance.random() < 0.1:
                self._append()
            else:
                self._publish(self._chance.randint(1, 30))

    def _publish(self, count: int) -> None:
        self.log.publish(
            self.topic,
            [
                Record(
                    self._chance.randbytes(self._chance.choice([0, 20, 400])),
                    partition=self._chance.randrange(PARTITIONS),
                )
                for _ in range(count)
            ],
        )

    def _append(self) -> None:
        values: dict[int, Sequence[bytes | None]] = {
            partition: [b"%d-%d" % (self._epoch, n) for n in range(2000)]
            for partition in range(PARTITIONS)
        }
        self.log.append(self._writer, self._epoch, [part_of(self._topic, values)])
        self._epoch += 1

    def stop_writing(self) -> None:
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop_writing()
        self._host.stop()
