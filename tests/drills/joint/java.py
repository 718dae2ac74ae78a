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
            if said.get("name") != "records_consumed":
                continue
            for each in said["partitions"]:
                for offset in range(each["minOffset"], each["maxOffset"] + 1):
                    number = offset * self._partitions + each["partition"]
                    self.ledger.note(self.name, each["partition"], number)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_SECONDS)
        super().close()
        assert self._process.stdout is not None
        self._process.stdout.close()
