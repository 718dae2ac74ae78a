"""Hosts that die, hang and come back, with real processes: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import duolog
from duolog.bridge.internal import router as internal
from duolog.bridge.internal.wait import wait_for_append
from duolog.bridge.waiting import WaitingRoom
from duolog.errors import (
    EpochContentMismatch,
    HostUnreachable,
    LogClosed,
    OutcomeUnknown,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Record, TopicSettings
from duolog.log.options import LogOptions
from duolog.reach import RemoteOptions, reach
from duolog.server.request_memory import RequestMemory
from tests.support.children import Child
from tests.support.host_server import TOKEN, Host
from tests.support.records import BATCH, STREAM, part_of

MODULE = "tests.support.host_server"
NUMBERS = [b"%d" % n for n in range(1000)]
PATIENT = RemoteOptions(deadline_seconds=60)
BRIEF = RemoteOptions(deadline_seconds=1.0, answer_timeout_seconds=0.5, connect_timeout_seconds=0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders")
    return folder


@contextmanager
def hosting(folder: Path, **arguments: Any) -> Iterator[tuple[Child, int]]:
    """A host in a process of its own, and its port."""
    with Child(MODULE, {"folder": str(folder), **arguments}) as child:
        yield child, child.said()["port"]


def opened(how: str, folder: Path, port: int, options: RemoteOptions = PATIENT) -> LogAccess:
    if how == "hosted":
        return reach(folder, remote=options)
    return reach(url=f"http://127.0.0.1:{port}", token=TOKEN, remote=options)


def everything(folder: Path) -> list[bytes | None]:
    with duolog.open_log(folder) as log:
        return [record.value for record in log.fetch("orders", 0, 0)]


@pytest.mark.parametrize("how", ["hosted", "remote"])
@pytest.mark.parametrize(
    "place", ["append.verified", "append.records_written", "append.committed", "store.sync"]
)
def test_a_host_that_dies_in_mid_append_is_survived(folder: Path, how: str, place: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        with hosting(folder, die_at=place) as (dying, port):
            log = opened(how, folder, port)
            topic = log.topic("orders")
            parts = [part_of(topic, {0: NUMBERS}, folder=log.staging(STREAM, 0))]
            answer = pool.submit(log.append, STREAM, 0, parts)
            assert dying.wait() == -signal.SIGKILL
        # A hosted log is found again wherever it is; a url stays as it is.
        with hosting(folder, port=port if how == "remote" else 0) as (child, _):
            assert answer.result(60).ranges[0].count == 1000
            assert log.append(STREAM, 0, parts).repeated
            log.close()
            child.tell("stop")
            assert child.wait() == 0
    assert everything(folder) == NUMBERS


def test_a_host_that_dies_in_mid_upload_is_survived(folder: Path) -> None:
    content = [b"%04d" % n * 1000 for n in range(2000)]
    with ThreadPoolExecutor(1) as pool:
        with hosting(folder, die_in_upload_after_bytes=50_000) as (dying, port):
            log = opened("remote", folder, port)
            file = log.staging(STREAM, 0).begin()
            part = part_of(log.topic("orders"), {0: content})
            file.write(part.body or b"")
            upload = pool.submit(file.finish)
            assert dying.wait() == -signal.SIGKILL
        with hosting(folder, port=port) as (child, _):
            staged = replace(part, body=None, path=upload.result(60))
            assert log.append(STREAM, 0, [staged]).ranges[0].count == 2000
            log.close()
            assert not any(path.is_file() for path in (folder / "staging").rglob("*"))
            child.tell("stop")
            child.wait()
    assert everything(folder) == content


def test_a_publish_with_a_sequence_is_written_once(folder: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with hosting(folder, die_at="publish.synced") as (dying, port):
            log = opened("remote", folder, port)
            record = Record(b"once")
            placed = pool.submit(log.publish, "orders", record, writer="w", sequence=0)
            assert dying.wait() == -signal.SIGKILL
        with hosting(folder, port=port) as (child, _):
            assert placed.result(60)[0].offset == 0
            log.close()
            child.tell("stop")
            child.wait()
    assert everything(folder) == [b"once"]


@pytest.mark.parametrize(
    "write",
    [
        lambda log: log.publish("orders", Record(b"twin?")),
        lambda log: log.create_topic("new"),
        lambda log: log.seek("g", "orders", 0, 0),
    ],
)
def test_a_write_that_may_not_be_sent_twice_says_that_it_is_not_known(
    folder: Path, write: Any
) -> None:
    with hosting(folder, die_at="store.sync") as (dying, port):
        with (
            opened("remote", folder, port) as log,
            pytest.raises(OutcomeUnknown, match="look before you send it again"),
        ):
            write(log)
        assert dying.wait() == -signal.SIGKILL


def test_a_host_that_stays_away_is_named_in_time(folder: Path) -> None:
    with hosting(folder) as (child, port):
        hosted, remote = (
            opened("hosted", folder, port, BRIEF),
            opened("remote", folder, port, BRIEF),
        )
        child.kill()
        child.wait()
    with hosted, remote:
        for log in (hosted, remote):
            began = time.monotonic()
            with pytest.raises(HostUnreachable, match=r"tried for 1\.\d s"):
                log.topics()
            assert time.monotonic() - began < 30
    with reach(folder) as log:  # its hint is still there, but the lock is free
        assert isinstance(log, EmbeddedLog)


def test_a_host_that_hangs_is_named_in_time(folder: Path) -> None:
    with hosting(folder) as (child, port):
        remote = opened("remote", folder, port, BRIEF)
        os.kill(child._process.pid, signal.SIGSTOP)
        try:
            with remote:
                for ask in (
                    remote.topics,
                    lambda: remote.append(STREAM, 0, []),
                    lambda: remote.wait_for_append({("orders", 0): 0}, 0.1),
                ):
                    with pytest.raises(HostUnreachable, match=r"no answer for|no connection"):
                        ask()
                with pytest.raises(OutcomeUnknown, match="no answer"):
                    remote.create_topic("new")
            with pytest.raises(HostUnreachable, match="hangs"):
                reach(folder, options=LogOptions(lock_wait_seconds=0.1), remote=BRIEF)
        finally:
            os.kill(child._process.pid, signal.SIGCONT)


def test_a_host_that_was_restarted_finds_its_clients_again(folder: Path) -> None:
    host = Host(folder)
    remote, hosted = opened("remote", folder, host.port), opened("hosted", folder, host.port)
    for round_ in range(3):
        for log in (remote, hosted):  # also what may not be sent twice: nothing was lost
            log.publish("orders", Record(b"%d" % round_))
        port = host.port
        host.stop()
        if round_ == 1:
            (folder / "secret").unlink()  # the next one makes another
        host = Host(folder, port=port)
    assert remote.fetch("orders", 0, 0).count == 6
    with remote, hosted:
        pass
    host.stop()


def test_a_long_append_shows_that_it_lives(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a client waits for an answer, and longer than it waits in all."""
    monkeypatch.setattr(internal, "_BEAT_SECONDS", 0.05)
    beats = threading.Semaphore(0)

    def counting_beats(application: Any) -> Any:
        async def serve(scope: Any, receive: Any, send: Any) -> None:
            async def counted(message: Any) -> None:
                await send(message)
                if message.get("body") == b" ":
                    beats.release()

            await application(scope, receive, counted)

        return serve

    def fault(point: str) -> None:
        if point == "append.verified":
            for _ in range(30):
                assert beats.acquire(timeout=30)

    with Host(folder, options=LogOptions(fault=fault), wrap=counting_beats) as host:
        with opened("remote", folder, host.port, BRIEF) as log:
            parts = [part_of(log.topic("orders"), {0: NUMBERS})]
            assert not log.append(STREAM, 0, parts).repeated
            wrong = [part_of(log.topic("orders"), {0: [b"other"]})]
            log.close()
        with (
            opened("remote", folder, host.port) as log,
            pytest.raises(EpochContentMismatch),
        ):
            log.append(STREAM, 0, wrong)


