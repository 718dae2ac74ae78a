"""A host asks its worker, with real processes that answer, are silent, or end."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from duolog.bridge.journal import Journal
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.answering import Answering
from duolog.bridge.serve.asking import Asking
from duolog.bridge.serve.child import ChildProcess, Process, Status
from duolog.bridge.serve.exchange import MAX_LINE_BYTES, MOST_UNDER_WAY, Ask, ask_line
from duolog.bridge.serve.leash import settings_from_host
from duolog.bridge.serve.supervision import Patience, Phase
from duolog.bridge.serve.worker import Worker
from duolog.clock import SystemClock
from duolog.errors import (
    AnswerTooLarge,
    GroupHasMembers,
    HostFailed,
    InvalidRequest,
    KafkaWorkerUnavailable,
    TooBusy,
)
from tests.unit.test_bridge_supervised import DEADLINE_SECONDS, until

PATIENCE = Patience(first_pause_seconds=0.01, longest_pause_seconds=0.02, stop_seconds=60)
LONG_PATIENCE = Patience(first_pause_seconds=600, longest_pause_seconds=600, stop_seconds=60)

WORKER = """
import asyncio, os, signal, sys, time
from duolog.bridge.journal import Journal
from duolog.bridge.serve.answering import Answering
from duolog.bridge.serve.leash import settings_from_host, tell_host
from duolog.errors import GroupHasMembers

answering = Answering(Journal())
settings_from_host(hear=answering.hear)

async def echo(asked): return asked["text"]
async def refuse(asked): raise GroupHasMembers("It has members.")
async def fail(asked): 1 / 0
async def never(asked): await asyncio.Event().wait()
async def die(asked): os._exit(3)
async def long(asked): return "x" * asked["bytes"]
async def tell(asked): return answering.tell("left", member=asked["member"])
async def block(asked): time.sleep(600)

async def main():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    for handle in (echo, refuse, fail, never, die, long, tell, block):
        answering.handle(handle.__name__, handle)
    answering.start()
    tell_host({"pid": os.getpid()})
    await ended.wait()
    await answering.close()
    tell_host({"state": "stopped"})

