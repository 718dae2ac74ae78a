"""Random joins, leaves, kills and pauses of members of both kinds: nothing is skipped, what was
acknowledged does not come again, and nothing comes twice where nobody is killed.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.drills.joint.consumers import NativeReading, Reading
from tests.drills.joint.group import JAVA, PROTOCOLS, Joint, joint_host
from tests.support.kafka import Kafka

PARTITIONS = 12
SECONDS = 12.0
FULL_SECONDS = 600.0
MOST = 4  # consumers of a kind


def in_kafka(joint: Joint, name: str, protocol: str) -> Reading:
    """A Kafka consumer: of librdkafka, or of Java."""
    if protocol in JAVA:
        return joint.in_java(name, *JAVA[protocol])
    return joint.in_kafka(name, PROTOCOLS[protocol])


def play(joint: Joint, protocol: str, chance: random.Random, seconds: float, kills: bool) -> None:
    """What is done to the group, to its end: all that was published is processed."""
    running: list[Reading] = [joint.native("n0"), in_kafka(joint, "k0", protocol)]
    made, until_s = 1, time.monotonic() + seconds
    while time.monotonic() < until_s:
        joint.publish(chance.randrange(1, 60))
        done = len(joint.ledger.counts())
        kind = chance.randrange(100)
        if kind < 25 and len(running) < 2 * MOST:
            name, made = str(made), made + 1
            native = chance.random() < 0.5
            how = {"session_timeout_seconds": 2} if kills else {"auto_ack": chance.random() < 0.5}
            running.append(
                joint.native(f"n{name}", **how) if native else in_kafka(joint, f"k{name}", protocol)
            )
        elif kind < 45 and len(running) > 1:
            running.pop(chance.randrange(len(running))).close()
        elif kind < 50 and kills:
            joint.host.kill_worker()
        elif kind < 52 and kills:
            joint.host.kill()
            joint.host.start()
        elif kind < 60 and kills:
            natives = [each for each in running if isinstance(each, NativeReading)]
            if len(running) > 1 and natives:
                victim = chance.choice(natives)
                running.remove(victim)
                victim.vanish()
        elif kind < 65 and kills:
            paused = chance.choice(running)
            paused.pause()
            joint.publish(10)
            paused.go_on()
        joint.until_processed(min(done + 30, joint.published))
    joint.until_nothing_is_left()


def drill(
    kafka: Kafka, folder: Path, protocol: str, seconds: float, *, kills: bool, mutant: str = ""
) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    with joint_host(folder / "log", kafka, mutant) as host, ExitStack() as ends:
        joint = Joint(kafka, host, ends, PARTITIONS)
        joint.begin()
        play(joint, protocol, random.Random(seed), seconds, kills)
        joint.check()
        if not kills:
            twice = joint.ledger.twice() - joint.ledger.given_up
            by = [entry for entry in joint.ledger.entries if entry[2] in twice]
            assert not twice, f"processed more than once: {by}"


@pytest.mark.parametrize("protocol", ["kip-848"])
def test_nothing_is_skipped_and_nothing_comes_twice(
    kafka: Kafka, tmp_path: Path, protocol: str
) -> None:
    drill(kafka, tmp_path, protocol, SECONDS, kills=False)


def test_nothing_is_skipped_whoever_is_killed(kafka: Kafka, tmp_path: Path) -> None:
    drill(kafka, tmp_path, "range", SECONDS, kills=True)


@pytest.mark.full
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "mutant", ["nobody_is_waited_for", "begins_where_it_was_known_to_be", "lets_go_at_once"]
)
def test_the_drill_finds_the_mutant(kafka: Kafka, tmp_path: Path, mutant: str) -> None:
    with pytest.raises(AssertionError, match=r"more than once|skipped|processed again"):
        until_found(kafka, tmp_path, mutant)


def until_found(kafka: Kafka, folder: Path, mutant: str) -> None:
    """Some rounds: that a handover meets something under way is a matter of chance."""
    for attempt in range(8):
        (folder / str(attempt)).mkdir()
        drill(kafka, folder / str(attempt), "range", SECONDS, kills=False, mutant=mutant)


@pytest.mark.full
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kills", [False, True], ids=["calm", "kills"])
@pytest.mark.parametrize("protocol", [*PROTOCOLS, *JAVA])
def test_for_long(kafka: Kafka, tmp_path: Path, protocol: str, kills: bool) -> None:
    drill(kafka, tmp_path, protocol, FULL_SECONDS, kills=kills)