def test_what_a_host_has_no_room_for_comes_later(folder: Path) -> None:
    """Large requests at once are held off, so that a host's memory stays bounded."""
    begun, may_go_on = threading.Event(), threading.Event()

    def fault(point: str) -> None:
        if point == "append.verified":
            begun.set()
            assert may_go_on.wait(60)

    options = LogOptions(fault=fault)
    with (
        Host(folder, options=options, memory=RequestMemory(4_500_000)) as host,
        opened("remote", folder, host.port) as log,
        opened("remote", folder, host.port, BRIEF) as impatient,
        ThreadPoolExecutor(2) as pool,
    ):
        topic = log.topic("orders")
        parts = [part_of(topic, {0: [os.urandom(700_000)]})]
        first = pool.submit(log.append, STREAM, 0, parts)
        assert begun.wait(30)
        with pytest.raises(HostUnreachable, match="too busy"):
            impatient.append(BATCH, 0, parts)
        assert impatient.topics()[0].name == "orders"
        second = pool.submit(log.append, BATCH, 0, parts)
        may_go_on.set()
        assert first.result(60).ranges[0].count == second.result(60).ranges[0].count == 1


def test_closing_ends_a_wait_for_a_host(folder: Path) -> None:
    with hosting(folder) as (child, port):
        log = opened("remote", folder, port)
        child.kill()
        child.wait()
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(log.topics)
            log.close()
            with pytest.raises(LogClosed):
                asking.result(30)


