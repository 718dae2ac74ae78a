"""A real Kafka on this machine: one throwaway node on loopback."""

from __future__ import annotations

from duolog.bridge.kafka.local.broker import LocalKafka
from duolog.bridge.kafka.local.distribution import KAFKA_VERSION, kafka_jars
from duolog.bridge.kafka.local.doors import Door, Security

__all__ = ["Door", "KAFKA_VERSION", "LocalKafka", "Security", "kafka_jars"]
