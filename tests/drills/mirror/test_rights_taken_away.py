"""Rights are taken from the mirror's user while it mirrors, and given back, again and again.

Each time the partition says that it is refused, and stands; when the right is there again it goes
on by itself; and in the end an independent consumer finds each record once, in order. A writer goes
on all the time.

Mutants: refused_is_retried (it never says so), refused_is_skipped (as if Kafka did not take the
records), refused_for_good (it never looks again).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType

from duolog.bridge.kafka.mirror import reactions
from duolog.bridge.kafka.mirror.reactions import Reaction
from tests.drills.mirror.writing import PARTITIONS, WrittenLog
from tests.drills.shares import first_of
from tests.support import mirror_runner
from tests.support.mirror_runner import QUICK, RunningMirror, read_all, read_log
from tests.support.secured import SecuredKafka

_NOT_ALLOWED = 29
_MUTANT_SECONDS = 10.0
_PAUSE_SECONDS = 0.05  # between writes: what counts is that there are some all the time
_RIGHTS = (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)


class Rights:
    """What a user may do with one topic."""

    def __init__(self, kafka: SecuredKafka, user: str, topic: str) -> None:
        self._kafka, self._user, self._topic = kafka, user, topic
        kafka.allow(user, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)
        for right in (*_RIGHTS, AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS):
            self.give(right)

    def give(self, right: AclOperation) -> None:
        self._kafka.allow(self._user, ResourceType.TOPIC, self._topic, right)

    def take(self, right: AclOperation) -> None:
        self._kafka.forbid(self._user, ResourceType.TOPIC, self._topic, right)


def taken_away_again_and_again(
    folder: Path, kafka: SecuredKafka, times: int, chance: random.Random, halts_seconds: float
) -> None:
    """Take a right away so often. Raises AssertionError for what is wrong."""
    user = kafka.new_user()
    topic = f"rights-{user}"
    rights = Rights(kafka, user, topic)
    way = kafka.way("SASL_SSL/SCRAM-SHA-512").but(sasl_username=user)
    options = replace(QUICK, retry_halted_seconds=halts_seconds)
    with (
        WrittenLog(folder / "log", topic, chance, _PAUSE_SECONDS) as written,
        RunningMirror(written.log, way.bootstrap_servers, way.settings, options) as mirror,
    ):
        for turn in range(times):
            mirror.caught_up(topic)
            # Without the right to write every partition with something to send is refused.
            rights.take(AclOperation.WRITE)
            other = chance.choice([*_RIGHTS[1:], None]) if turn else None
            if other is not None:
                rights.take(other)
            for partition in range(PARTITIONS):
                stands = mirror.halted(topic, partition)
                assert stands.trouble_code == "MirrorRefused", stands
                assert "Allow its user" in str(stands.trouble)
            if other is not None:
                rights.give(other)
            rights.give(AclOperation.WRITE)
        written.stop_writing()
        mirror.caught_up(topic)
        for partition in range(PARTITIONS):
            there = read_all(kafka.plain.bootstrap_servers, topic, partition)
            ours = read_log(written.log, topic, partition)
            assert there == ours, f"partition {partition}: {len(there)} records of {len(ours)}"
            status = mirror.status(topic, partition)
            assert (status.skipped, status.trouble) == (0, None), status


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", [2, pytest.param(60, marks=pytest.mark.full)])
def test_nothing_is_lost_or_doubled_when_rights_come_and_go(
    tmp_path: Path, secured: SecuredKafka, chance: random.Random, times: int
) -> None:
    taken_away_again_and_again(tmp_path, secured, times, chance, QUICK.retry_halted_seconds)


def _reacts(reaction: Reaction) -> Callable[[pytest.MonkeyPatch], float]:
    def apply(monkeypatch: pytest.MonkeyPatch) -> float:
        monkeypatch.setitem(reactions._BY_ERROR, _NOT_ALLOWED, reaction)
        return QUICK.retry_halted_seconds

    return apply


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], float]] = {
    "refused_is_retried": _reacts(Reaction.LOOK_AGAIN),
    "refused_is_skipped": _reacts(Reaction.JUDGE),
    "refused_for_good": lambda _: math.inf,
}
"""Each answers after how many seconds a halted partition looks again."""


@pytest.mark.parametrize("mutant", first_of(sorted(MUTANTS)))
def test_rights_find_the_mutant(
    tmp_path: Path,
    secured: SecuredKafka,
    chance: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    mutant: str,
) -> None:
    halts_seconds = MUTANTS[mutant](monkeypatch)
    monkeypatch.setattr(mirror_runner, "DEADLINE_SECONDS", _MUTANT_SECONDS)
    with pytest.raises(AssertionError):
        taken_away_again_and_again(tmp_path, secured, 1, chance, halts_seconds)