# -- waits


def test_a_thousand_waits_need_no_thread_and_one_append_wakes_its_own(folder: Path) -> None:
    async def scene(log: EmbeddedLog) -> None:
        log.create_topic("many", TopicSettings(partitions=10))
        room = WaitingRoom(log)
        never = asyncio.get_running_loop().create_future()

        def wait(topic: str, partition: int) -> Coroutine[Any, Any, bool]:
            return wait_for_append(log, room, {(topic, partition): 0}, 60.0, never)

        before = threading.active_count()
        waiting = [asyncio.create_task(wait("many", n % 10)) for n in range(1000)]
        while room.count < 1000:
            await asyncio.sleep(0)
        assert threading.active_count() == before
        await asyncio.to_thread(log.publish, "many", Record(b"x", partition=3))
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert all(task.result() for task in done)
        while room.count > 900:
            await asyncio.sleep(0)
        assert sum(task.done() for task in waiting) == 100
        room.stop()
        answered = await asyncio.wait_for(asyncio.gather(*waiting), 30)
        assert sum(answered) == 100
        assert not await wait("many", 0)
        assert room.count == 0
        with pytest.raises(UnknownTopic):
            await wait("nope", 0)

    with duolog.open_log(folder) as log:
        asyncio.run(scene(log))
        log.publish("orders", Record(b"the loop is gone"))


def test_a_client_that_leaves_frees_its_wait(folder: Path) -> None:
    held: list[WaitingRoom] = []
    original = WaitingRoom.__init__

    def remembered(self: WaitingRoom, log: EmbeddedLog) -> None:
        original(self, log)
        held.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaitingRoom, "__init__", remembered)
        host = Host(folder)
    (room,) = held
    body = b'{"positions": [["orders", 0, 0]], "seconds": 60}'
    with socket.create_connection(("127.0.0.1", host.port), timeout=30) as client:
        client.sendall(
            b"POST /v1/internal/wait HTTP/1.1\r\nHost: h\r\nDuolog-Protocol: 2\r\n"
            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (TOKEN.encode(), len(body), body)
        )
        until(lambda: room.count == 1)
    until(lambda: room.count == 0)
    host.stop()


def until(condition: Any) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + 30
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.01)
