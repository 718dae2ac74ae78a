"""Members of a group of both kinds are killed, late or fenced: what was not acknowledged comes to
who has its partition next, and nothing else comes again.

Each fault has its mutants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.drills.joint import faults
from tests.drills.joint.group import Joint, JointHost, joint_host
from tests.drills.shares import first_of
from tests.support.kafka import DEADLINE_SECONDS, Kafka

_SHORT_PATIENCE_SECONDS = 20.0  # for a mutant that lets a group stand still

Fault = Callable[[Joint, str], None]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[JointHost]:
    with joint_host(tmp_path_factory.mktemp("joint") / "log", kafka) as started:
        yield started


@contextmanager
def group_of(
    kafka: Kafka, host: JointHost, patience_seconds: float = DEADLINE_SECONDS
) -> Iterator[Joint]:
    with ExitStack() as ends:
        joint = Joint(kafka, host, ends, patience_seconds=patience_seconds)
        joint.begin()
        yield joint


@pytest.mark.parametrize(
    ("fault", "protocol"),
    [
        (faults.kafka_consumer_killed, "kip-848"),
        pytest.param(faults.kafka_consumer_killed, "range", marks=pytest.mark.full),
        pytest.param(faults.kafka_consumer_killed, "cooperative-sticky", marks=pytest.mark.full),
        (faults.polls_too_rarely, "range"),
        (faults.polls_too_rarely, "kip-848"),
        (faults.acks_after_revocation, "range"),
        (faults.acks_after_revocation, "kip-848"),
        pytest.param(faults.acks_after_revocation, "cooperative-sticky", marks=pytest.mark.full),
    ],
)
def test_only_what_was_not_acknowledged_comes_again(
    kafka: Kafka, host: JointHost, fault: Fault, protocol: str
) -> None:
    with group_of(kafka, host) as joint:
        fault(joint, protocol)


@pytest.mark.parametrize(
    ("fault", "mutant", "sign"),
    first_of(
        [
            (faults.acks_after_revocation, "acks_of_whoever_asks", "rather than"),
            (faults.kafka_consumer_killed, "has_only_what_came_last", "all records"),
            (faults.polls_too_rarely, "its_proxy_stays", "kafka-one has all"),
            (faults.polls_too_rarely, "sessions_do_not_end", "kafka-one has all"),
        ]
    ),
)
def test_the_drill_finds_the_mutant(
    kafka: Kafka, tmp_path: Path, fault: Fault, mutant: str, sign: str
) -> None:
    with (
        joint_host(tmp_path / "log", kafka, mutant) as host,
        group_of(kafka, host, _SHORT_PATIENCE_SECONDS) as joint,
        pytest.raises(AssertionError, match=sign),
    ):
        fault(joint, "kip-848")
