"""MirrorMaker 2 as its own script starts it, from one topic into another of one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.mirror_processes import Writing, started
from bench.mirror_records import PARTITIONS
from duolog.jars import fetch_jars, find_java

_TARGET = "to"  # and the source, which is the same cluster, has another name in each run

# What a single broker needs. All else is as it comes.
_ALWAYS = {
    f"{internal}.replication.factor": "1"
    for internal in (
        "offset-syncs.topic",
        "checkpoints.topic",
        "heartbeats.topic",
        "offset.storage",
        "status.storage",
        "config.storage",
    )
} | {"replication.factor": "1"}

_TUNED_READS = {
    "max.poll.records": "20000",
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.min.bytes": str(512 << 10),
    "fetch.max.wait.ms": "50",
}
_TUNED_WRITES = {
    "batch.size": str(256 << 10),
    "linger.ms": "5",
    "buffer.memory": str(64 << 20),
}


def copy_of(topic: str, source: str) -> str:
    """The topic that MirrorMaker 2 writes into."""
    return f"{source}.{topic}"


@contextmanager
def mirror_maker(
    folder: Path, bootstrap_servers: str, topic: str, source: str, *, tuned: bool
) -> Iterator[Writing]:
    """It runs until it is ended. `source`: a name for the cluster that it has never heard of."""
    properties = folder / "mirror-maker.properties"
    settings = _settings(bootstrap_servers, topic, source, tuned)
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [find_java(), "-Xmx1g", "-cp", _class_path()]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)]
    with started(command, folder / "mirror-maker.log") as writing:
        yield writing


def _settings(servers: str, topic: str, source: str, tuned: bool) -> dict[str, str]:
    way = f"{source}->{_TARGET}"
    settings = {
        "clusters": f"{source}, {_TARGET}",
        f"{source}.bootstrap.servers": servers,
        f"{_TARGET}.bootstrap.servers": servers,
        f"{way}.enabled": "true",
        f"{way}.topics": topic,
        **_ALWAYS,
    }
    if tuned:
        settings["tasks.max"] = str(PARTITIONS)
        settings |= {f"{way}.source.consumer.{name}": it for name, it in _TUNED_READS.items()}
        settings |= {f"{_TARGET}.producer.{name}": it for name, it in _TUNED_WRITES.items()}
    return settings


def _class_path() -> str:
    from duolog.bridge.kafka.local import KAFKA_VERSION, kafka_jars

    mirror = fetch_jars("org.apache.kafka", "connect-mirror", KAFKA_VERSION)
    return f"{mirror[0].parent / '*'}:{kafka_jars()[0].parent / '*'}"
