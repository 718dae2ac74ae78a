"""SIGTERM ends `duolog serve` within five seconds, wherever Kafka is."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import pytest

from duolog import open_log
from duolog.bridge.kafka.local import LocalKafka
from duolog.log.model import Record, TopicSettings
from duolog.reach import reach
from tests.support.kafka import OwnKafka
from tests.support.served import ServedProcess, nobody_answers, nobody_listens, until

ENDS_WITHIN_SECONDS = 5.0  # the promise
CONSUME = b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
PARTITIONS = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    with open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=PARTITIONS))
        publish(log.publish, 10)
        log.ack("readers", "orders", 0, 0)
    return folder


def publish(send: Callable[..., object], count: int) -> None:
    for partition in range(PARTITIONS):
        send("orders", [Record(b"%d" % n, partition=partition) for n in range(count)])


def ends(host: ServedProcess) -> None:
    """In order, and with its worker."""
    worker = host.worker()
    assert host.terminate(within_seconds=ENDS_WITHIN_SECONDS) == 0
    assert host.journal()[-1]["event"] == "host.stopped"
    assert not host.journal("worker.killed")
    assert worker is None or psutil.wait_procs([worker], ENDS_WITHIN_SECONDS)[1] == []


@pytest.mark.parametrize("away", [nobody_listens, nobody_answers])
def test_it_ends_where_kafka_has_never_answered(
    folder: Path, away: Callable[[], AbstractContextManager[str]]
) -> None:
    with away() as address, ServedProcess(folder, "--bootstrap-servers", address) as host:
        until(lambda: host.ready()[1]["workers"]["kafka"]["state"] == "running")
        ends(host)


def test_it_ends_while_its_worker_only_begins(folder: Path) -> None:
    with nobody_answers() as address, ServedProcess(folder, "--bootstrap-servers", address) as host:
        ends(host)


def test_it_ends_while_another_mirrors_the_log(folder: Path) -> None:
    """A worker that was left behind holds the mirror's lock."""
    with nobody_answers() as address, ServedProcess(folder, "--bootstrap-servers", address) as host:
        until(lambda: host.ready()[1]["workers"]["kafka"]["state"] == "running")
        left = until(host.worker)
        left.suspend()  # it can neither end nor let go
        try:
            os.kill(host.process.pid, signal.SIGKILL)
            host.process.wait(ENDS_WITHIN_SECONDS)
            with ServedProcess(folder, "--bootstrap-servers", address) as second:
                until(second.worker)
                until(lambda: (found := second.worker()) and found.num_threads() > 3)
                ends(second)
        finally:
            left.kill()


def gets_records(host: ServedProcess, member: dict[str, object]) -> bool:
    """Whether a native consumer has got records, as a member of a group that Kafka shares out."""
    asked = {"topic": "orders", "group_id": "members", "timeout_seconds": 0, **member}
    status, told = host.ask("/v1/api/topics/consume", asked)
    member.update({name: told[name] for name in ("member_id", "generation") if name in told})
    return bool(status == 200 and told["messages"])


@contextmanager
def frozen(broker: LocalKafka) -> Iterator[None]:
    """As a machine that hangs: it takes connections, and answers nothing."""
    pid = broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def killed(broker: LocalKafka) -> Iterator[None]:
    broker.kill()
    yield


@pytest.mark.parametrize("goes_away", [frozen, killed])
def test_it_ends_where_kafka_went_away_in_the_middle_of_work(
    folder: Path,
    own_kafka: OwnKafka,
    goes_away: Callable[[LocalKafka], AbstractContextManager[None]],
) -> None:
    """With records on their way, a group to be moved, and a native member of a group in Kafka."""
    broker = own_kafka()
    with ServedProcess(folder, "--bootstrap-servers", broker.bootstrap_servers) as host:

        def mirroring() -> bool:
            worker = host.ready()[1]["workers"]["kafka"]
            return bool(worker.get("partitions") == {"mirroring": PARTITIONS})

        until(mirroring)
        member: dict[str, object] = {}
        until(lambda: gets_records(host, member))
        with goes_away(broker), reach(folder) as log:
            publish(log.publish, 1000)
            log.ack("readers", "orders", 5, 0)
            ends(host)


@contextmanager
def client(host: ServedProcess) -> Iterator[socket.socket]:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(ENDS_WITHIN_SECONDS)
        connection.connect(("127.0.0.1", int(host.url.rpartition(":")[2])))
        yield connection


def ends_in_silence(host: ServedProcess) -> None:
    """In order, and nothing went wrong."""
    ends(host)
    assert not [told for told in host.journal() if told["level"] in {"warning", "error"}]


@pytest.mark.parametrize("last_words", [b"Content-Length: 1000\r\n\r\n{", b"Content-Le"])
@pytest.mark.parametrize("path", [b"/v1/api/topics/publish", b"/registry/subjects/s/versions"])
def test_a_client_in_the_middle_of_its_request_is_told_and_keeps_nobody(
    folder: Path, path: bytes, last_words: bytes
) -> None:
    with ServedProcess(folder) as host, client(host) as half:
        half.sendall(b"POST %b HTTP/1.1\r\nHost: localhost\r\n" % path)
        half.sendall(b"Content-Type: application/json\r\n" + last_words)
        assert host.ready()[0] == 200  # asked later, so the half request has been seen
        ends_in_silence(host)
        with half.makefile("rb") as answer:
            said = answer.read()
        if last_words.endswith(b"{"):
            head, _, body = said.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert json.loads(body)["code"] == "LogClosed"
        else:
            assert said == b""


@pytest.mark.parametrize("accept", [b"application/json", b"application/vnd.apache.arrow.stream"])
def test_a_client_that_takes_nothing_of_its_answer_keeps_nobody(
    folder: Path, accept: bytes
) -> None:
    with open_log(folder) as log:
        log.publish("orders", [Record(random.randbytes(6000).hex().encode(), partition=0)] * 600)
    body = b'{"topic": "orders", "limit": 600}'
    head = b"Accept: %b\r\nContent-Type: application/json\r\n" % accept
    with ServedProcess(folder) as host, client(host) as silent:
        silent.sendall(CONSUME + head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert silent.recv(1)  # the answer has begun
        ends_in_silence(host)
