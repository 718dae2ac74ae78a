"""A real Kafka for tests: never a fake one, and never skipped.

`kafka` is a broker for the whole run: DUOLOG_TEST_KAFKA=host:port; else testcontainers, when a
Docker engine answers; else the local one. `own_kafka` makes local brokers for one test, to be
stopped and killed.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from duolog.bridge.kafka.local import LocalKafka
from duolog.errors import DuologError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

VARIABLE = "DUOLOG_TEST_KAFKA"
IMAGE = "confluentinc/cp-kafka:8.1.0"  # Kafka 4.1
DEADLINE_SECONDS = 60.0
START_SECONDS = 180.0  # on a machine that is busy with other tests
_DOCKER_SECONDS = 20.0
_STARTED = pytest.StashKey["list[str]"]()

OwnKafka = Callable[..., LocalKafka]
Source = Callable[[], AbstractContextManager[str]]


class NoKafka(Exception):
    """No broker from this source; says why."""


@dataclass(frozen=True)
class Kafka:
    """A broker that takes work. Topics and groups are to be new for each test."""

    bootstrap_servers: str
    source: str

    def admin(self) -> AdminClient:
        return admin_of(self.bootstrap_servers)

    def new_topic(self, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """A topic that no other test has."""
        return new_topic(self.bootstrap_servers, partitions, settings)

    def new_group(self) -> str:
        """The name of a group that no other test has."""
        return f"group-{uuid.uuid4().hex[:12]}"


def admin_of(bootstrap_servers: str) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap_servers})


def new_topic(
    bootstrap_servers: str, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> str:
    """Make a topic with a name of its own, and wait until it is there.

    Kafka deletes none of its records, however old their times are, unless the settings say so.
    """
    from confluent_kafka.cimpl import NewTopic

    name = f"topic-{uuid.uuid4().hex[:12]}"
    kept = {"retention.ms": "-1"}
    wanted = NewTopic(name, partitions, 1, config={**kept, **(settings or {})})
    admin = admin_of(bootstrap_servers)  # kept: what it was asked ends with it
    (made,) = admin.create_topics([wanted]).values()
    made.result(DEADLINE_SECONDS)
    return name


def choose(sources: Mapping[str, Source], stack: ExitStack) -> Kafka:
    """The first source that has a broker; raises NoKafka with the reasons of all."""
    reasons = []
    for name, source in sources.items():
        try:
            return Kafka(stack.enter_context(source()), name)
        except NoKafka as error:
            reasons.append(f"- {name}: {error}")
    raise NoKafka(
        f"Tests need a real Kafka, and there is none. Name one with {VARIABLE}=host:port, or make "
        "one of these possible:\n" + "\n".join(reasons)
    )


@contextmanager
def in_container() -> Iterator[str]:
    """A broker in Docker."""
    if not docker_answers():
        raise NoKafka("no Docker engine answers")
    if util.find_spec("testcontainers") is None:
        raise NoKafka("a Docker engine answers: pip install 'testcontainers[kafka]' to use it")
    container: Any = import_module("testcontainers.kafka").KafkaContainer(IMAGE).with_kraft()
    for name in ("REPLICATION_FACTOR", "MIN_ISR"):
        container.with_env(f"KAFKA_TRANSACTION_STATE_LOG_{name}", "1")
    try:
        container.start()
    except Exception as error:
        raise NoKafka(f"the container did not start: {error}") from error
    try:
        yield str(container.get_bootstrap_server())
    finally:
        container.stop()


def docker_answers() -> bool:
    """Whether there is an engine, not only the command."""
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DOCKER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


@contextmanager
def on_this_machine() -> Iterator[str]:
    """The product's own local broker."""
    broker = LocalKafka(start_seconds=START_SECONDS)
    try:
        broker.start()
    except DuologError as error:
        broker.close()
        raise NoKafka(str(error)) from error
    with broker:
        yield broker.bootstrap_servers


def named(bootstrap_servers: str) -> Kafka:
    """The broker that the variable names; when it does not answer, no other is taken."""
    from confluent_kafka import KafkaException

    try:
        admin_of(bootstrap_servers).list_topics(timeout=DEADLINE_SECONDS)
    except KafkaException as error:
        raise NoKafka(
            f"{VARIABLE} is {bootstrap_servers}, which does not answer: {error}"
        ) from error
    return Kafka(bootstrap_servers, VARIABLE)


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> Iterator[Kafka]:
    """A broker for all tests of this run."""
    variable = os.environ.get(VARIABLE)
    with ExitStack() as stack:
        try:
            if variable:
                chosen = named(variable)
            else:
                sources = {"testcontainers": in_container, "duolog kafka": on_this_machine}
                chosen = choose(sources, stack)
        except NoKafka as error:
            pytest.fail(str(error), pytrace=False)
        used = f"{chosen.bootstrap_servers} ({chosen.source})"
        pytestconfig.stash.setdefault(_STARTED, []).append(used)
        yield chosen


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[OwnKafka]:
    """Starts local brokers with the arguments of LocalKafka; all are stopped after the test."""
    with ExitStack() as stack:

        def start(folder: Path | None = None, **options: Any) -> LocalKafka:
            place = tmp_path / f"kafka-{uuid.uuid4().hex[:8]}" if folder is None else folder
            return stack.enter_context(
                LocalKafka(place, **{"start_seconds": START_SECONDS, **options})
            )

        yield start


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes that run the tests
        session.config.workeroutput["kafka"] = session.config.stash.get(_STARTED, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    used = getattr(node, "workeroutput", {}).get("kafka", [])
    node.config.stash.setdefault(_STARTED, []).extend(used)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for used in config.stash.get(_STARTED, []):
        terminalreporter.write_line(f"kafka: {used}")
