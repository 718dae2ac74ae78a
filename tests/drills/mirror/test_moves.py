"""A group is moved on both sides at random, while the mirror is at work, and killed now and then.

Acks and seeks in the log, commits of members and of others, Kafka's own reset, groups that are
deleted, offsets beyond the end, holes on both sides: nothing acknowledged is lost, nothing that was
taken back is skipped, and both sides come to one place, where `duolog audit` finds them equal.

Mutants: rewinds_unseen, deletion_is_a_rewind.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from duolog.bridge.kafka.local import LocalKafka
from tests.drills.mirror.judging import audit_says
from tests.drills.mirror.moves import Moves
from tests.drills.mirror.scene import SHORT_PATIENCE_SECONDS, Scene, Setting, StandsStill
from tests.drills.mirror.topic_faults import SMALL, is_oversized
from tests.drills.shares import first_of
from tests.support.groups import until
from tests.support.kafka import Kafka

_ROUNDS = (
    *(Moves.forward,) * 3,
    Moves.back,
    Moves.back_in_kafka,
    Moves.back_and_forward,
    Moves.forward_while_away,
    Moves.forgotten_in_kafka,
    Moves.with_members,
    Moves.beyond_the_end,
    Moves.holes,
)
_TEN_MINUTES = 600.0
_EXPIRY_SECONDS = 300.0

Round = Callable[[Moves], None]


def moved(
    folder: Path,
    kafka: Kafka,
    chance: random.Random,
    rounds: tuple[Round, ...],
    *,
    seconds: float = 0,
    mutant: str | None = None,
) -> list[str]:
    """Each round once in any order, and on for so long; what is wrong then."""
    setting = Setting(is_bad=is_oversized, lacks_start=True, kafka_settings=SMALL)
    patience_seconds = SHORT_PATIENCE_SECONDS if mutant else None
    made = Scene(folder, kafka, chance, setting, mutant, patience_seconds=patience_seconds)
    with made as scene, closing(Moves(scene)) as group:
        scene.start_worker()
        ends_at = time.monotonic() + seconds
        try:
            scene.begins()
            scene.gets_on()
            scene.written.pause_seconds = 0.1
            group.begins()
            again = True
            while again:
                for each in chance.sample(rounds, len(rounds)):
                    each(group)
                again = time.monotonic() < ends_at
        except StandsStill as still:
            return [str(still)]
        print("written within, after the last member left:", sorted(group.left_within)[-3:])
        wrong = scene.wrong_at_the_end()
        group.comes_to(group.at)
        servers, lacks_start = kafka.bootstrap_servers, Moves.deleted_in_kafka in rounds
        return wrong or audit_says(
            scene.folder, scene.topic, servers, groups=group.group, lacks_start=lacks_start
        )


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seconds", [0, pytest.param(_TEN_MINUTES, marks=pytest.mark.full)])
def test_nothing_acknowledged_is_lost_and_nothing_undone_is_skipped(
    tmp_path: Path, kafka: Kafka, chance: random.Random, seconds: float
) -> None:
    assert moved(tmp_path, kafka, chance, _ROUNDS, seconds=seconds) == []


def test_where_kafka_keeps_less_nothing_is_skipped(
    tmp_path: Path, kafka: Kafka, chance: random.Random
) -> None:
    rounds = (Moves.deleted_in_kafka, Moves.forward, Moves.deleted_in_kafka, Moves.back)
    assert moved(tmp_path, kafka, chance, rounds) == []


@pytest.mark.full
@pytest.mark.timeout(900)
def test_what_expires_in_kafka_is_written_again(
    tmp_path: Path, broker: LocalKafka, chance: random.Random
) -> None:
    def expires(group: Moves) -> None:
        scene = group.scene
        scene.kill_worker()
        until(lambda: group.in_kafka is None, "expire", _EXPIRY_SECONDS)
        scene.start_worker()
        group.comes_to(group.at)

    kafka = Kafka(broker.bootstrap_servers, "its own")
    assert moved(tmp_path, kafka, chance, (Moves.forward, expires)) == []


@pytest.mark.parametrize(
    ("mutant", "round_"),
    first_of(
        [
            ("rewinds_unseen", Moves.back_in_kafka),
            ("deletion_is_a_rewind", Moves.forgotten_in_kafka),
        ]
    ),
)
def test_the_drill_finds_the_mutant(
    tmp_path: Path, kafka: Kafka, chance: random.Random, mutant: str, round_: Round
) -> None:
    def consumers_read(group: Moves) -> None:
        group.comes_to(max(group.at, group.commits()))
        round_(group)

    rounds = (consumers_read, Moves.forward)
    wrong = moved(tmp_path, kafka, chance, rounds, mutant=mutant)
    assert any("does not bring" in each for each in wrong), wrong
