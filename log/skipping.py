"""Damaged batches become holes: their offsets stay used, their records are given up for good."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from duolog.errors import InvalidRequest, NothingDamaged, UnsupportedFormat
from duolog.log.catalogue import Catalogue, partition_of
from duolog.log.commits import Job
from duolog.log.damage import Damage, damage_before
from duolog.log.damage_model import Hole
from duolog.log.heads import Heads
from duolog.log.hole import MOST_OFFSETS, HoleNote, encode_hole
from duolog.log.keys import after_prefix, hole_key, parse_hole_key, record_key, time_key
from duolog.log.model import Head, Topic, TopicPartition
from duolog.log.rounds import Round
from duolog.log.state import State
from duolog.log.store import Store
from duolog.log.times import BatchSize, entry_at, pack_batch_size

_PREFIX = b"hole"
_VERSION = 1
_LONGEST_BY = 200


class SkipDamage(Job):
    """Make holes of the damaged batches before an offset. Again: answers the holes that it made."""

    alone = True

    def __init__(self, topic: Topic, partition: int, to_offset: int, by: str) -> None:
        super().__init__()
        if isinstance(to_offset, bool) or not isinstance(to_offset, int):
            raise InvalidRequest(f"An offset must be a whole number; got {to_offset!r}.")
        if not isinstance(by, str):
            raise InvalidRequest(f"Who skips must be a text; got {by!r}.")
        self._topic_id = topic.id
        self._where = partition_of(topic, partition)
        self._to = to_offset
        self._by = by[:_LONGEST_BY]
        self.holes: tuple[Hole, ...] = ()

    def gates(self, state: State) -> frozenset[TopicPartition]:
        del state
        return frozenset({self._where})

    def prepare(self, round_: Round) -> None:
        topic, where = round_.catalogue.topic(self._topic_id), self._where
        state, head = round_.state, round_.head(where)
        self._check(topic, head)
        known = [each.damage for place, each in state.damage.all() if place == where]
        found = damage_before(state.store, where, head, self._to, known)
        self._check_none_is_cut(topic, head, found)
        if not found:
            self.holes = _holes_upto(state, topic, where, self._to)
            if not self.holes:
                raise self._nothing_damaged(topic, known)
            return
        self.holes = tuple(hole for damage in found for hole in self._dig(round_, topic, damage))

    def _check(self, topic: Topic, head: Head) -> None:
        if not head.start < self._to <= head.next_offset:
            raise InvalidRequest(
                f"Topic '{topic.name}' partition {self._where.partition} keeps offsets from "
                f"{head.start} on and writes {head.next_offset} next: skip to an offset after the "
                f"first and up to the last of these, not to {self._to}."
            )

    def _check_none_is_cut(self, topic: Topic, head: Head, found: list[Damage]) -> None:
        if found and found[-1].next_offset > self._to:
            damage = found[-1]
            raise InvalidRequest(
                f"The damaged batch of topic '{topic.name}' partition {self._where.partition} has "
                f"offsets {damage.first_offset}-{damage.next_offset - 1}, and is skipped whole: "
                f"skip to {damage.next_offset}, not to {self._to}. The partition goes on to "
                f"{head.next_offset}."
            )

    def _nothing_damaged(self, topic: Topic, known: list[Damage]) -> NothingDamaged:
        others = ", ".join(f"{each.first_offset}-{each.next_offset - 1}" for each in known)
        hint = f"Damaged are offsets {others}." if others else "No damaged batch of it is known."
        return NothingDamaged(
            f"The records of topic '{topic.name}' partition {self._where.partition} before offset "
            f"{self._to} can be read or are skipped already, and only damaged ones are skipped. "
            f"{hint} Nothing was done."
        )

    def _dig(self, round_: Round, topic: Topic, damage: Damage) -> list[Hole]:
        """Holes in place of one damage; its entry in the index of times stays, or is made."""
        where, now_ms, state = self._where, round_.now_ms, round_.state
        note = HoleNote(self._by, now_ms, damage.reason, damage.batch_bytes)
        holes = []
        for first in range(damage.first_offset, damage.next_offset, MOST_OFFSETS):
            stop = min(damage.next_offset, first + MOST_OFFSETS)
            hole = Hole(topic.name, where.partition, first, stop, note.by, now_ms, note.reason,
                        damage.batch_bytes)  # fmt: skip
            holes.append(hole)
            round_.batch.put("records", record_key(where, first), encode_hole(hole.count, note))
            round_.batch.put("meta", hole_key(where, first), _pack(hole))
            timed = entry_at(state.store, where, first)
            running_max_ms = 0 if timed is None else timed.running_max_ms
            length = timed.size.length if timed is not None and timed.base_offset == first else 0
            round_.batch.put(
                "times",
                time_key(where, running_max_ms, first),
                pack_batch_size(BatchSize(hole.count, length)),
            )

        def forget() -> None:
            state.cache.forget(where, damage.first_offset, damage.next_offset)
            state.damage.forget(where, damage.first_offset)

        round_.afterwards(forget)
        return holes


def load_holes(
    store: Store, catalogue: Catalogue, heads: Heads, topic: Topic | None
) -> tuple[Hole, ...]:
    """The holes that are still among what the log keeps, of one topic if given."""
    found = []
    for key, packed in store.scan("meta", _PREFIX, after_prefix(_PREFIX)):
        where, _ = parse_hole_key(key)
        of = catalogue.by_id.get(where.topic_id)
        if of is None or (topic is not None and of.id != topic.id):
            continue
        hole = replace(_unpack(packed), topic=of.name)
        if hole.next_offset > heads.get(where).start:
            found.append(hole)
    return tuple(found)


def _holes_upto(state: State, topic: Topic, where: TopicPartition, to: int) -> tuple[Hole, ...]:
    """The holes that end there, one behind the other."""
    found: list[Hole] = []
    holes = load_holes(state.store, state.catalogue, state.heads, topic)
    for hole in reversed([each for each in holes if each.partition == where.partition]):
        if hole.next_offset == (found[-1].first_offset if found else to):
            found.append(hole)
    return tuple(reversed(found))


def _pack(hole: Hole) -> bytes:
    fields = asdict(hole)
    del fields["topic"]  # names change
    return json.dumps({"v": _VERSION, **fields}, separators=(",", ":")).encode()


def _unpack(packed: bytes) -> Hole:
    fields = json.loads(packed)
    version = fields.pop("v")
    if version != _VERSION:
        raise UnsupportedFormat(f"A hole is remembered as version {version}. Use a newer Duolog.")
    return Hole("", **fields)
