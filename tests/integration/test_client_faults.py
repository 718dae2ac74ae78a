"""Consumers that are killed, hosts that are killed, hosts that are none, tokens that are wrong."""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.client import AsyncConsumer, Consumer, Publisher
from duolog.errors import (
    HostFailed,
    HostMismatch,
    HostRefused,
    HostUnreachable,
    OutcomeUnknown,
    TooBusy,
)
from duolog.log.model import Placed, Record, TopicSettings
from tests.integration.client_host import duolog, serving
from tests.integration.client_way import way_to
from tests.integration.serve_host import served, until
from tests.support.children import Child
from tests.support.registry_server import make_certificate

DEADLINE_SECONDS = 60
RECORDS = 60
PUBLISHED = 120


def test_a_consumer_that_is_killed_at_any_point_loses_nothing(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with served(tmp_path / "log") as host:
        host.log.create_topic("orders", TopicSettings(partitions=3))
        host.log.create_topic("dead")
        for number in range(RECORDS):
            host.log.publish("orders", Record(b"%d" % number, partition=number % 3))
        used: set[int] = set()
        lives = 0
        while True:
            lives += 1
            began = {each.partition: each.position for each in host.log.group_positions("g")}
            with Child("tests.integration.client_child", {"url": host.url}) as child:
                if lives < 4:
                    found = [child.said() for _ in range(chance.randrange(1, 12))]
                    child.kill()
                    found += child.rest()
                else:
                    found = list(child.rest())
                    assert child.wait() == 0, child.errors()
            for partition in range(3):
                offsets = [one["offset"] for one in found if one["partition"] == partition]
                at = began.get(partition, 0)
                assert list(dict.fromkeys(offsets)) == list(range(at, at + len(set(offsets))))
            assert all(one["attempt"] == 1 or one["value"] % 10 == 0 for one in found)
            used |= {one["value"] for one in found}
            for each in host.log.group_positions("g"):
                assert {at * 3 + each.partition for at in range(each.position)} <= used
            if lives == 4:
                break
            until(lambda: not host.host.members.shown())  # its session is over
        assert used == set(range(RECORDS))
        letters = [int(letter.value or b"") for letter in host.log.fetch("dead", 0, 0)]
        assert sorted(letters) == list(range(0, RECORDS, 10))


def test_a_host_that_is_killed_and_comes_back_costs_nothing_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
    placed: list[Placed] = []
    published = threading.Semaphore(0)
    done = threading.Event()

    def publish() -> None:
        with Publisher(url=way.url) as publisher:
            for number in range(PUBLISHED):
                placed.append(publisher.publish("orders", number, key=str(number)))
                published.release()

    def hosts() -> None:
        for life in range(3):
            with serving(tmp_path) as url:
                way.behind = int(url.rpartition(":")[2])
                for _ in range(PUBLISHED - 80 if life == 2 else 35):
                    assert published.acquire(timeout=DEADLINE_SECONDS)
                if life == 2:
                    assert done.wait(DEADLINE_SECONDS)

    with way_to() as way, ThreadPoolExecutor() as threads:
        running = [threads.submit(publish), threads.submit(hosts)]
        found = []
        try:
            with Consumer("orders", url=way.url, group="g", start="earliest") as consumer:
                for record in consumer:
                    found.append((record.partition, record.offset, record.value))
                    if len(found) == PUBLISHED:
                        consumer.ack()
                        break
        finally:
            done.set()
        for each in running:
            each.result(DEADLINE_SECONDS)
    assert sorted(value for _, _, value in found) == list(range(PUBLISHED))
    assert len(set(found)) == PUBLISHED
    with open_log(tmp_path / "log", create=False) as log:
        stored = {(p, r.offset): r.value for p in (0, 1) for r in log.fetch("orders", p, 0)}
        assert len(stored) == PUBLISHED
        assert [stored[each.partition, each.offset] for each in placed] == [
            b"%d" % number for number in range(PUBLISHED)
        ]
        ends = {each.partition: each.next_offset for each in log.offsets("orders")}
        assert {each.partition: each.position for each in log.group_positions("g")} == ends


@contextmanager
def answering(*answers: tuple[int, str, bytes]) -> Iterator[str]:
    """What gives these answers in turn, and the last one for ever."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, kind, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(DEADLINE_SECONDS)


def said(code: str, **more: Any) -> bytes:
    return json.dumps({"error": f"This is {code}.", "code": code, **more}).encode()


PLACED = json.dumps({"offsets": [{"topic": "t", "partition_id": 0, "offset": 3}]}).encode()
JSON = "application/json"


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        ((200, "text/html", b"<html>"), HostMismatch, "is no host of a Duolog log"),
        ((404, "text/html", b"<html>"), HostMismatch, r"status 404.* is no host"),
        ((307, JSON, b"{}"), HostMismatch, "is no host"),
        ((200, JSON, b"[]"), HostMismatch, "does not speak as a Duolog host"),
        ((200, JSON, b"{"), HostMismatch, "does not speak as a Duolog host"),
        ((500, JSON, said("InternalError")), HostFailed, "This is InternalError"),
        ((409, JSON, said("NoSuchError")), HostFailed, "calls it NoSuchError"),
        ((503, JSON, said("TooBusy")), TooBusy, "This is TooBusy"),
        ((503, "text/html", b""), OutcomeUnknown, r"no answer that settles it.*status 503"),
    ],
)
def test_strange_answers_are_named(
    answer: tuple[int, str, bytes], error: type[Exception], text: str
) -> None:
    with (
        answering(answer) as url,
        Publisher(url=url, deadline_seconds=0.05) as publisher,
        pytest.raises(error, match=text),
    ):
        publisher.publish("t", "v")


def test_a_host_that_is_too_busy_is_asked_again() -> None:
    answers = [(503, JSON, said("TooBusy")), (502, "text/html", b""), (200, JSON, PLACED)]
    with answering(*answers) as url, Publisher(url=url) as publisher:
        assert publisher.publish("t", "v").offset == 3


def test_records_that_cannot_be_read_are_named() -> None:
    answer = (200, "application/vnd.apache.arrow.stream", b"no Arrow")
    with (
        answering(answer) as url,
        Consumer("t", url=url) as consumer,
        pytest.raises(HostMismatch, match="sends records that cannot be read"),
    ):
        consumer.poll()


def test_a_token_is_sent_and_never_shown(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = subprocess.run(
        duolog("token", "create", "--role", "service", "--name", "n", "--file", str(tokens)),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    with served(tmp_path / "log", tokens=tokens) as host:
        host.log.create_topic("orders")
        with Publisher(url=host.url, token=token) as publisher:
            publisher.publish("orders", {"a": 1})
            assert token not in repr(publisher)
        with Consumer("orders", url=host.url, token=token, start="earliest") as consumer:
            assert [each.value for each in consumer.poll()] == [{"a": 1}]
            assert token not in repr(consumer)
        for wrong, text in (({}, "needs a token"), ({"token": "x"}, "not one of this host's")):
            given: Any = wrong
            consumer = Consumer("orders", url=host.url, **given)
            with consumer, pytest.raises(HostRefused, match=text):
                consumer.poll()
    assert token not in str(vars(AsyncConsumer("o", url=host.url, token=token)))


def test_a_certificate_that_nobody_vouches_for_is_told_at_once(tmp_path: Path) -> None:
    files = make_certificate(tmp_path, "host")
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    tls = ("--tls-certificate", str(files.certificate), "--tls-key", str(files.key))
    with serving(tmp_path, *tls) as url:
        publisher = Publisher(url=url)
        said = r"is not trusted \(.*\)\. Give.* ca_path"
        with publisher, pytest.raises(HostUnreachable, match=said):
            publisher.publish("orders", "v")
        with Publisher(url=url, ca_path=str(files.certificate)) as trusting:
            assert trusting.publish("orders", "v").offset == 0
