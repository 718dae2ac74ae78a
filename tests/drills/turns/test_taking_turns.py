"""A native consumer and Kafka consumers take turns in one group: each record is processed once.

Each way to be not quite exact is a mutant of the host, and the drill finds it.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import TopicPartition

from tests.drills.shares import first_of
from tests.support.groups import PROTOCOLS
from tests.support.handing_over import PARTITIONS, Mirrored, each_once
from tests.support.kafka import Kafka

TURNS = 8
FULL_TURNS = 200
ROUNDS = 12
MUTANTS = {
    "a first poll does not ask Kafka": """
from duolog.bridge.first_looks import FirstLooks
FirstLooks.is_due = lambda *_: False
""",
    "after a settled ack nobody asks": """
from duolog.bridge.first_looks import FirstLooks
FirstLooks.handed_over = lambda *_: None
""",
    "an ack is settled before Kafka is there": """
from duolog.bridge.groups import HostGroups
from duolog.log.model import Settled
async def at_once(*_): return Settled()
HostGroups._settled = at_once
""",
}


def take_turns(mirrored: Mirrored, turns: int, seed: int) -> None:
    """In portions of random size, by members of both protocols."""
    random = Random(seed)
    taken = []
    records = PARTITIONS * turns * 4
    mirrored.publish_and_mirror(records)
    for turn in range(turns):
        portion = random.randrange(1, 40)
        if turn % 2:
            taken += mirrored.native_turn(portion)
        else:
            taken += mirrored.kafka_turn(
                portion, **PROTOCOLS[random.choice(["classic", "consumer"])]
            )
    taken += mirrored.native_turn(records)
    each_once(taken, records)
    assert mirrored.native_turn(10) == mirrored.kafka_turn(10) == []


def take_turns_at_once(mirrored: Mirrored, rounds: int) -> None:
    """The same with nothing at all between commit and poll, and between ack and look."""
    mirrored.publish_and_mirror(3 * rounds)
    with closing(mirrored.consumer()) as reader:
        reader.assign([TopicPartition(mirrored.topic, 0, 0)])  # a member would take its time
        for begin in range(0, 3 * rounds, 3):
            taken = mirrored.native_turn(1)
            assert taken == [(0, begin)]
            (held,) = reader.committed([TopicPartition(mirrored.topic, 0)])
            assert held.offset == begin + 1
            mirrored.commit(reader, begin + 3)


def test_taking_turns_is_exact(tmp_path: Path, kafka: Kafka) -> None:
    with Mirrored(tmp_path / "log", kafka) as mirrored:
        take_turns(mirrored, TURNS, 1)
        assert mirrored.metric("duolog_polls_unsettled_total") == 0


@pytest.mark.full
@pytest.mark.parametrize("seed", [2, 3])
def test_taking_many_turns_is_exact(tmp_path: Path, kafka: Kafka, seed: int) -> None:
    with Mirrored(tmp_path / "log", kafka) as mirrored:
        take_turns(mirrored, FULL_TURNS, seed)


def test_turns_at_once_are_exact(tmp_path: Path, kafka: Kafka) -> None:
    with Mirrored(tmp_path / "log", kafka, partitions=1) as mirrored:
        take_turns_at_once(mirrored, ROUNDS)


@pytest.mark.parametrize("name", first_of(MUTANTS))
def test_turns_at_once_find_the_mutant(tmp_path: Path, kafka: Kafka, name: str) -> None:
    with (
        Mirrored(tmp_path / "log", kafka, partitions=1, mutant=MUTANTS[name]) as mirrored,
        pytest.raises(AssertionError, match=r"\(0, |offset"),
    ):
        take_turns_at_once(mirrored, ROUNDS)
