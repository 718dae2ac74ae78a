"""Under load, a Kafka topic is changed, or gets what it does not take; the mirror loses nothing.

Where somebody has to decide, it halts and says by name why; when that is mended it goes on. In the
end each record is in Kafka once and in order, or was set aside once, and only if it is bad.

Each fault has its mutant.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.drills.mirror import topic_faults as faults
from tests.drills.mirror.scene import SHORT_PATIENCE_SECONDS, Scene, Setting, played
from tests.drills.shares import first_of
from tests.support.kafka import Kafka

_ROUNDS = 20
_SELDOM_STORED = {"store_every_seconds": 30}


class Fault(NamedTuple):
    """What happens, where; what must not go unnoticed, and the word by which it is noticed."""

    happens: Callable[[Scene], None]
    mutant: str
    sign: str
    setting: Setting = Setting()


FAULTS = [
    Fault(faults.made_anew, "topic_ids_ignored", "KafkaTopicRecreated"),
    Fault(faults.partitions_added, "partitions_unchecked", "new partition"),
    Fault(faults.others_write, "answers_unread", "sequence"),
    Fault(
        faults.kafka_deletes,
        "deletions_ignored",
        "error=45",
        Setting(lacks_start=True, worker=_SELDOM_STORED),
    ),
    Fault(
        faults.poison,
        "skips_stored_later",
        "doubled",
        Setting(is_bad=faults.is_bad, kafka_settings=faults.SMALL, worker=_SELDOM_STORED),
    ),
    Fault(
        faults.all_poison,
        "fuse_never_burns",
        "RecordsRefused",
        Setting(is_bad=faults.is_oversized, kafka_settings=faults.SMALL),
    ),
    Fault(
        faults.clock_is_wrong,
        "refused_times_sent_again",
        "RecordsRefused",
        Setting(
            is_bad=faults.is_of_the_future,
            kafka_settings={},
            worker={"clock_ahead_ms": 7_200_000},
        ),
    ),
]
_names = [fault.happens.__name__ for fault in FAULTS]


@pytest.mark.parametrize("fault", FAULTS, ids=_names)
def test_nothing_is_lost_or_doubled(
    tmp_path: Path, kafka: Kafka, chance: random.Random, fault: Fault
) -> None:
    assert played(Scene(tmp_path, kafka, chance, fault.setting), fault.happens) == []


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("fault", FAULTS, ids=_names)
def test_nothing_is_lost_or_doubled_however_often(
    tmp_path: Path, kafka: Kafka, chance: random.Random, fault: Fault
) -> None:
    for number in range(_ROUNDS):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        assert played(Scene(folder, kafka, chance, fault.setting), fault.happens) == []


@pytest.mark.parametrize("fault", first_of(FAULTS), ids=[fault.mutant for fault in FAULTS])
def test_the_drill_finds_the_mutant(
    tmp_path: Path, kafka: Kafka, chance: random.Random, fault: Fault
) -> None:
    scene = Scene(
        tmp_path,
        kafka,
        chance,
        fault.setting,
        fault.mutant,
        patience_seconds=None if fault.sign == "doubled" else SHORT_PATIENCE_SECONDS,
    )
    wrong = played(scene, fault.happens)
    assert any(fault.sign in each for each in wrong), wrong
