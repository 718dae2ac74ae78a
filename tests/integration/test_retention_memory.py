"""Retention decides from memory: how often it looks into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duolog.log import LogOptions, open_log, retention
from duolog.log.model import Record, Retention, TopicPartition, TopicSettings
from tests.support.clock import ManualClock

LIMIT_SECONDS = 1000


def test_a_partition_is_looked_at_only_when_its_oldest_batch_may_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[TopicPartition] = []
    cut = retention.cut

    def counted(store: Any, where: TopicPartition, *rest: Any, **more: Any) -> Any:
        looks.append(where)
        return cut(store, where, *rest, **more)

    monkeypatch.setattr(retention, "cut", counted)
    clock = ManualClock()
    with open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        settings = TopicSettings(retention=Retention(seconds=LIMIT_SECONDS))
        where = TopicPartition(log.create_topic("orders", settings).id, 0)
        for n in range(20):
            log.publish("orders", Record(b"%d" % n))
            clock.advance(seconds=1)
        for _ in range(3):
            assert log.enforce_retention().total.messages_deleted == 0
        assert looks == []
        assert log._merger.merge(where) > 0
        clock.advance(seconds=LIMIT_SECONDS - 19)  # the oldest record is too old, its batch is not
        for _ in range(3):
            assert log.enforce_retention().total.messages_deleted == 0
        assert looks == [where]
        clock.advance(seconds=LIMIT_SECONDS)
        assert log.enforce_retention().total.messages_deleted == 20
