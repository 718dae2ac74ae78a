"""The Kafka worker is killed with -9 while it mirrors, and each record is in Kafka once, in order.

Killed at random moments: while it looks for the cluster, recovers, sends, or stores runs. A writer
goes on all the time. In the end an independent consumer reads each partition from its start, and
what it reads is the log, byte by byte; and the stored runs say where everything lies.

Mutants: without_a_producer, new_producer_each_time.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills.mirror.scene import Scene, played
from tests.drills.shares import first_of
from tests.support.kafka import Kafka

_LONGEST_LIFE_SECONDS = 0.4


def killed_again_and_again(scene: Scene, kills: int) -> None:
    for kill in range(kills):
        if kill % 5:  # else while it begins
            scene.gets_on()
        scene.pass_time(scene.chance.random() * _LONGEST_LIFE_SECONDS)
        scene.kill_worker()
        scene.start_worker()


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.full)])
def test_each_record_is_in_kafka_once_and_in_order(
    tmp_path: Path, kafka: Kafka, chance: random.Random, kills: int
) -> None:
    scene = Scene(tmp_path, kafka, chance)
    assert played(scene, lambda scene: killed_again_and_again(scene, kills)) == []


@pytest.mark.parametrize("mutant", first_of(["without_a_producer", "new_producer_each_time"]))
def test_kills_find_the_mutant(
    tmp_path: Path, kafka: Kafka, chance: random.Random, mutant: str
) -> None:
    scene = Scene(tmp_path, kafka, chance, mutant=mutant)
    assert played(scene, lambda scene: killed_again_and_again(scene, 3))
