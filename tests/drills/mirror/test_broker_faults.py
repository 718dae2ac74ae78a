"""A broker is frozen, stopped, killed, loses records, forgets us; nothing is lost or doubled.

Frozen for longer than requests may take, so that what was given up arrives all the same. A writer
goes on all the time; in the end each record is in Kafka once and in order.

Each fault has its mutant.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from duolog.bridge.kafka.local import LocalKafka
from tests.drills.mirror import broker_faults as faults
from tests.drills.mirror.broker_faults import BrokerFault
from tests.drills.mirror.scene import SHORT_PATIENCE_SECONDS, Scene, Setting, played
from tests.drills.shares import first_of
from tests.support.kafka import Kafka

_FAULTS = (
    faults.frozen,
    faults.stopped,
    faults.killed,
    faults.lost_its_end,
    faults.lost_all,
    faults.forgot_us,
)
_SETTING = Setting(worker={"store_every_seconds": 2}, connection={"request.timeout.ms": "2000"})
_FIVE_MINUTES = 300.0
_CUT_BACK = "mirror.cut_back"  # again and again


def scene_of(
    folder: Path,
    broker: LocalKafka,
    chance: random.Random,
    mutant: str | None = None,
    patience_seconds: float | None = None,
) -> Scene:
    kafka = Kafka(broker.bootstrap_servers, "its own")
    return Scene(folder, kafka, chance, _SETTING, mutant, patience_seconds=patience_seconds)


def one_after_another(times: int, *among: BrokerFault) -> list[BrokerFault]:
    return [among[number % len(among)] for number in range(times)]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(one_after_another(len(_FAULTS), *_FAULTS), id="each"),
        pytest.param(
            one_after_another(20, faults.stopped), id="twenty stops", marks=pytest.mark.full
        ),
        pytest.param(one_after_another(50, *_FAULTS), id="fifty", marks=pytest.mark.full),
    ],
)
def test_nothing_is_lost_or_doubled(
    tmp_path: Path, broker: LocalKafka, chance: random.Random, happens: list[BrokerFault]
) -> None:
    chance.shuffle(happens)

    def all_of_them(scene: Scene) -> None:
        for fault in happens:
            fault(scene, broker)

    assert played(scene_of(tmp_path, broker, chance), all_of_them) == []


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_five_minutes_without_a_broker(
    tmp_path: Path, broker: LocalKafka, chance: random.Random
) -> None:
    def five_minutes(scene: Scene) -> None:
        scene.written.pause_seconds = 0.05
        faults.stopped(scene, broker, _FIVE_MINUTES)

    assert played(scene_of(tmp_path, broker, chance), five_minutes) == []


@pytest.mark.parametrize(
    ("fault", "mutant", "sign"),
    first_of(
        [
            (faults.killed, "without_a_producer", "doubled"),
            (faults.frozen, "without_a_producer", "doubled"),
            (faults.lost_its_end, "losses_ignored", _CUT_BACK),
            (faults.lost_all, "losses_ignored", _CUT_BACK),
            (faults.forgot_us, "stored_runs_trusted", "doubled"),
        ]
    ),
)
def test_the_drill_finds_the_mutant(
    tmp_path: Path,
    broker: LocalKafka,
    chance: random.Random,
    fault: BrokerFault,
    mutant: str,
    sign: str,
) -> None:
    patience_seconds = SHORT_PATIENCE_SECONDS if sign == _CUT_BACK else None
    scene = scene_of(tmp_path, broker, chance, mutant, patience_seconds)
    wrong = played(scene, lambda scene: fault(scene, broker))
    assert any(sign in each for each in wrong), wrong
