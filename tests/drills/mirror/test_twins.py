"""Two workers at once: one that was only thought dead, and one of a log that came from a backup.

The first is frozen with batches that it is about to send. Another takes over, as it could where the
lock's file lies on another machine's disk, and when the frozen one wakes up it sends what it had.
The broker refuses it, so each record is in Kafka once and in order.

Mutants: without_a_producer, new_producer_each_time.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from duolog.bridge.kafka.mirror.restarting import restart
from tests.drills.mirror.scene import SHORT_PATIENCE_SECONDS, Scene, StandsStill, played
from tests.support.kafka import Kafka
from tests.support.kafka_damage import delete_topic

_BATCHES = 2  # have no answer when it is frozen
_FAR_AHEAD = 4000  # records: more than the batches of which a broker knows that it has them
_TOGETHER_SECONDS = 5.0
_LOOK_AGAIN_SECONDS = 0.05


def one_freezes_and_wakes(scene: Scene) -> bool:
    """Once; whether the one that woke up was refused."""
    scene.kill_worker()
    frozen = scene.start_worker(freezes_with=_BATCHES)
    process = psutil.Process(frozen.pid)
    scene.until(lambda: process.status() == psutil.STATUS_STOPPED, "freeze")
    (scene.folder / "mirror.lock").unlink()
    scene.start_worker()
    scene.sends(_FAR_AHEAD)
    os.kill(frozen.pid, signal.SIGCONT)
    give_up, is_refused = time.monotonic() + _TOGETHER_SECONDS, False
    while not is_refused and time.monotonic() < give_up:
        scene.pass_time(_LOOK_AGAIN_SECONDS)
        is_refused = "mirror.refused" in frozen.errors()
    scene.gets_on()
    frozen.kill()
    frozen.wait()
    return is_refused


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.full)])
def test_a_frozen_worker_that_wakes_up_doubles_nothing(
    tmp_path: Path, kafka: Kafka, chance: random.Random, times: int
) -> None:
    refused: list[bool] = []

    def again_and_again(scene: Scene) -> None:
        refused.extend(one_freezes_and_wakes(scene) for _ in range(times))

    assert played(Scene(tmp_path, kafka, chance), again_and_again) == []
    assert any(refused)


def test_the_frozen_one_finds_the_mutant(
    tmp_path: Path, kafka: Kafka, chance: random.Random
) -> None:
    scene = Scene(tmp_path, kafka, chance, mutant="without_a_producer")
    wrong = played(scene, one_freezes_and_wakes)
    assert any("doubled" in each for each in wrong), wrong


def two_lives(
    folder: Path, kafka: Kafka, chance: random.Random, mutant: str | None = None
) -> list[str]:
    """A log and its restored backup are both written to and mirrored; then the backup alone."""
    patience_seconds = SHORT_PATIENCE_SECONDS if mutant else None
    with Scene(folder, kafka, chance, patience_seconds=patience_seconds) as scene:
        scene.start_worker()
        scene.begins()
        scene.log.backup(folder / "restored" / "log")
        restored = Scene(
            folder / "restored",
            kafka,
            chance,
            mutant=mutant,
            topic=scene.topic,
            patience_seconds=patience_seconds,
        )
        with restored:
            restored.start_worker()
            try:
                restored.halts("MirrorOfCopy")
            except StandsStill as still:
                return [str(still), *scene.wrong_at_the_end()]
            scene.gets_on()
            wrong = scene.wrong_at_the_end()
            scene.kill_worker()
            delete_topic(kafka.bootstrap_servers, scene.topic)
            restart(restored.log, scene.topic)
            restored.gets_on()
            return wrong + restored.wrong_at_the_end()


def test_a_restored_backup_does_not_write_into_the_old_topic(
    tmp_path: Path, kafka: Kafka, chance: random.Random
) -> None:
    assert two_lives(tmp_path, kafka, chance) == []


def test_the_backup_finds_the_mutant(tmp_path: Path, kafka: Kafka, chance: random.Random) -> None:
    wrong = two_lives(tmp_path, kafka, chance, "new_producer_each_time")
    # Either the original has noticed them and stands, or the judge finds them.
    assert any("copies where they are" in each or "alike are" in each for each in wrong), wrong
