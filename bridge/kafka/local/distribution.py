"""The jars of an Apache Kafka broker."""

from __future__ import annotations

from pathlib import Path

from duolog.jars import Module, Progress, cache_folder, fetch

KAFKA_VERSION = "4.1.1"
_MODULES = (
    Module("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    # Kafka's own dependencies have no way from its log calls to log4j: it would start in silence.
    Module("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3", transitive=False),
)


def kafka_jars(progress: Progress | None = None) -> list[Path]:
    """All jars that a broker runs with, from the cache or fetched once."""
    return fetch(_MODULES, cache_folder() / "kafka" / KAFKA_VERSION, progress)
