"""A round of the committer: one job's mistake is its own, and what is durable is not an error."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import NotWritten, OutcomeUnknown, SequenceContentMismatch, UnknownTopic
from duolog.log import EmbeddedLog, LogOptions, batch, open_log, rounds
from duolog.log.catalogue import Catalogue
from duolog.log.commits import Job
from duolog.log.definitions import ChangeCatalogue, DropTopic
from duolog.log.keys import LAST_OFFSET, record_key
from duolog.log.model import Record, Topic, TopicPartition, TopicSettings
from duolog.log.rounds import Round
from duolog.log.state import State
from tests.support.records import BATCH, part_of

DEADLINE_SECONDS = 30
POISON = b"poison"


class Gate:
    """Holds the committer in the middle of a write, so that others gather for the next round."""

    def __init__(self) -> None:
        self._held = threading.Event()
        self._may_go = threading.Event()
        self._may_go.set()

    def __call__(self, point: str) -> None:
        if point == "publish.written":
            self._held.set()
            assert self._may_go.wait(DEADLINE_SECONDS)

    def hold(self, log: EmbeddedLog) -> None:
        self._held.clear()
        self._may_go.clear()
        log.publish_then("beside", [Record(b"")], lambda *_: None)
        assert self._held.wait(DEADLINE_SECONDS)

    def open(self) -> None:
        self._may_go.set()


class Told(queue.Queue[tuple[Any, BaseException | None]]):
    """What callers were told, by the order in which they were."""

    def tell(self, placed: Any, error: BaseException | None) -> None:
        self.put((placed, error))

    def next(self) -> tuple[Any, BaseException | None]:
        return self.get(timeout=DEADLINE_SECONDS)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def log(tmp_path: Path, gate: Gate) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", options=LogOptions(fault=gate)) as opened:
        opened.create_topic("orders")
        opened.create_topic("beside")
        try:
            yield opened
        finally:
            gate.open()


def stored_batches(log: EmbeddedLog) -> int:
    where = TopicPartition(log.topic("orders").id, 0)
    return len(
        log._state.store.scan_keys("records", record_key(where, 0), record_key(where, LAST_OFFSET))
    )


def values(log: EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", 0, 0)]


class Adds(Job):
    """Adds records, and raises after some of them."""

    def __init__(self, log: EmbeddedLog, records: Sequence[Record], error: BaseException) -> None:
        super().__init__()
        self._where = TopicPartition(log.topic("orders").id, 0)
        self._records = records
        self._mistake = error

    def gates(self, state: State) -> frozenset[TopicPartition]:
        del state
        return frozenset({self._where})

    def prepare(self, round_: Round) -> None:
        for record in self._records:
            round_.add(self._where, record)
            round_.remember_publish("w", 7, b"nothing")
            round_.set_position(("g", self._where), None)
            round_.afterwards(lambda: pytest.fail("it was not in the round"))
        raise self._mistake


@pytest.mark.parametrize("error", [ValueError("a mistake"), MemoryError(), SystemExit()])
def test_a_job_that_raises_leaves_nothing_in_its_round(
    log: EmbeddedLog, gate: Gate, error: BaseException
) -> None:
    told = Told()
    gate.hold(log)
    log.publish_then("orders", [Record(b"1")], told.tell)
    wrong = Adds(log, [Record(b"wrong"), Record(b"too")], error)
    log._committer.submit(wrong)
    log.publish_then("orders", [Record(b"2")], told.tell)
    before = log.stats().syncs
    gate.open()
    assert [placed[0].offset for placed, _ in (told.next(), told.next())] == [0, 1]
    with pytest.raises(type(error)):
        wrong.wait()
    assert values(log) == [b"1", b"2"]
    assert log.last_sequence("w") is None
    assert log.stats().syncs - before == 2  # the held round, and this one


def encode_all_but_poison(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    encode = batch.encode_small

    def refuse(records: Sequence[Record], now_ms: int) -> tuple[bytes, int]:
        if any(record.value == POISON for record in records):
            raise error
        return encode(records, now_ms)

    monkeypatch.setattr(rounds, "encode_small", refuse)


@pytest.mark.parametrize("error", [ValueError("cannot be packed"), MemoryError()])
def test_what_cannot_be_encoded_fails_its_own_caller_alone(
    log: EmbeddedLog, gate: Gate, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    encode_all_but_poison(monkeypatch, error)
    told: dict[int, Told] = {number: Told() for number in range(13)}
    gate.hold(log)
    for number, each in told.items():
        value = POISON if number == 5 else b"%d" % number
        log.publish_then("orders", [Record(value)], each.tell)
    gate.open()
    answers = {number: each.next() for number, each in told.items()}
    assert answers.pop(5)[1] is error
    assert [placed[0].offset for placed, _ in answers.values()] == list(range(12))
    assert all(error is None for _, error in answers.values())
    assert values(log) == [b"%d" % number for number in range(13) if number != 5]


def test_what_a_failed_round_has_written_is_gone_before_anyone_is_told(
    log: EmbeddedLog, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode_all_but_poison(monkeypatch, ValueError("cannot be packed"))
    told: queue.Queue[tuple[BaseException | None, int]] = queue.Queue()
    gate.hold(log)
    large = [Record(b"x" * 400_000) for _ in range(6)]  # written before the last one is encoded
    log.publish_then(
        "orders", [*large, Record(POISON)], lambda _, error: told.put((error, stored_batches(log)))
    )
    gate.open()
    error, batches = told.get(timeout=DEADLINE_SECONDS)
    assert isinstance(error, ValueError)
    assert batches == 0
    log.publish("orders", Record(b"after"))
    assert values(log) == [b"after"]


def test_a_publish_to_two_topics_writes_to_neither_when_one_is_gone(
    log: EmbeddedLog, gate: Gate
) -> None:
    both, beside = Told(), Told()
    dropped = log.create_topic("dropped")
    targets = [(log.topic("orders"), Record(b"wrong")), (dropped, Record(b"wrong"))]
    gate.hold(log)
    log._committer.submit(DropTopic(dropped.id))
    log._publisher.submit(targets, None, None, both.tell)
    log.publish_then("orders", [Record(b"right")], beside.tell)
    gate.open()
    assert isinstance(both.next()[1], UnknownTopic)
    assert beside.next()[0][0].offset == 0
    assert values(log) == [b"right"]


def test_a_job_holds_the_gates_of_the_topic_that_an_earlier_job_has_made(
    log: EmbeddedLog, gate: Gate
) -> None:
    """Else an epoch to the new topic would be acknowledged, and lost with it."""
    held: list[bool] = []

    class DropsWhatIsThere(DropTopic):
        def prepare(self, round_: Round) -> None:
            there = {TopicPartition(round_.catalogue.topic("orders").id, 0)}
            held.append(not round_.state.gates.try_hold(there))
            super().prepare(round_)

    def make_again(catalogue: Catalogue, now_ms: int) -> tuple[Catalogue, Topic]:
        return catalogue.with_topic("orders", TopicSettings(), now_ms)

    gate.hold(log)
    last = DropsWhatIsThere("orders")
    log._committer.submit(DropsWhatIsThere("orders"), ChangeCatalogue(make_again), last)
    gate.open()
    last.wait()
    assert held == [True, True]
    assert [topic.name for topic in log.topics()] == ["beside"]


def test_a_job_whose_gates_raise_is_refused_alone(log: EmbeddedLog) -> None:
    class NoGates(Job):
        def gates(self, state: State) -> frozenset[TopicPartition]:
            raise RuntimeError("no gates")

    job = NoGates()
    log._committer.submit(job)
    with pytest.raises(RuntimeError, match="no gates"):
        job.wait()
    assert log.publish("orders", Record(b"after"))[0].offset == 0


@pytest.mark.parametrize("error", [ValueError("a callback"), SystemExit(), KeyboardInterrupt()])
def test_a_callback_that_raises_changes_nothing(
    log: EmbeddedLog, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_it(*_: object) -> None:
        raise error

    log.publish_then("orders", [Record(b"1")], raise_it)
    log.committer_answers(raise_it)
    assert log.publish("orders", Record(b"2"))[0].offset == 1
    assert values(log) == [b"1", b"2"]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


def raising_listener(heard: list[int]) -> Callable[..., None]:
    def listen(*_: object) -> None:
        heard.append(1)
        raise ValueError("a listener")

    return listen


def test_a_listener_that_raises_makes_no_durable_write_an_error(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []
    log.listen(raising_listener(heard))
    log.listen_to_positions(raising_listener(heard))
    assert log.publish("orders", Record(b"1"))[0].offset == 0
    part = part_of(log.topic("orders"), {0: [b"2"]})
    log.append(BATCH, 0, [part])
    assert log.ack("g", "orders", 1).position == 2
    log.drop_topic("beside")
    assert values(log) == [b"1", b"2"]
    assert len(heard) == len(caplog.records) == 4


def test_what_is_durable_is_no_error_when_it_cannot_be_shown(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = Round.publish
    calls: list[int] = []

    def fail_once(round_: Round) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise MemoryError
        publish(round_)

    monkeypatch.setattr(Round, "publish", fail_once)
    assert log.publish("orders", Record(b"1"))[0].offset == 0
    assert log.publish("orders", Record(b"2"))[0].offset == 1
    assert values(log) == [b"1", b"2"]


@pytest.mark.parametrize("point", ["publish.written", "publish.synced"])
def test_after_the_heads_are_written_the_store_says_what_became_of_them(
    tmp_path: Path, point: str
) -> None:
    failing: list[str] = []

    def fault(at: str) -> None:
        if at in failing:
            failing.remove(at)
            raise MemoryError

    with open_log(tmp_path / "log", options=LogOptions(fault=fault)) as log:
        log.create_topic("orders")
        failing.append(point)
        try:
            assert log.publish("orders", Record(b"1"))[0].offset == 0
            there = [b"1"]
        except NotWritten:
            there = []
        except OutcomeUnknown:
            there = list(map(bytes, filter(None, values(log))))
        assert values(log) == there
        log.publish("orders", Record(b"2"))
        assert values(log) == [*there, b"2"]


@pytest.mark.parametrize("seed", range(6))
def test_random_jobs_of_one_round_leave_what_each_was_told(
    log: EmbeddedLog, gate: Gate, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Some are refused, some raise after they changed the round, some cannot be encoded."""
    chance = random.Random(seed)
    encode_all_but_poison(monkeypatch, ValueError("cannot be packed"))
    told: queue.Queue[tuple[list[bytes], Any, BaseException | None]] = queue.Queue()

    def tell(sent: list[bytes], placed: Any, error: BaseException | None) -> None:
        told.put((sent, placed, error))

    count = 60
    kinds = ("fine", "fine", "sequenced", "raises", "poison")[: 4 + seed % 2]
    gate.hold(log)
    for number in range(count):
        kind = chance.choice(kinds)
        if kind == "raises":
            log._committer.submit(Adds(log, [Record(b"wrong")] * 2, ValueError("a mistake")))
            told.put(([], (), ValueError()))
            continue
        sent = [b"%d-%d" % (number, nth) for nth in range(chance.randint(1, 3))]
        if kind == "poison":
            sent[-1] = POISON
        sequence = chance.randint(0, 5) if kind == "sequenced" else None
        log.publish_then(
            "orders",
            [Record(value) for value in sent],
            partial(tell, sent),
            writer=None if sequence is None else "w",
            sequence=sequence,
        )
    gate.open()
    written: dict[int, bytes] = {}
    for _ in range(count):
        sent, placed, error = told.get(timeout=DEADLINE_SECONDS)
        if error is None:
            assert not written.keys() & {each.offset for each in placed}
            written |= {each.offset: value for each, value in zip(placed, sent, strict=True)}
        else:
            assert isinstance(error, ValueError | SequenceContentMismatch)
    assert sorted(written) == list(range(len(written)))
    assert values(log) == [written[offset] for offset in range(len(written))]
