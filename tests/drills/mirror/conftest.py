"""A broker that drills may stop, freeze and damage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duolog.bridge.kafka.local import LocalKafka
from tests.support.kafka import START_SECONDS

_PROPERTIES = {
    "producer.id.expiration.check.interval.ms": "500",
    "offsets.retention.check.interval.ms": "1000",
    "offsets.retention.minutes": "1",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """One for all drills of a file."""
    with LocalKafka(
        tmp_path_factory.mktemp("kafka"),
        properties=_PROPERTIES,
        java_options=["-XX:TieredStopAtLevel=1"],  # it is started often
        start_seconds=START_SECONDS,
    ) as broker:
        yield broker