asyncio.run(main())
"""
SILENT = """
import threading
from duolog.bridge.serve.leash import settings_from_host, tell_host
settings_from_host()
tell_host({"state": "at work"})
threading.Event().wait()
"""
DEAF = """
import time
time.sleep(600)
"""


@contextmanager
def kept(program: str = WORKER, patience: Patience = PATIENCE) -> Iterator[Worker]:
    def start(said: Callable[[Status], None], ended: Callable[[int], None]) -> Process:
        return ChildProcess([sys.executable, "-c", program], {}, said, ended)

    journal = Journal(io.StringIO(), as_json=True)
    with Worker("kafka", start, SystemClock(), Tally(), journal, patience=patience) as worker:
        until(lambda: worker.state.pid is not None)
        try:
            yield worker
        finally:
            if program != WORKER and worker.state.pid is not None:
                os.kill(worker.state.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with kept() as made:
        yield made


def test_it_is_answered_also_before_it_says_that_it_is_at_work(worker: Worker) -> None:
    futures = {text: worker.asking.ask("echo", {"text": text}) for text in ("a", "ü\n", "c" * 999)}
    for text, future in futures.items():
        assert future.result(DEADLINE_SECONDS) == text
    until(lambda: worker.state.phase is Phase.RUNNING)
    assert worker.state.status == {"pid": worker.state.pid}  # answers are no status


def test_errors_come_by_their_names(worker: Worker) -> None:
    with pytest.raises(GroupHasMembers, match="It has members"):
        worker.asking.ask("refuse").result(DEADLINE_SECONDS)
    with pytest.raises(HostFailed, match="journal says more"):
        worker.asking.ask("fail").result(DEADLINE_SECONDS)
    with pytest.raises(InvalidRequest, match="does not know"):
        worker.asking.ask("dance").result(DEADLINE_SECONDS)
    with pytest.raises(AnswerTooLarge, match="Ask for less"):
        worker.asking.ask("long", {"bytes": MAX_LINE_BYTES}).result(DEADLINE_SECONDS)
    with pytest.raises(InvalidRequest, match="over the limit"):
        worker.asking.ask("echo", {"text": "x" * MAX_LINE_BYTES}).result(DEADLINE_SECONDS)
    longest = MAX_LINE_BYTES - 100
    answered = worker.asking.ask("long", {"bytes": longest}).result(DEADLINE_SECONDS)
    assert len(answered) == longest


def test_who_asks_from_an_event_loop_is_answered_there(worker: Worker) -> None:
    async def ask() -> Any:
        with pytest.raises(GroupHasMembers):
            await worker.asking.asked("refuse")
        left = asyncio.ensure_future(worker.asking.asked("never", timeout_seconds=0.05))
        await asyncio.sleep(0)
        left.cancel()  # its answer, which comes all the same, disturbs nobody
        return await asyncio.gather(
            *(worker.asking.asked("echo", {"text": n}) for n in range(MOST_UNDER_WAY // 2))
        )

    assert asyncio.run(ask()) == list(range(MOST_UNDER_WAY // 2))


def test_no_answer_in_time_is_an_error_and_the_next_is_answered(worker: Worker) -> None:
    with pytest.raises(KafkaWorkerUnavailable, match=r"'never' within 0\.0"):
        worker.asking.ask("never", timeout_seconds=0.05).result(DEADLINE_SECONDS)
    assert worker.asking.ask("echo", {"text": 1}).result(DEADLINE_SECONDS) == 1


def test_events_come_to_who_wants_them(worker: Worker) -> None:
    heard: list[Any] = []
    came = threading.Event()

    def hear(told: Any) -> None:
        heard.append(told)
        came.set()

    def fails(told: Any) -> None:
        raise ValueError("not for the others to see")

    ends = [worker.asking.subscribe("left", each) for each in (fails, hear)]
    assert worker.asking.ask("tell", {"member": "a"}).result(DEADLINE_SECONDS)
    assert came.wait(DEADLINE_SECONDS)
    for end in (*ends, *ends):
        end()
    assert worker.asking.ask("tell", {"member": "b"}).result(DEADLINE_SECONDS)
    assert worker.asking.ask("echo", {"text": 1}).result(DEADLINE_SECONDS) == 1
    assert heard == [{"member": "a"}]


def test_more_than_it_takes_on_is_refused_and_it_recovers() -> None:
    with kept() as worker:
        under_way = [worker.asking.ask("never", timeout_seconds=600) for _ in range(MOST_UNDER_WAY)]
        with pytest.raises(TooBusy, match="a little later"):
            worker.asking.ask("echo", {"text": 1}).result(DEADLINE_SECONDS)
        assert worker.state.pid is not None
        os.kill(worker.state.pid, signal.SIGKILL)
        for future in under_way:
            with pytest.raises(KafkaWorkerUnavailable, match="exit code -9"):
                future.result(DEADLINE_SECONDS)
        until(lambda: worker.state.starts == 2 and worker.state.phase is Phase.RUNNING)
        assert worker.asking.ask("echo", {"text": 1}).result(DEADLINE_SECONDS) == 1


def test_its_end_fails_at_once_what_is_under_way_and_what_comes_then() -> None:
    with kept(patience=LONG_PATIENCE) as worker:
        waiting = worker.asking.ask("never", timeout_seconds=600)
        with pytest.raises(KafkaWorkerUnavailable, match="ended before it answered 'die'"):
            worker.asking.ask("die", timeout_seconds=600).result(DEADLINE_SECONDS)
        with pytest.raises(KafkaWorkerUnavailable, match="may have been done or not"):
            waiting.result(DEADLINE_SECONDS)
        with pytest.raises(KafkaWorkerUnavailable, match="it ended with exit code 3"):
            worker.asking.ask("echo", {"text": 1}).result(0)
    with pytest.raises(KafkaWorkerUnavailable, match="cannot be asked"):
        worker.asking.ask("echo", {"text": 1}).result(0)


@pytest.mark.parametrize("program", [SILENT, DEAF])
def test_one_that_does_not_listen_holds_up_nobody(program: str) -> None:
    """More than a pipe holds is sent to it."""
    with kept(program) as worker:
        futures = [
            worker.asking.ask("echo", {"text": "x" * (MAX_LINE_BYTES - 100)}, 0.2)
            for _ in range(20)
        ]
        for future in futures:
            with pytest.raises(KafkaWorkerUnavailable, match="did not answer"):
                future.result(DEADLINE_SECONDS)


def test_a_worker_whose_loop_is_blocked_still_ends_with_its_host() -> None:
    with kept() as worker:
        future = worker.asking.ask("block", timeout_seconds=0.5)
        with pytest.raises(KafkaWorkerUnavailable):
            future.result(DEADLINE_SECONDS)
        process = worker._process
        assert isinstance(process, ChildProcess)
        for _ in range(2 * MOST_UNDER_WAY):  # past the host's own limit
            process.send(ask_line(Ask(-1, "echo", 1.0, {"text": "x" * 9999})))
        process._to_say.put(None)
        process._speaking.join(DEADLINE_SECONDS)  # the leash thread has read it all
        assert process._process.stdin is not None
        process._process.stdin.close()
        until(lambda: worker.state.exit_code == 75)


def test_before_anything_was_started_nobody_is_there() -> None:
    asking = Asking("kafka", Journal(io.StringIO()))
    with pytest.raises(KafkaWorkerUnavailable, match="has not been started"):
        asking.ask("echo").result(0)
    asking.close()


def test_one_that_has_ended_before_its_start_was_known_is_not_asked() -> None:
    asking = Asking("kafka", Journal(io.StringIO()))
    asking.end(1, "it ended with exit code 1")
    asking.begin(1, Sent())
    with pytest.raises(KafkaWorkerUnavailable, match="exit code 1"):
        asking.ask("echo").result(0)


class Sent:
    """A process that takes everything."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def send(self, line: bytes) -> None:
        self.lines.append(line)


