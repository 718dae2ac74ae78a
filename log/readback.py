"""Reads a partition's latest records back, for what is kept in memory about them."""

from __future__ import annotations

from collections.abc import Iterator

from duolog.errors import DamagedLog
from duolog.log.batch import decode
from duolog.log.damage import damage_at
from duolog.log.dedup import ReadBack
from duolog.log.hole import decode_hole, is_hole
from duolog.log.model import Head, TopicPartition
from duolog.log.state import State
from duolog.log.stored_batches import batches_from
from duolog.log.times import first_reaching

_PAGE_BYTES = 8 << 20


def read_back(state: State) -> ReadBack:
    """A reader of this log for `LatestChanges`."""

    def records_since(
        where: TopicPartition, from_ms: int
    ) -> Iterator[tuple[bytes | None, int, int, str | None, bytes | None, int]]:
        head = state.heads.get(where)
        first = first_reaching(state.store, where, from_ms)
        at = head.next_offset if first is None else max(first.base_offset, head.start)
        while at < head.next_offset:
            page_began_at = at
            try:
                page = batches_from(state.store, where, at, head.next_offset, max_bytes=_PAGE_BYTES)
            except DamagedLog:
                at = _behind_damage(state, where, head, at)
                continue
            for base, encoded in page:
                try:
                    if is_hole(encoded):
                        at = max(at, base + decode_hole(encoded)[0])
                        continue
                    records = decode(encoded)
                except DamagedLog:  # its changes cannot be known: what repeats them is written
                    at = max(at, _behind_damage(state, where, head, max(base, head.start)))
                    continue
                stop = base + records.num_rows
                records = records.slice(max(0, at - base))
                columns = [
                    records.column(name).to_pylist()
                    for name in ("key", "ts", "op", "table", "value")
                ]
                yield from zip(*columns, range(stop - records.num_rows, stop), strict=True)
                at = max(at, stop)
            if at == page_began_at:
                break  # no batch is stored from there on: reading says so

    return records_since


def _behind_damage(state: State, where: TopicPartition, head: Head, offset: int) -> int:
    damage = damage_at(state.store, where, head, offset)
    if damage is None:
        return offset + 1
    state.damage.note(where, damage, state.options.clock.now_ms())
    return damage.next_offset
