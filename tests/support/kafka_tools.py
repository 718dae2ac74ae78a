"""Kafka's own consumers, as its command line starts them: for a portion of records at a time."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from duolog.bridge.kafka.local.distribution import KAFKA_VERSION, kafka_jars
from duolog.jars import fetch_jars, find_java

_DEADLINE_SECONDS = 120.0
_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_VERIFIABLE = "org.apache.kafka.tools.VerifiableConsumer"

Place = tuple[int, int]
"""Partition and Kafka offset of a record that was consumed."""


def console_consumer(servers: str, topic: str, group: str, portion: int) -> list[Place]:
    """What `kafka-console-consumer` prints; it commits that when it ends."""
    said = _run(
        _CONSOLE, "--bootstrap-server", servers, "--topic", topic, "--group", group,
        "--max-messages", str(portion), "--timeout-ms", "20000",
        "--consumer-property", "auto.offset.reset=earliest",
        "--property", "print.partition=true", "--property", "print.offset=true",
        "--property", "print.value=false",
    )  # fmt: skip
    fields = (line.split("\t") for line in said.splitlines() if line.startswith("Partition:"))
    return [
        (int(partition.removeprefix("Partition:")), int(offset.removeprefix("Offset:")))
        for partition, offset, *_ in fields
    ]


def verifiable_consumer(servers: str, topic: str, group: str, portion: int) -> list[Place]:
    """What Kafka's own tests consume with: it commits each batch before it tells of it."""
    said = _run(
        _VERIFIABLE, "--bootstrap-server", servers, "--topic", topic, "--group-id", group,
        "--max-messages", str(portion), "--reset-policy", "earliest",
    )  # fmt: skip
    return list(_consumed(json.loads(line) for line in said.splitlines() if line.startswith("{")))


def _consumed(events: Iterator[dict[str, Any]]) -> Iterator[Place]:
    for event in events:
        if event["name"] == "offsets_committed":
            assert event["success"], event
        if event["name"] == "records_consumed":
            for each in event["partitions"]:
                offsets = range(each["minOffset"], each["maxOffset"] + 1)
                assert len(offsets) == each["count"], event
                yield from ((each["partition"], offset) for offset in offsets)


def _run(tool: str, *arguments: str) -> str:
    ended = subprocess.run(
        [
            find_java(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            _class_path(),
            tool,
            *arguments,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
        text=True,
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return ended.stdout


def _class_path() -> str:
    """The tools' jar, fetched once; all that it needs is among the broker's."""
    (tools,) = fetch_jars("org.apache.kafka", "kafka-tools", KAFKA_VERSION, transitive=False)
    return f"{tools}:{kafka_jars()[0].parent / '*'}"
