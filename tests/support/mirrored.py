"""A topic that is in a log and in a real Kafka, with runs that a test decides on."""

from __future__ import annotations

from confluent_kafka import Producer

from duolog.log.access import LogAccess
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorTarget, Run
from duolog.log.model import Record
from tests.support.kafka import DEADLINE_SECONDS, Kafka


class MirroredTopic:
    """One partition. To send to Kafka, and to tell of it, are steps of their own."""

    def __init__(self, log: LogAccess, kafka: Kafka, name: str, *, begun: bool = True) -> None:
        self.log, self.name = log, name
        self.kafka_topic = kafka.new_topic()
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": "1"})
        self._kafka_end = 0
        self._sent = 0
        log.create_topic(name)
        if begun:
            self.begin()

    def begin(self) -> None:
        target = MirrorTarget("cluster", self.kafka_topic, "id", 1, 0, 0, 0)
        self.log.begin_mirror(self.name, 0, target)

    def publish(self, count: int) -> None:
        self.log.publish(self.name, [Record(b"%d" % number) for number in range(count)])

    def send(self, count: int) -> Run:
        """The next records of the log come to Kafka; nobody is told yet."""
        run = Run(self._sent, self._kafka_end, count)
        self._produce(count)
        self._sent += count
        return run

    def foreign(self, count: int) -> None:
        """Somebody else writes."""
        self._produce(count)

    def tell(self, run: Run) -> None:
        """The mirror stores a run."""
        mirror = self.mirror
        self.log.change_mirror(
            self.name, 0, MirrorChange(mirror.version, len(mirror.runs), 0, (run,))
        )

    def fill(self, count: int) -> None:
        """Publish, send and tell."""
        self.publish(count)
        self.tell(self.send(count))

    @property
    def mirror(self) -> Mirror:
        mirror = self.log.mirror(self.name, 0)
        assert mirror is not None
        return mirror

    def _produce(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.kafka_topic, b"x", partition=0)
        assert self._producer.flush(DEADLINE_SECONDS) == 0
        self._kafka_end += count
