"""A Java consumer of a group: Kafka's own VerifiableConsumer, as a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

from bench.mirror_processes import class_path
from duolog.jars import find_java
from tests.drills.joint.consumers import DEADLINE_SECONDS, Ledger, Reading


class JavaReading(Reading):
    """It commits what it has read, and says so; number n lies in partition n % count."""

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        bootstrap: str,
        topic: str,
        group: str,
        partitions: int,
        options: Sequence[str],
    ) -> None:
        self._partitions = partitions
        self._pending: dict[int, int] = {}  # where what is not committed begins
        self._process = subprocess.Popen(
            [
                *(find_java(), "-Xmx128m", "-cp", class_path()),
                *("org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", bootstrap),
                *("--topic", topic, "--group-id", group, "--reset-policy", "earliest", *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        super().__init__(f"java-{name}", ledger)

    def read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            match said.get("name"):
                case "records_consumed":
                    for each in said["partitions"]:
                        self._consumed(each["partition"], each["minOffset"], each["maxOffset"])
                case "offsets_committed":
                    for each in said["offsets"]:
                        self._committed(each["partition"], each["offset"], said["success"])
                case "partitions_revoked":
                    for each in said["partitions"]:
                        self._pending.pop(each["partition"], None)

    def _consumed(self, partition: int, first: int, last: int) -> None:
        for offset in range(first, last + 1):
            self.ledger.note(self.name, partition, offset * self._partitions + partition)
        self._pending.setdefault(partition, first)

    def _committed(self, partition: int, upto: int, success: bool) -> None:
        """By the newer protocol it gives up where its member epoch has changed, and goes on."""
        begin = self._pending.get(partition, upto)
        numbers = [at * self._partitions + partition for at in range(begin, upto)]
        if success:
            self._pending[partition] = upto
            self.ledger.note_acked(numbers)
        else:
            self.ledger.note_given_up(numbers)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_SECONDS)
        super().close()
        assert self._process.stdout is not None
        self._process.stdout.close()
