"""A real broker: started, filled, read, stopped, killed, and gone when its parent is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pydantic import SecretStr

from duolog.bridge.kafka.local import Door, LocalKafka, Security
from duolog.bridge.kafka.local.ports import free_port
from duolog.errors import LocalKafkaFailed, PortTaken
from tests.support import kafka as support
from tests.support.kafka import Kafka, NoKafka, OwnKafka, new_topic

DEADLINE_SECONDS = 90.0
DUOLOG = [sys.executable, "-m", "duolog.cli"]
FAST_START = ("-XX:TieredStopAtLevel=1",)


def produce(servers: str, topic: str, values: list[bytes]) -> None:
    """Each of them is acknowledged."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0})
    failures: list[Any] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(DEADLINE_SECONDS) == 0
    assert failures == [None] * len(values)


def consume(servers: str, topic: str, count: int, settings: Any = None) -> list[bytes]:
    """The first records of partition 0."""
    with _consumer(servers, "reader", settings) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return _read(consumer, count)


@contextmanager
def _consumer(servers: str, group: str, more: Any = None) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **(more or {}), "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()


def _read(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(cast("bytes", message.value()))
    return found


def ends(pid: int) -> bool:
    """Whether a process, of whatever parent, ends before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:  # nobody waits for orphans in a container
                return True
            process.wait(0.1)
        except psutil.NoSuchProcess:
            return True
        except psutil.TimeoutExpired:
            continue
    return False


def values(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_what_is_produced_is_consumed_by_groups_too(kafka: Kafka) -> None:
    topic = kafka.new_topic(partitions=2)
    produce(kafka.bootstrap_servers, topic, values(0, 100))
    with _consumer(kafka.bootstrap_servers, kafka.new_group()) as consumer:
        consumer.subscribe([topic])
        assert sorted(_read(consumer, 100)) == sorted(values(0, 100))


def test_transactions_work(kafka: Kafka) -> None:
    topic = kafka.new_topic()
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": kafka.new_group()}
    )
    producer.init_transactions(DEADLINE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    producer.commit_transaction(DEADLINE_SECONDS)
    assert consume(kafka.bootstrap_servers, topic, 1) == [b"in a transaction"]


def test_doors_are_where_they_were_after_a_restart(
    own_kafka: OwnKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = free_port()  # so few to choose from that ports chosen for one broker would meet
    monkeypatch.setattr("duolog.bridge.kafka.local.ports._LOWEST", base)
    monkeypatch.setattr("duolog.bridge.kafka.local.ports._HIGHEST", base + 6)
    users = {"ann": SecretStr("ann-alone-knows")}
    security = Security((Door("SSL"), Door("SASL_SSL")), users=users)
    kafka = own_kafka(tmp_path / "kafka", java_options=FAST_START, security=security)
    ca = {"security.protocol": "SSL", "ssl.ca.location": str(kafka.authority.certificate_file)}
    produce(kafka.bootstrap_servers, "doors", values(0, 10))
    first = kafka.address_of("SSL"), kafka.address_of("SASL_SSL")
    kafka.kill()
    kafka.start()
    assert (kafka.address_of("SSL"), kafka.address_of("SASL_SSL")) == first
    assert consume(first[0], "doors", 10, ca) == values(0, 10)
    login = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ann"}
    login |= {"sasl.password": "ann-alone-knows", "security.protocol": "SASL_SSL"}
    assert consume(first[1], "doors", 10, {**ca, **login}) == values(0, 10)
    assert (kafka.folder / "broker.properties").stat().st_mode & 0o77 == 0  # it holds passwords


def test_stop_and_kill_keep_what_was_acknowledged(own_kafka: OwnKafka, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with ümlaut"
    kafka = own_kafka(folder, java_options=FAST_START)
    servers, first_pid = kafka.bootstrap_servers, kafka.pid
    topic = new_topic(servers)
    produce(servers, topic, values(0, 50))
    kafka.restart()
    assert ends(first_pid)
    assert kafka.bootstrap_servers == servers
    assert consume(servers, topic, 50) == values(0, 50)
    produce(servers, topic, values(50, 50))
    killed = kafka.pid
    kafka.kill()
    assert ends(killed)
    assert not kafka.running
    kafka.start()
    assert consume(servers, topic, 100) == values(0, 100)
    kafka.start()  # it runs: nothing happens
    kafka.close()
    assert folder.is_dir()


def test_two_at_once_know_nothing_of_each_other_and_a_broker_guards_its_folder(
    kafka: Kafka, own_kafka: OwnKafka
) -> None:
    own = own_kafka(java_options=FAST_START)
    assert own.bootstrap_servers != kafka.bootstrap_servers
    topic = new_topic(own.bootstrap_servers)
    assert topic not in kafka.admin().list_topics(timeout=DEADLINE_SECONDS).topics
    with pytest.raises(LocalKafkaFailed, match=r"Another broker uses .*: stop it"):
        own_kafka(own.folder, java_options=FAST_START)
    produce(own.bootstrap_servers, topic, values(0, 1))


def test_a_frozen_broker_is_ended_too(own_kafka: OwnKafka) -> None:
    kafka = own_kafka(stop_seconds=1.0, java_options=FAST_START)
    pid = kafka.pid
    os.kill(pid, signal.SIGSTOP)
    kafka.stop()
    assert ends(pid)


def test_a_port_that_is_taken_at_the_last_moment_is_changed(
    own_kafka: OwnKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        chosen = iter([other.getsockname()[1]])
        monkeypatch.setattr(
            "duolog.bridge.kafka.local.broker.free_port",
            lambda used=(): next(chosen, None) or free_port(used),
        )
        assert own_kafka(java_options=FAST_START).port != other.getsockname()[1]


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port}"), LocalKafka(tmp_path / "k", port=port):
            pass


def test_a_broker_that_cannot_start_shows_why() -> None:
    refused = LocalKafka(properties={"process.roles": "nonsense"})
    with pytest.raises(LocalKafkaFailed, match="process\\.roles"), refused:
        pass
    ended = LocalKafka(properties={"ssl.keystore.type": "none", "log.segment.bytes": "-1"})
    with pytest.raises(LocalKafkaFailed, match=r"log\.segment\.bytes"), ended:
        pass


def test_a_broker_that_is_not_ready_in_time_is_ended_and_its_folder_removed() -> None:
    late = LocalKafka(start_seconds=0.2)
    with pytest.raises(LocalKafkaFailed, match="was not ready within") as failure, late:
        pass
    folder = str(failure.value).split(" in ")[1].split(" was ")[0]
    assert not Path(folder).exists()


def test_a_broker_that_ends_by_itself_is_noticed(own_kafka: OwnKafka) -> None:
    kafka = own_kafka(java_options=FAST_START)
    os.kill(kafka.pid, signal.SIGKILL)
    with pytest.raises(LocalKafkaFailed, match="ended with 137"):
        kafka.wait()
    assert not kafka.running


@contextmanager
def _command(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """`duolog kafka`, and what it says when it is ready."""
    process = subprocess.Popen(
        [*DUOLOG, "kafka", "--port", "0", "--json", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    with process:
        try:
            line = cast("IO[bytes]", process.stdout).readline()
            assert line, cast("IO[bytes]", process.stderr).read().decode()
            yield process, json.loads(line)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_in_order_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with _command(tmp_path) as (process, told):
        assert Path(told["log"]).exists()
        topic = new_topic(told["bootstrap_servers"])
        produce(told["bootstrap_servers"], topic, values(0, 3))
        process.send_signal(number)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert cast("IO[bytes]", process.stderr).read() == b""
    assert ends(told["pid"])
    assert not Path(told["data"]).exists()


def test_nothing_runs_on_when_the_parent_is_killed(tmp_path: Path) -> None:
    with _command(tmp_path, "--data", str(tmp_path / "k")) as (process, told):
        keeper = psutil.Process(told["pid"]).ppid()
        assert psutil.Process(keeper).ppid() == process.pid
        process.kill()
        process.wait()
        assert ends(told["pid"])
        assert ends(keeper)
    log = (tmp_path / "k" / "server.log").read_text()
    assert "Terminating process due to signal SIGTERM" in log  # it was asked, not killed


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_nothing_runs_on_when_the_keeper_is_killed(own_kafka: OwnKafka) -> None:
    kafka = own_kafka(java_options=FAST_START)
    pid = kafka.pid
    os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
    assert ends(pid)
    assert not kafka.running


def test_the_command_says_what_is_wrong_in_json(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        failed = _run(tmp_path, "--port", port, "--json")
    assert json.loads(failed.stderr)["code"] == "PortTaken"
    failed = _run(tmp_path, "--json", PATH=str(tmp_path), JAVA_HOME="")
    assert failed.returncode == 1
    assert json.loads(failed.stderr)["code"] == "JavaNotFound"
    assert failed.stdout == b""


def test_the_command_only_fetches_when_told(tmp_path: Path) -> None:
    mirror = "http://127.0.0.1:9/nothing"
    told = json.loads(_run(tmp_path, "--fetch", "--json", DUOLOG_MAVEN_URL=mirror).stdout)
    assert (Path(told["jars"]) / "kafka_2.13-4.1.1.jar").exists()
    failed = _run(
        tmp_path, "--fetch", DUOLOG_MAVEN_URL=mirror, DUOLOG_CACHE=str(tmp_path / "empty")
    )
    assert failed.returncode == 1
    assert failed.stderr.decode().startswith("Error: Could not fetch kafka_2.13 4.1.1.")


def _run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*DUOLOG, "kafka", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **variables},
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def _no_source(reason: str) -> support.Source:
    def source() -> AbstractContextManager[str]:
        raise NoKafka(reason)

    return source


@contextmanager
def _some_source() -> Iterator[str]:
    yield "host:1"


def test_tests_take_the_first_source_that_has_a_broker() -> None:
    sources = {"x": _no_source("no x"), "y": _some_source, "z": _no_source("not asked")}
    with ExitStack() as stack:
        assert support.choose(sources, stack) == Kafka("host:1", "y")


def test_tests_fail_with_all_reasons_when_there_is_no_kafka() -> None:
    with ExitStack() as stack, pytest.raises(NoKafka) as failure:
        support.choose({"x": _no_source("no x"), "y": _no_source("no y")}, stack)
    for part in ("DUOLOG_TEST_KAFKA=host:port", "- x: no x", "- y: no y"):
        assert part in str(failure.value)


def test_a_named_broker_that_does_not_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "DEADLINE_SECONDS", 0.5)
    with pytest.raises(NoKafka, match=r"127\.0\.0\.1:9, which does not answer"):
        support.named("127.0.0.1:9")


def test_a_docker_command_without_an_engine_is_no_docker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not support.docker_answers()
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    assert not support.docker_answers()
