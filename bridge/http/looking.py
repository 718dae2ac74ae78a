"""One look at the log for a consumer: where it stands, and what is there for it. May block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duolog.bridge.http.shares import shares
from duolog.bridge.http.starts import Begin, start_in
from duolog.errors import OffsetOutOfRange
from duolog.log.access import LogAccess
from duolog.log.catalogue import partition_of
from duolog.log.fetched import Fetched
from duolog.log.model import Earliest, PartitionOffsets, Topic


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a consumer asks for."""

    topic_id: int
    group: str | None
    partition: int | None  # None: all
    begin: Begin
    limit: int
    max_bytes: int
    turn: int = 0  # which partition comes first


@dataclass(frozen=True, slots=True)
class Found:
    """What a look gives: `pages` of records, and where each partition goes on."""

    topic: Topic
    pages: tuple[Fetched, ...]
    next_offsets: Mapping[int, int]
    has_more: bool


@dataclass(slots=True)
class Looks:
    """The looks of one poll. Where it begins is settled by the first one: later, the latest
    offset would be another.
    """

    log: LogAccess
    wanted: Wanted
    _begun: dict[int, int] = field(default_factory=dict)
    _has_looked: bool = False

    def look(self) -> Found:
        """What is there now; no pages when there is nothing."""
        try:
            return self._look()
        except OffsetOutOfRange:
            if self.wanted.group is None:
                raise
            return self._look()  # retention came in between: the group now begins later

    def _look(self) -> Found:
        wanted = self.wanted
        topic = self.log.topic(wanted.topic_id)
        heads = self.log.offsets(topic.id)
        if wanted.partition is not None:
            heads = (heads[partition_of(topic, wanted.partition).partition],)
        positions = {head.partition: self._position(topic, head, len(heads) == 1) for head in heads}
        self._has_looked = True
        available = {
            head.partition: head.next_offset - positions[head.partition]
            for head in _turned(heads, wanted.turn)
        }
        pages: list[Fetched] = []
        bytes_left = wanted.max_bytes
        for partition, records in shares(available, wanted.limit).items():
            page = self.log.fetch(
                topic.id,
                partition,
                positions[partition],
                max_records=records,
                max_bytes=bytes_left,
            )
            pages.append(page)
            positions[partition] = page.next_offset
            bytes_left -= sum(int(batch.records.nbytes) for batch in page.batches)
            if bytes_left <= 0:
                break
        has_more = any(head.next_offset > positions[head.partition] for head in heads)
        return Found(topic, tuple(pages), positions, has_more)

    def _position(self, topic: Topic, head: PartitionOffsets, is_only: bool) -> int:
        """Where the group is, never before what is kept; or where it is to begin."""
        group = self.wanted.group
        if group is not None:
            stored = self.log.group_position(group, topic.id, head.partition)
            if stored is not None:
                return min(max(stored.position, head.start), head.next_offset)
        if head.partition not in self._begun:
            start = start_in(self.wanted.begin, topic, head.partition, is_only=is_only)
            if self._has_looked:  # the topic got it meanwhile, so all in it is new
                start = Earliest()
            self._begun[head.partition] = self.log.resolve(topic.id, head.partition, start)
        return self._begun[head.partition]


def _turned(heads: tuple[PartitionOffsets, ...], turn: int) -> tuple[PartitionOffsets, ...]:
    first = turn % len(heads)
    return heads[first:] + heads[:first]
