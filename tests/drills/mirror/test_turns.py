"""Native consumers and Kafka's take turns in one group: each record is processed exactly once.

librdkafka with both protocols, Kafka's own console consumer and its verifiable one, and a native
one, in portions of random size, while the mirror is at work.

Mutant: consumers_unheard.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills.mirror.judging import audit_says
from tests.drills.mirror.scene import Scene, StandsStill
from tests.drills.mirror.turns import CONSUMERS, Turns
from tests.support.kafka import Kafka

_LONGEST_TURN = 50_000
_OWN_TOOLS = ("console", "verifiable")


def by_turns(
    folder: Path,
    kafka: Kafka,
    chance: random.Random,
    records: int,
    who: list[str],
    mutant: str | None = None,
) -> list[str]:
    """All records of a topic, done by these in any order and as often as needed."""
    with Scene(folder, kafka, chance, mutant=mutant) as scene:
        scene.start_worker()
        scene.written.pause_seconds = 0
        scene.until(lambda: scene.written.records >= records, "write so many")
        scene.written.stop_writing()
        scene.catches_up()
        turns = Turns(scene, scene.written.records)
        longest = min(_LONGEST_TURN, records // len(who))
        try:
            turns.turn("native", records // 20)  # so that the group is known here
            while turns.left:
                chance.shuffle(who)
                for each in who:
                    if turns.left:
                        turns.turn(each, chance.randint(1, longest))
        except StandsStill as still:
            return [str(still)]
        print(turns.had_a_turn)
        often = [place for place, times in turns.done.items() if times > 1]
        wrong = [f"{len(often)} records were done more than once, as {often[0]}"] if often else []
        return wrong or audit_says(
            scene.folder, scene.topic, kafka.bootstrap_servers, groups=turns.group
        )


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("records", [20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_each_record_is_processed_once(
    tmp_path: Path, kafka: Kafka, chance: random.Random, records: int
) -> None:
    assert by_turns(tmp_path, kafka, chance, records, list(CONSUMERS)) == []


def test_turns_find_the_mutant(tmp_path: Path, kafka: Kafka, chance: random.Random) -> None:
    who = [each for each in CONSUMERS if each not in _OWN_TOOLS]
    wrong = by_turns(tmp_path, kafka, chance, 5000, who, "consumers_unheard")
    assert any("more than once" in each for each in wrong), wrong
