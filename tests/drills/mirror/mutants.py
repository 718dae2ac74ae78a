"""Changes to the bridge that a drill of the mirror must notice. Each would be a line or two in it.

A mutant is applied by name inside the worker's process, before it reaches the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from duolog.bridge.kafka.mirror import (
    mirroring,
    partition,
    pieces,
    reactions,
    reading,
    recovering,
    suspicion,
    topic_side,
)
from duolog.bridge.kafka.mirror.recovery import GoOn
from duolog.bridge.kafka.positions import reconcile, settler
from duolog.bridge.kafka.positions.decisions import Moved

MUTANTS: dict[str, Callable[[], None]] = {}


def _mutant(apply: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[apply.__name__] = apply
    return apply


def _copies_unseen() -> None:
    """Nor does anybody look whether others' records are copies of ours: a second net."""
    suspicion.copies = lambda *_: None


@_mutant
def new_producer_each_time() -> None:
    """Each worker takes a fresh producer id, and believes what was stored."""
    stored_runs_trusted()
    _copies_unseen()
    recovering.Recovery._check_target = lambda *_: None
    begin = mirroring.KafkaMirror._begin

    async def begin_afresh(self: Any, port: Any, *more: Any) -> Any:
        shared = await begin(self, port, *more)
        return replace(shared, producer=await port.new_producer(self.cluster_id))

    mirroring.KafkaMirror._begin = begin_afresh


@_mutant
def without_a_producer() -> None:
    """Batches are sent as by a producer without idempotence, and what was stored is believed."""
    stored_runs_trusted()
    _copies_unseen()
    encode = reading.encode_batch

    def anonymous(records: Any, producer: Any, sequence: int, compression: Any) -> Any:
        nobody = replace(producer, producer_id=-1, producer_epoch=-1)
        return encode(records, nobody, -1, compression)

    reading.encode_batch = anonymous


@_mutant
def stored_runs_trusted() -> None:
    """What the log has stored of the mirror is believed: Kafka is not asked how far it is."""
    recovering.first_step = lambda *_: GoOn()


@_mutant
def losses_ignored() -> None:
    """Runs reach as far as they did, when Kafka has lost what they say is there."""
    recovering.cut_back = lambda mirror, _: mirror.runs


@_mutant
def deletions_ignored() -> None:
    """Nobody counts what Kafka has deleted before the log was told of it."""
    recovering.deleted_meanwhile = lambda mirror, *_: mirror.runs


@_mutant
def topic_ids_ignored() -> None:
    """A Kafka topic is known by its name alone."""
    topic_side.topic_id_text = lambda _: "any"


@_mutant
def partitions_unchecked() -> None:
    """Nobody compares how many partitions both sides have."""
    topic_side.check_partitions = lambda *_: 0


@_mutant
def answers_unread() -> None:
    """A batch is thought to lie right behind the one before it, whatever Kafka answers."""
    take = partition.PartitionMirror._take

    def take_anywhere(self: Any, stretch: Any, _: int) -> None:
        take(self, stretch, self._now.next_kafka_offset)

    partition.PartitionMirror._take = take_anywhere


@_mutant
def skips_stored_later() -> None:
    """What is sent behind a refused record does not wait until it is stored that it is skipped."""
    refuse = partition.PartitionMirror._refuse

    async def refuse_unstored(self: Any, *refused: Any) -> None:
        async def later() -> None:
            pass

        store, self._runs.store = self._runs.store, later
        try:
            await refuse(self, *refused)
        finally:
            self._runs.store = store

    partition.PartitionMirror._refuse = refuse_unstored


@_mutant
def fuse_never_burns() -> None:
    """However many records are refused, the mirror goes on without them."""
    pieces.Fuse.burns = lambda *_: False


@_mutant
def refused_times_sent_again() -> None:
    """When the broker refuses a record's time, it is sent once more."""
    reactions._BY_ERROR[32] = reactions.Reaction.RECOVER


@_mutant
def rewinds_unseen() -> None:
    """A consumer's commit below an earlier one is taken for one that has not seen ours."""
    moved = reconcile._moved

    def never_back(native: Any, seen: Any, *rest: Any, is_first: bool) -> Any:
        noticed = moved(native, seen, *rest, is_first=is_first)
        step = noticed.step
        if isinstance(step, settler.MoveNative) and step.position < (native or 0):
            return replace(noticed, step=None)
        return noticed

    reconcile._moved = never_back


@_mutant
def consumers_unheard() -> None:
    """What consumers commit in Kafka does not move the native position."""
    moved = reconcile._moved

    def stays(native: Any, *rest: Any, is_first: bool) -> Any:
        noticed = moved(native, *rest, is_first=is_first)
        return noticed if native is None else replace(noticed, step=None)

    reconcile._moved = stays


@_mutant
def deletion_is_a_rewind() -> None:
    """Where Kafka has no offset of a group, the native position goes to the start."""
    decide = settler.reconcile

    def from_the_start(native: Any, seen: Any, committed: Any, *rest: Any, is_first: bool) -> Any:
        decision = decide(native, seen, committed, *rest, is_first=is_first)
        if committed is None and native:
            return replace(decision, step=settler.MoveNative(0, Moved.REWOUND))
        return decision

    settler.reconcile = from_the_start
