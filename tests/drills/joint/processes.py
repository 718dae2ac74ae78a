"""A Kafka consumer as a process that is killed, with its part in the ledger."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tests.drills.joint import kafka_child
from tests.drills.joint.consumers import DEADLINE_SECONDS, Ledger, Reading
from tests.support.children import Child


class KafkaProcess(Reading):
    """It commits what it has processed until it is told to hold, and never says farewell."""

    def __init__(self, name: str, ledger: Ledger, topic: str, settings: Mapping[str, Any]) -> None:
        self._child = Child(kafka_child.__name__, {"topic": topic, "settings": dict(settings)})
        self._held = threading.Event()
        super().__init__(f"process-{name}", ledger)

    def hold_acks(self) -> None:
        self._child.tell("hold")
        assert self._held.wait(DEADLINE_SECONDS), "it goes on to commit"

    def kill(self) -> None:
        """kill -9; what it has said until then is in the ledger when this returns."""
        self._child.kill()
        super().close()

    def close(self) -> None:
        self.kill()
        self._child.close()

    def read(self) -> None:
        for said in self._child.rest():
            for partition, number in said.get("read", ()):
                self.ledger.note(self.name, partition, number)
            self.ledger.note_acked(said.get("acked", ()))
            if "holds" in said:
                self._held.set()
