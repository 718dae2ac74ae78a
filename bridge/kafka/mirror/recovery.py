"""What a worker does first with a partition: find out how far Kafka has what the log has. Pure.

Kafka itself knows best. The leader remembers the last sequence of our producer id, and what lies
in the partition tells of each batch who wrote it as which sequence. What the log has stored may be
behind that (a worker died before it had stored its last runs), or ahead (Kafka has lost records).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from duolog.bridge.kafka.runs import cut_at_kafka, extended
from duolog.bridge.kafka.wire.record_batch import SEQUENCES, sequence_of
from duolog.bridge.kafka.wire.stored import StoredBatch
from duolog.errors import MirrorDiverged
from duolog.log.mirror_model import Mirror, Run


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the leader says. `last_sequence`: None when it has forgotten us, or never knew us."""

    start: int
    end: int
    last_sequence: int | None


@dataclass(frozen=True, slots=True)
class GoOn:
    """Nothing is unsure: send what follows."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """So many more records are there than was stored, one after the other, nothing between."""

    count: int


@dataclass(frozen=True, slots=True)
class CutBack:
    """Kafka has lost what was at `end` and beyond: send that again."""

    end: int


@dataclass(frozen=True, slots=True)
class ReadTail:
    """Look into the partition, from this offset up to the end."""

    offset: int
    end: int


Step = GoOn | Adopt | CutBack | ReadTail


def next_sequence(mirror: Mirror) -> int:
    """The sequence of the next record that is sent."""
    at = mirror.next_log_offset
    return sequence_of(at, mirror.skipped_before(at))


def first_step(mirror: Mirror, seen: Evidence) -> Step:
    """What to do next, from what is stored and what the leader says."""
    reached = mirror.next_kafka_offset
    if seen.end < reached:
        return CutBack(seen.end)
    tail = ReadTail(max(seen.start, reached - 1 if mirror.runs else reached), seen.end)
    if seen.last_sequence is None:
        nothing_to_read = tail.offset >= seen.end
        return GoOn() if nothing_to_read else tail
    more = _signed(seen.last_sequence + 1 - next_sequence(mirror))
    if more == 0 and mirror.runs:
        return GoOn()
    if more > 0 and seen.end - reached == more:
        return Adopt(more)
    return tail


def cut_back(mirror: Mirror, end: int) -> tuple[Run, ...]:
    """The runs that are left when Kafka has nothing at `end` and beyond."""
    return cut_at_kafka(mirror.runs, end)


def placed(mirror: Mirror, kafka_offset: int, count: int) -> tuple[Run, ...]:
    """All runs, when the next `count` records of the log lie at this Kafka offset.

    Skips lie between them: what is skipped is known before anything after it is sent.
    """
    runs = mirror.runs
    at = mirror.next_log_offset
    skipped = mirror.skipped_before(at)
    ahead = [skip for skip in mirror.skips if skip.first_log_offset >= at]
    while count:
        room = ahead[0].first_log_offset - at if ahead else count
        if room:
            taken = min(room, count)
            runs = extended(runs, Run(at, kafka_offset, taken, skipped))
            at, kafka_offset, count = at + taken, kafka_offset + taken, count - taken
        if ahead and at == ahead[0].first_log_offset:
            skip = ahead.pop(0)
            at, skipped = skip.next_log_offset, skipped + skip.count
    return runs


@dataclass(frozen=True, slots=True)
class Found:
    """What a partition holds beyond the runs that were known."""

    runs: tuple[Run, ...]
    foreign: int  # records of others
    first_foreign: int | None = None  # where in Kafka the first of them is


def deleted_meanwhile(
    mirror: Mirror, producer_id: int, seen: Evidence, batches: Sequence[StoredBatch]
) -> tuple[Run, ...]:
    """The runs, with those of our records that Kafka has deleted before the log was told of them.

    How many these were is what the sequences say of the first one of ours that is left, or of the
    last one that was sent. Where they lay nobody can say, if others wrote there too: as late as
    they may have, so that what a group has committed there never stands for more than it has read.
    """
    reached = mirror.next_kafka_offset
    edge = min([seen.start, *(batch.base_offset for batch in batches[:1])])
    following = seen.last_sequence
    if following is not None:
        following += 1
    for batch in batches:
        if batch.producer_id == producer_id:
            following = batch.base_sequence
            break
    if edge <= reached or following is None:
        return mirror.runs
    count = _signed(following - next_sequence(mirror))
    if not 0 < count <= edge - reached:
        return mirror.runs
    return placed(mirror, edge - count, count)


def read_tail(mirror: Mirror, producer_id: int, batches: Iterable[StoredBatch]) -> Found:
    """The runs, from what is there from the last known record on.

    Raises MirrorDiverged when what lies there is not what was sent.
    """
    reached, sequence = mirror.next_kafka_offset, next_sequence(mirror)
    found = mirror
    foreign, first_foreign = 0, None
    for batch in batches:
        if batch.producer_id != producer_id:
            was_ours = mirror.runs and reached > mirror.target.restored_kafka_offset
            if was_ours and batch.base_offset < reached <= batch.next_offset:
                raise _diverged(mirror, reached - 1, "was written by somebody else")
            more = max(0, batch.next_offset - max(batch.base_offset, reached))
            if more and first_foreign is None:
                first_foreign = max(batch.base_offset, reached)
            foreign += more
            continue
        before = reached - batch.base_offset if batch.base_offset < reached else 0
        if _signed(batch.base_sequence + before - sequence) != 0:
            raise _diverged(
                mirror,
                batch.base_offset,
                f"has sequence {batch.base_sequence}, not {(sequence - before) % SEQUENCES}",
            )
        count = batch.next_offset - max(batch.base_offset, reached)
        if count > 0:
            runs = placed(found, max(batch.base_offset, reached), count)
            found = replace(found, runs=runs)
            sequence = (sequence + count) % SEQUENCES
            reached = batch.next_offset
    return Found(found.runs, foreign, first_foreign)


def _signed(difference: int) -> int:
    """A difference of sequences, which wrap: the nearer of both ways."""
    wrapped = difference % SEQUENCES
    return wrapped - SEQUENCES if wrapped >= SEQUENCES // 2 else wrapped


def _diverged(mirror: Mirror, kafka_offset: int, what: str) -> MirrorDiverged:
    return MirrorDiverged(
        f"Kafka topic '{mirror.target.kafka_topic}' partition {mirror.partition} is not what was "
        f"mirrored into it: what lies at offset {kafka_offset} {what}. It was cut back and written "
        "to by others, or another program uses the mirror's producer id. Look at it, then begin "
        f"the mirror of '{mirror.topic}' anew in another Kafka topic."
    )
