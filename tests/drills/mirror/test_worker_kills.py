"""The Kafka worker is killed with -9 while it mirrors, and each record is in Kafka once, in order.

Killed at random moments: while it looks for the cluster, recovers, sends, or stores runs. A writer
goes on all the time. In the end an independent consumer reads each partition from its start, and
what it reads is the log, byte by byte; and the stored runs say where everything lies.

Mutants: without_a_producer, new_producer_each_time.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.drills.mirror import worker
from tests.drills.mirror.writing import PARTITIONS, WrittenLog
from tests.support.children import Child
from tests.support.kafka import Kafka
from tests.support.mirror_runner import Read, read_all, read_log

_CAUGHT_UP_SECONDS = 60.0
_MUTANT_SECONDS = 15.0  # what it breaks may also bring the mirror to a halt
_LONGEST_LIFE_SECONDS = 0.4


def killed_again_and_again(
    folder: Path, kafka: Kafka, kills: int, chance: random.Random, mutant: str | None = None
) -> list[str]:
    """Kill so often; what is wrong in the end."""
    topic = f"drill-{uuid4().hex[:12]}"
    patience = _MUTANT_SECONDS if mutant else _CAUGHT_UP_SECONDS
    arguments: dict[str, Any] = {
        "mutant": mutant,
        "store_every_seconds": 0.2,
        "settings": {
            "folder": str(folder / "log"),
            "bootstrap_servers": kafka.bootstrap_servers,
            "settings": {"compression.type": chance.choice(["none", "zstd"])},
        },
    }
    with WrittenLog(folder / "log", topic, chance) as written:
        for kill in range(kills):
            with Child(worker.__name__, arguments) as child:
                if kill % 5 and not _mirrors(written, child, patience):  # else while it begins
                    return [f"it stands still: {child.errors()}"]
                list(child.until_silent(chance.random() * _LONGEST_LIFE_SECONDS))
                child.kill()
        written.stop_writing()
        with Child(worker.__name__, arguments) as child:
            wrong = _until_all_is_there(written, child, patience)
        return wrong or _judged(written, kafka)


def _mirrors(written: WrittenLog, child: Child, patience: float) -> bool:
    """Wait until something more was stored than before."""
    before = _mirrored(written)
    give_up = time.monotonic() + patience
    while _mirrored(written) == before:
        if time.monotonic() > give_up or not child.running:
            return False
        time.sleep(0.01)
    return True


def _mirrored(written: WrittenLog) -> int:
    return sum(mirror.next_log_offset for mirror in written.log.mirrors(written.topic))


def _until_all_is_there(written: WrittenLog, child: Child, patience: float) -> list[str]:
    head = sum(offsets.next_offset for offsets in written.log.offsets(written.topic))
    give_up = time.monotonic() + patience
    while _mirrored(written) < head:
        if time.monotonic() > give_up or not child.running:
            return [f"{_mirrored(written)} of {head} records were mirrored: {child.errors()}"]
        time.sleep(0.02)
    return []


def _judged(written: WrittenLog, kafka: Kafka) -> list[str]:
    wrong = []
    for partition in range(PARTITIONS):
        there = read_all(kafka.bootstrap_servers, written.topic, partition)
        ours = read_log(written.log, written.topic, partition)
        if there != ours:
            wrong.append(
                f"partition {partition}: {len(there)} records in Kafka, {len(ours)} in the log; "
                f"alike are the first {_alike(there, ours)}"
            )
        mirror = written.log.mirror(written.topic, partition)
        if mirror is None or len(mirror.runs) != 1 or mirror.runs[0].difference:
            wrong.append(f"partition {partition}: runs {mirror}")
    return wrong


def _alike(there: list[Read], ours: list[Read]) -> int:
    pairs = enumerate(zip(there, ours, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(there), len(ours)))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.full)])
def test_each_record_is_in_kafka_once_and_in_order(
    tmp_path: Path, kafka: Kafka, chance: random.Random, kills: int
) -> None:
    assert killed_again_and_again(tmp_path, kafka, kills, chance) == []


@pytest.mark.parametrize("mutant", sorted(worker.MUTANTS))
def test_kills_find_the_mutant(
    tmp_path: Path, kafka: Kafka, chance: random.Random, mutant: str
) -> None:
    assert killed_again_and_again(tmp_path, kafka, 3, chance, mutant)
