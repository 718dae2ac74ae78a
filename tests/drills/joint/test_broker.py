"""The broker ends while a group of both kinds works, in order or by kill -9, and comes back: the
group shares out anew, nothing is lost, and nothing comes again that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from duolog.bridge.kafka.local import LocalKafka
from tests.drills.joint import faults
from tests.drills.joint.faults import Ending
from tests.drills.joint.group import PROTOCOLS, Joint, joint_host
from tests.drills.shares import first_of
from tests.support.kafka import START_SECONDS, Kafka


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    with LocalKafka(
        tmp_path_factory.mktemp("kafka"),
        java_options=["-XX:TieredStopAtLevel=1"],  # it is started often
        start_seconds=START_SECONDS,
    ) as broker:
        yield broker


def play(broker: LocalKafka, folder: Path, end: Ending, protocol: str, mutant: str = "") -> None:
    kafka = Kafka(broker.bootstrap_servers, "its own")
    with joint_host(folder / "log", kafka, mutant) as host, ExitStack() as ends:
        joint = Joint(kafka, host, ends)
        joint.begin()
        faults.broker_away(joint, broker, end, protocol)


@pytest.mark.parametrize(
    ("end", "protocol"),
    [
        (LocalKafka.kill, "kip-848"),
        (LocalKafka.stop, "range"),
        *(
            pytest.param(end, protocol, marks=pytest.mark.full)
            for end in (LocalKafka.kill, LocalKafka.stop)
            for protocol in PROTOCOLS
        ),
    ],
)
def test_what_was_acknowledged_does_not_come_again(
    broker: LocalKafka, tmp_path: Path, end: Ending, protocol: str
) -> None:
    play(broker, tmp_path, end, protocol)


@pytest.mark.parametrize(("end", "protocol"), first_of([(LocalKafka.kill, "kip-848")]))
def test_the_drill_finds_the_mutant(
    broker: LocalKafka, tmp_path: Path, end: Ending, protocol: str
) -> None:
    with pytest.raises(AssertionError, match="was confirmed"):
        play(broker, tmp_path, end, protocol, "kafka_is_not_waited_for")
