"""What drills of the mirror have in common: a log that is written to, a Kafka, a worker between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from tests.drills.mirror import worker
from tests.drills.mirror.judging import IsBad, audit_says, no_bad_ones, violations
from tests.drills.mirror.writing import PARTITIONS, WrittenLog
from tests.support.children import Child
from tests.support.kafka import DEADLINE_SECONDS, Kafka

_PATIENCE_SECONDS = 120.0
SHORT_PATIENCE_SECONDS = 8.0  # for a mutant that brings the mirror to a halt
_LOOK_AGAIN_SECONDS = 0.01


class StandsStill(Exception):
    """Something that was to come has not come."""


@dataclass(frozen=True)
class Setting:
    """How a scene is set."""

    is_bad: IsBad = no_bad_ones
    lacks_start: bool = False
    kafka_settings: Mapping[str, str] | None = None  # of a Kafka topic that was there before
    worker: Mapping[str, Any] = field(default_factory=dict)
    connection: Mapping[str, str] = field(default_factory=dict)


class Scene:
    """The worker is started and killed as the drill likes; the log is hosted by this process."""

    def __init__(
        self,
        folder: Path,
        kafka: Kafka,
        chance: random.Random,
        setting: Setting | None = None,
        mutant: str | None = None,
        topic: str | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        self.folder = folder / "log"
        self.kafka = kafka
        self.chance = chance
        self.setting = setting or Setting()
        self._mutant = mutant
        self._patience = patience_seconds or _PATIENCE_SECONDS
        self._workers = ExitStack()
        if self.setting.kafka_settings is not None:
            topic = kafka.new_topic(PARTITIONS, self.setting.kafka_settings)
        self.topic = topic or f"drill-{uuid4().hex[:12]}"
        compression = chance.choice(["none", "zstd"])
        self._connection = {"compression.type": compression, **self.setting.connection}
        asking = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": f"asks-{self.topic}"}
        self._asking = Consumer({**asking, "log_level": 0})
        self.written = WrittenLog(self.folder, self.topic, chance)
        self.log = self.written.log

    def start_worker(self, folder: Path | None = None, **options: Any) -> Child:
        """One more; it ends with the scene at the latest."""
        arguments = {
            "mutant": self._mutant,
            **self.setting.worker,
            **options,
            "settings": {
                "folder": str(folder or self.folder),
                "bootstrap_servers": self.kafka.bootstrap_servers,
                "settings": self._connection,
            },
        }
        self.worker = self._workers.enter_context(Child(worker.__name__, arguments))
        return self.worker

    def kill_worker(self) -> None:
        self.worker.kill()
        self.worker.wait()

    def pass_time(self, seconds: float) -> None:
        """Let things happen."""
        list(self.worker.until_silent(seconds))

    def until(self, reached: Callable[[], Any], what: str | Callable[[], str]) -> None:
        """Wait for something that the worker brings about; `what` is asked when it has not."""
        give_up = time.monotonic() + self._patience
        while not reached():
            if time.monotonic() > give_up or not self.worker.running:
                told = what if isinstance(what, str) else what()
                raise StandsStill(f"It does not {told}: {self.worker.errors()}")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def begins(self) -> None:
        """Wait until something of each partition is in Kafka."""
        self.until(lambda: len(self.log.mirrors(self.topic)) == PARTITIONS, "begin")
        self.sends(100)

    def gets_on(self) -> None:
        """Wait until more was stored than before."""
        before = self.written.mirrored
        self.until(lambda: self.written.mirrored > before, "get on")

    def sends(self, records: int = 1000) -> None:
        """Wait until Kafka has so many more in each partition, whatever is stored of it."""
        wanted = [end + records for end in self._ends()]
        self.until(
            lambda: all(end >= upto for end, upto in zip(self._ends(), wanted, strict=True)),
            f"send {records} records to each partition",
        )

    def edges(self, partition: int) -> tuple[int, int]:
        """Kafka's first offset of a partition, and the one after its last."""
        place = TopicPartition(self.topic, partition)
        start, end = self._asking.get_watermark_offsets(place, timeout=DEADLINE_SECONDS)
        return start, end

    def _ends(self) -> list[int]:
        return [self.edges(partition)[1] for partition in range(PARTITIONS)]

    def catches_up(self) -> None:
        """Wait until all that was written is mirrored."""
        self.until(
            lambda: self.written.mirrored >= self.written.records,
            lambda: f"mirror {self.written.records} records, but {self.written.mirrored}",
        )

    def halts(self, code: str) -> None:
        """Wait until the worker says so of a partition of the topic, with this reason."""
        for said in self.worker.until_silent(self._patience):
            told = [each for each in said.get("troubles", ()) if each["topic"] == self.topic]
            if code in {each["code"] for each in told}:
                return
        raise StandsStill(f"It does not halt with {code}: {self.worker.errors()}")

    def wrong_at_the_end(self) -> list[str]:
        """Let the rest be mirrored; all that is wrong then."""
        self.written.stop_writing()
        try:
            self.catches_up()
        except StandsStill as still:
            return [str(still)]
        servers = self.kafka.bootstrap_servers
        setting = self.setting
        wrong = violations(
            self.log,
            self.topic,
            servers,
            is_bad=setting.is_bad,
            lacks_start=setting.lacks_start,
        )
        lacks_start = setting.lacks_start
        return wrong or audit_says(self.folder, self.topic, servers, lacks_start=lacks_start)

    def __enter__(self) -> Self:
        self.written.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._workers.close()
        self._asking.close()
        self.written.close()


def played(scene: Scene, what_happens: Callable[[Scene], object]) -> list[str]:
    """Let something happen to a mirror that is at work; what is wrong when all is over."""
    with scene:
        scene.start_worker()
        try:
            scene.begins()
            what_happens(scene)
        except StandsStill as still:
            return [str(still)]
        return scene.wrong_at_the_end()