def test_the_leash_reads_lines_however_they_come() -> None:
    reading, writing = os.pipe()
    lines: list[bytes] = []
    came = threading.Event()

    def hear(line: bytes) -> None:
        lines.append(line)
        if line == b"bad":
            raise ValueError("the next ones are heard all the same")
        if line == b"last":
            came.set()

    os.write(writing, b'{"a":1}\nfirst\nsec')
    assert settings_from_host(reading, hear) == {"a": 1}
    os.write(writing, b"ond\nbad\n")
    for _ in range(4):
        os.write(writing, b"x" * (MAX_LINE_BYTES // 2))
    os.write(writing, b"end of a long line\nlast\n")
    assert came.wait(DEADLINE_SECONDS)
    assert lines == [b"first", b"second", b"bad", b"last"]


def test_a_host_that_does_not_listen_holds_up_no_answers_and_takes_no_memory() -> None:
    """What is unsaid is bounded, and so is what waits for the event loop."""
    listens = threading.Event()
    said: list[bytes] = []

    def say(line: bytes) -> None:
        assert listens.wait(DEADLINE_SECONDS)
        said.append(line)

    answering = Answering(Journal(io.StringIO()), say)

    async def one(asked: Any) -> int:
        return 1

    answering.handle("one", one)
    for number in range(20 * MOST_UNDER_WAY):
        answering.hear(ask_line(Ask(number, "one", 600.0)))
    assert not answering.tell("left", member="a")

    async def answer() -> None:
        answering.start()
        listens.set()
        await asyncio.to_thread(until, lambda: b'{"answer":0,"result":1}\n' in said)
        await answering.close()

    asyncio.run(answer())
    answered = sum(line.endswith(b'"result":1}\n') for line in said)
    assert answered <= MOST_UNDER_WAY
    assert len(said) <= 5 * MOST_UNDER_WAY
