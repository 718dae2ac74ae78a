"""How far Kafka has what the log has: tables of cases, and random histories of a partition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.bridge.kafka.mirror.pieces import with_skips
from duolog.bridge.kafka.mirror.recovery import (
    Adopt,
    CutBack,
    Evidence,
    Found,
    GoOn,
    ReadTail,
    Step,
    cut_back,
    deleted_meanwhile,
    first_step,
    next_sequence,
    placed,
    read_tail,
)
from duolog.bridge.kafka.wire.record_batch import SEQUENCES, sequence_of
from duolog.bridge.kafka.wire.stored import StoredBatch
from duolog.errors import MirrorDiverged
from duolog.log.mirror_model import Mirror, MirrorTarget, Run, Skip, SkipReason

US, OTHER = 7, 8
TARGET = MirrorTarget("cluster", "orders", "id", US, 0, 0, 0)
EMPTY = Mirror("orders", 0, 1, TARGET)
TEN = replace(EMPTY, runs=(Run(0, 0, 10),))
LARGE = SkipReason.TOO_LARGE


def batch(base: int, count: int, sequence: int, producer: int = US) -> StoredBatch:
    return StoredBatch(base, base + count, producer, 0, sequence, count, False, 100)


@pytest.mark.parametrize(
    ("mirror", "seen", "step"),
    [
        # nothing was ever sent
        (EMPTY, Evidence(0, 0, None), GoOn()),
        (
            replace(EMPTY, target=replace(TARGET, begin_kafka_offset=5)),
            Evidence(2, 5, None),
            GoOn(),
        ),
        # a first worker died before it stored a run
        (EMPTY, Evidence(0, 30, 29), Adopt(30)),
        (EMPTY, Evidence(0, 31, 29), ReadTail(0, 31)),
        (EMPTY, Evidence(0, 30, None), ReadTail(0, 30)),
        # all is known
        (TEN, Evidence(0, 10, 9), GoOn()),
        (TEN, Evidence(0, 15, 9), GoOn()),  # others wrote since
        # more is there than was stored
        (TEN, Evidence(0, 13, 12), Adopt(3)),
        (TEN, Evidence(0, 14, 12), ReadTail(9, 14)),
        # the broker has forgotten us
        (TEN, Evidence(0, 10, None), ReadTail(9, 10)),
        (TEN, Evidence(10, 10, None), GoOn()),
        (TEN, Evidence(0, 12, None), ReadTail(9, 12)),
        (TEN, Evidence(12, 14, None), ReadTail(12, 14)),
        # Kafka has lost records
        (TEN, Evidence(0, 8, 7), CutBack(8)),
        (TEN, Evidence(0, 0, None), CutBack(0)),
        # and others have written since
        (TEN, Evidence(0, 12, 7), ReadTail(9, 12)),
        # sequences wrap
        (
            replace(EMPTY, runs=(Run(SEQUENCES - 4, 0, 4),)),
            Evidence(0, 6, 1),
            Adopt(2),
        ),
        # an offset is no sequence where something was skipped
        (
            replace(EMPTY, runs=(Run(0, 0, 4),), skips=(Skip(4, 6, LARGE),)),
            Evidence(0, 4, 3),
            GoOn(),
        ),
    ],
)
def test_the_first_step(mirror: Mirror, seen: Evidence, step: Step) -> None:
    assert first_step(mirror, seen) == step


@pytest.mark.parametrize(
    ("mirror", "batches", "runs", "foreign"),
    [
        (TEN, [batch(0, 10, 0)], (Run(0, 0, 10),), 0),
        (TEN, [batch(0, 10, 0), batch(10, 5, 10)], (Run(0, 0, 15),), 0),
        (TEN, [batch(5, 10, 5)], (Run(0, 0, 15),), 0),  # the known end lies in a batch
        (TEN, [batch(10, 3, 0, OTHER)], (Run(0, 0, 10),), 3),
        (
            TEN,
            [batch(8, 2, 8), batch(10, 3, -1, -1), batch(13, 2, 10), batch(15, 2, 12)],
            (Run(0, 0, 10), Run(10, 13, 4)),
            3,
        ),
        (EMPTY, [batch(0, 3, 0, OTHER), batch(3, 2, 0)], (Run(0, 3, 2),), 3),
        (
            replace(TEN, skips=(Skip(12, 3, LARGE), Skip(16, 1, LARGE))),
            [batch(9, 1, 9), batch(10, 4, 10)],
            (Run(0, 0, 12), Run(15, 12, 1, 3), Run(17, 13, 1, 4)),
            0,
        ),
    ],
)
def test_the_tail_says_where_ours_lie(
    mirror: Mirror, batches: list[StoredBatch], runs: tuple[Run, ...], foreign: int
) -> None:
    found = read_tail(mirror, US, batches)
    assert found.runs == runs
    assert found.foreign == foreign


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([batch(8, 4, 0, OTHER)], id="others wrote where ours were"),
        pytest.param([batch(8, 2, 7)], id="another one of ours"),
        pytest.param([batch(8, 2, 8), batch(10, 1, 11)], id="a gap"),
        pytest.param([batch(8, 2, 8), batch(10, 1, 9)], id="a repeat"),
    ],
)
def test_what_cannot_be_halts(batches: list[StoredBatch]) -> None:
    with pytest.raises(MirrorDiverged, match="'orders' partition 0"):
        read_tail(TEN, US, batches)


@pytest.mark.parametrize(
    ("seen", "batches", "runs"),
    [
        # the last that was sent says how many are gone
        (Evidence(15, 15, 12), [], (Run(0, 0, 10), Run(10, 12, 3))),
        (Evidence(20, 22, 14), [batch(20, 2, 0, OTHER)], (Run(0, 0, 10), Run(10, 15, 5))),
        # the first that is left says it
        (Evidence(20, 24, None), [batch(20, 4, 14)], (Run(0, 0, 10), Run(10, 16, 4))),
        (Evidence(20, 24, 17), [batch(18, 6, 12)], (Run(0, 0, 10), Run(10, 16, 2))),
        # nothing of ours is gone
        (Evidence(20, 22, 9), [batch(20, 2, 0, OTHER)], (Run(0, 0, 10),)),
        (Evidence(5, 15, 12), [batch(9, 1, 9), batch(10, 5, 0, OTHER)], (Run(0, 0, 10),)),
        # nobody knows, or it cannot be
        (Evidence(20, 22, None), [batch(20, 2, 0, OTHER)], (Run(0, 0, 10),)),
        (Evidence(12, 14, 17), [batch(12, 2, 16)], (Run(0, 0, 10),)),
    ],
)
def test_what_kafka_deleted_before_it_was_known(
    seen: Evidence, batches: list[StoredBatch], runs: tuple[Run, ...]
) -> None:
    assert deleted_meanwhile(TEN, US, seen, batches) == runs


def test_what_kafka_lost_is_sent_again_but_for_what_is_skipped() -> None:
    mirror = replace(
        EMPTY,
        runs=(Run(0, 0, 4), Run(6, 4, 4, 2), Run(11, 20, 5, 3)),
        skips=(Skip(4, 2, LARGE), Skip(10, 1, LARGE)),
    )
    cut = replace(mirror, runs=cut_back(mirror, 5))
    assert cut.runs == (Run(0, 0, 4), Run(6, 4, 1, 2))
    assert (cut.next_log_offset, next_sequence(cut)) == (7, 5)
    assert placed(cut, 5, 4) == (Run(0, 0, 4), Run(6, 4, 4, 2), Run(11, 8, 1, 3))


@dataclass
class Broker:
    """A partition that others write into too, and that may lose its end."""

    batches: list[StoredBatch] = field(default_factory=list)
    truth: list[tuple[int, int]] = field(default_factory=list)  # log offset, Kafka offset
    start: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    @property
    def last_sequence(self) -> int | None:
        ours = [b for b in self.batches if b.producer_id == US]
        return (ours[-1].base_sequence + ours[-1].count - 1) % SEQUENCES if ours else None

    def send(self, log_offsets: list[int], sequence: int) -> None:
        last = self.last_sequence
        assert last is None or (last + 1) % SEQUENCES == sequence % SEQUENCES, "error 45"
        self.truth += [(at, self.end + n) for n, at in enumerate(log_offsets)]
        self.batches.append(batch(self.end, len(log_offsets), sequence))

    def lose(self, batches: int) -> None:
        kept = self.batches[: len(self.batches) - batches]
        if any(batch.next_offset > self.start for batch in kept):  # else it is all gone
            self.batches = kept
            self.truth = [pair for pair in self.truth if pair[1] < self.end]

    def delete(self, records: int) -> None:
        """From the start, as retention does."""
        self.start = min(self.start + records, self.end)

    def left(self, offset: int = 0) -> list[StoredBatch]:
        return [b for b in self.batches if b.next_offset > max(offset, self.start)]


def recovered(mirror: Mirror, broker: Broker, forgotten: bool) -> Mirror:
    """As a worker does it."""
    for _ in range(3):
        step = first_step(
            mirror,
            seen := Evidence(broker.start, broker.end, None if forgotten else broker.last_sequence),
        )
        match step:
            case GoOn():
                return mirror
            case CutBack(end):
                mirror = replace(mirror, runs=cut_back(mirror, end))
                continue
            case Adopt(count):
                runs = placed(mirror, mirror.next_kafka_offset, count)
            case ReadTail(offset):
                tail = broker.left(offset)
                mirror = replace(mirror, runs=deleted_meanwhile(mirror, US, seen, tail))
                runs = read_tail(mirror, US, tail).runs
        return replace(mirror, runs=runs)
    raise AssertionError("it does not come to an end")


_DO = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 6)),
    st.tuples(st.just("foreign"), st.integers(1, 4)),
    st.tuples(st.just("skip"), st.integers(1, 3)),
    st.tuples(st.just("store"), st.just(0)),
    st.tuples(st.just("die"), st.booleans()),
    st.tuples(st.just("lose and die"), st.integers(1, 3)),
    st.tuples(st.just("delete and die"), st.integers(1, 30)),
)


@given(st.sampled_from([0, SEQUENCES - 9]), st.lists(_DO, max_size=30))
@settings(max_examples=400, deadline=None)
def test_whatever_happens_the_runs_say_where_everything_lies(
    begin: int, history: list[tuple[str, int]]
) -> None:
    stored = replace(EMPTY, target=replace(TARGET, begin_log_offset=begin))
    broker, mirror = Broker(), stored
    skipped: set[int] = set()
    for what, much in history:
        at = mirror.next_log_offset
        if what == "send":
            ahead = [n for n in range(at, at + 50) if n not in skipped][:much]
            broker.send(ahead, next_sequence(mirror))
            mirror = replace(mirror, runs=placed(mirror, broker.end - much, much))
        elif what == "foreign":
            broker.batches.append(batch(broker.end, much, 0, OTHER))
        elif what == "skip" and not any(n in skipped for n in range(at, at + much)):
            skipped |= set(range(at, at + much))
            skips = with_skips(mirror.skips, [Skip(at, much, LARGE)])
            mirror = stored = replace(mirror, skips=skips)  # durable before what follows is sent
        elif what == "store":
            stored = mirror
        elif what == "die":
            mirror = recovered(stored, broker, bool(much))
        elif what == "lose and die":
            broker.lose(much)
            mirror = recovered(stored, broker, False)
        elif what == "delete and die":
            broker.delete(much)
            mirror = recovered(stored, broker, False)
        if what.endswith("die"):
            stored = mirror
        told = [
            (run.first_log_offset + n, run.first_kafka_offset + n)
            for run in mirror.runs
            for n in range(run.count)
        ]
        assert [at for at, _ in told] == [at for at, _ in broker.truth]
        assert [each for each in told if each[1] >= broker.start] == [
            each for each in broker.truth if each[1] >= broker.start
        ]
        late = zip(told, broker.truth, strict=True)
        assert all(claimed >= kafka for (_, claimed), (_, kafka) in late)
        assert all(
            run.skipped_before == mirror.skipped_before(run.first_log_offset) for run in mirror.runs
        )
        sent = [at for at, _ in told]
        assert (
            sent
            == [n for n in range(begin, begin + len(sent) + 100) if n not in skipped][: len(sent)]
        )
        assert next_sequence(mirror) == sequence_of(
            mirror.next_log_offset, mirror.skipped_before(mirror.next_log_offset)
        )


def test_what_others_wrote_before_a_restore_is_no_divergence() -> None:
    restored = replace(TEN, target=replace(TARGET, restored_kafka_offset=10))
    assert first_step(restored, Evidence(0, 10, None)) == ReadTail(9, 10)
    assert read_tail(restored, US, [batch(0, 10, 0, OTHER)]) == Found(restored.runs, 0)
    cut = replace(restored, runs=(Run(0, 0, 6),))  # Kafka has lost what was after it
    assert read_tail(cut, US, [batch(0, 6, 0, OTHER), batch(6, 4, 6)]).runs == (Run(0, 0, 10),)
    grown = replace(restored, runs=(Run(0, 0, 12),))
    with pytest.raises(MirrorDiverged):
        read_tail(grown, US, [batch(0, 12, 0, OTHER)])
