"""Which host is degraded, and why."""

from __future__ import annotations

from typing import Any

import pytest

from duolog.bridge.http.degraded import reasons
from duolog.log.damage_model import DamagedOffsets

DAMAGE = DamagedOffsets("a secret topic", 0, 10, 20, "It rots.", 1)
SKIP = "see system.partitions, and `duolog topic skip`"
STATUS = "see `duolog mirror status`"
CASES: list[tuple[tuple[DamagedOffsets, ...], dict[str, dict[str, Any]], list[str]]] = [
    ((), {}, []),
    ((), {"kafka": {"state": "running", "starts": 1, "partitions": {"mirroring": 3}}}, []),
    ((), {"kafka": {"state": "running", "starts": 1, "partitions": {"recovering": 3}}}, []),
    ((), {"kafka": {"state": "waiting", "starts": 1, "code": "KafkaUnreachable"}}, []),
    ((), {"kafka": {"state": "running", "partitions": {"paused": 3, "halted": 0}}}, []),
    (
        (),
        {"kafka": {"state": "running", "partitions": {"mirroring": 2, "halted": 1}}},
        [f"the mirror of 1 partition is halted: {STATUS}"],
    ),
    (
        (),
        {"kafka": {"state": "waiting", "ends_in_a_row": 3}},
        ["the worker 'kafka' has ended 3 times in a row: see the host's log"],
    ),
    (
        (),
        {"kafka": {"state": "given up", "code": "InvalidSetting", "ends_in_a_row": 2}},
        ["the worker 'kafka' has given up: only other settings help; see the host's log"],
    ),
    ((DAMAGE,), {}, [f"1 damaged batch in 1 partition: {SKIP}"]),
    (
        (DAMAGE, DAMAGE),
        {"kafka": {"state": "running", "partitions": {"halted": 2}, "ends_in_a_row": 2}},
        [
            f"2 damaged batches in 1 partition: {SKIP}",
            f"the mirror of 2 partitions is halted: {STATUS}",
            "the worker 'kafka' has ended 2 times in a row: see the host's log",
        ],
    ),
]


@pytest.mark.parametrize(("damaged", "workers", "why"), CASES)
def test_why_a_host_is_degraded(
    damaged: tuple[DamagedOffsets, ...], workers: dict[str, dict[str, Any]], why: list[str]
) -> None:
    assert reasons(damaged, workers) == why
