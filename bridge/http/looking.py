"""One look at the log for a consumer: where it stands, and what is there for it. May block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeVar

from duolog.bridge.http.shares import shares
from duolog.bridge.http.starts import AtOffsets, Begin, start_in
from duolog.bridge.members.coordinator import Place
from duolog.errors import DamagedBatch, OffsetOutOfRange
from duolog.log.access import LogAccess
from duolog.log.catalogue import partition_of
from duolog.log.damage_model import LeftOut
from duolog.log.first_positions import known_or_first
from duolog.log.model import AtOffset, AtTimestamp, Earliest, PartitionOffsets, Topic

_MOST_LOOKS: Final = 10  # while retention goes on and on
_FEW_PARTITIONS: Final = 64  # so many can be glanced at while others wait
_UNPACKED_TIMES: Final = 4  # what is stored, where it is packed well
_RECORD_BYTES: Final = 200
_LEAST_BYTES: Final = 1 << 20


class Page(Protocol):
    """Records of one partition."""

    @property
    def partition(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def left_out(self) -> tuple[LeftOut, ...]: ...


P = TypeVar("P", bound=Page)
P_co = TypeVar("P_co", bound=Page, covariant=True)


class Fetch(Protocol[P_co]):
    """Reads records of one partition, in the form that the answer wants. It need not read up to
    `upto` and may read further.
    """

    def __call__(
        self,
        topic_id: int,
        partition: int,
        offset: int,
        /,
        *,
        max_records: int,
        max_bytes: int,
        upto: int,
    ) -> P_co: ...


def without_bound(fetch: Callable[..., P]) -> Fetch[P]:
    """A log's own fetch, which knows of no `upto`: a look cuts what is behind it."""

    def bounded(
        topic_id: int,
        partition: int,
        offset: int,
        /,
        *,
        max_records: int,
        max_bytes: int,
        upto: int,
    ) -> P:
        del upto
        return fetch(topic_id, partition, offset, max_records=max_records, max_bytes=max_bytes)

    return bounded


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
    next_offsets: Mapping[int, int] = field(default_factory=dict)  # where a member goes on


@dataclass(frozen=True, slots=True)
class Share:
    """What a member of a group may read: its partitions, and of them what is in Kafka."""

    place: Place
    upto: Mapping[int, int] | None = None  # None: all; what is not named, nothing

    def bounded(self, head: PartitionOffsets) -> PartitionOffsets:
        if self.upto is None:
            return head
        upto = max(head.start, self.upto.get(head.partition, 0))
        return replace(head, next_offset=min(head.next_offset, upto))


@dataclass(frozen=True, slots=True)
class Found(Generic[P]):
    """What a look gives: `pages` of records, and where each partition goes on."""

    topic: Topic
    pages: tuple[P, ...]
    next_offsets: Mapping[int, int]
    has_more: bool
    place: Place | None = None  # of whoever asks as a member
    left_out: tuple[tuple[int, LeftOut], ...] = ()  # by partition: what has no records
    damaged: tuple[DamagedBatch, ...] = ()  # partitions that give nothing, and others did

    @property
    def has_records(self) -> bool:
        return any(page.count for page in self.pages)


@dataclass(slots=True)
class Looks(Generic[P]):
    """The looks of one poll. Where it begins is settled by the first one: later, the latest
    offset would be another. A group's is stored then, so that it holds for later polls too. A
    member looks at its `share`, which may change in between.
    """

    log: LogAccess
    wanted: Wanted
    fetch: Fetch[P]
    share: Share | None = None
    most_bytes: int | None = None  # of the next look, where it may not read as much as is wanted
    begun: dict[int, int] = field(default_factory=dict)
    _has_looked: bool = False

    def expected_bytes(self) -> int:
        """How much a look is to read at most, by what its topic's records take on the disk. If they
        are larger than most others of their topic, it gives fewer of them.
        """
        wanted = self.wanted
        topic = self.log.topic(wanted.topic_id)
        if topic.partitions > _FEW_PARTITIONS:
            return wanted.max_bytes
        heads = self.log.offsets(topic.id)
        stored = sum(head.bytes for head in heads)
        count = sum(head.next_offset - head.start for head in heads)
        each = _UNPACKED_TIMES * stored // max(1, count) + _RECORD_BYTES
        return min(wanted.max_bytes, max(_LEAST_BYTES, each * wanted.limit))

    def look(self) -> Found[P]:
        """What is there now; no pages when there is nothing."""
        for _ in range(_MOST_LOOKS - 1):
            try:
                return self._look()
            except OffsetOutOfRange as error:
                # Below what is kept: retention came in between, and the next look begins later.
                # Who has named an offset is told that it is gone.
                is_named = self.wanted.group is None and isinstance(
                    self.wanted.begin, AtOffset | AtOffsets
                )
                if is_named or error.offset >= error.earliest:
                    raise
        return self._look()

    def glance(self) -> Found[P] | None:
        """What a look gives when there is nothing; None when that takes a look. Never blocks."""
        wanted = self.wanted
        if self.log.topic(wanted.topic_id).partitions > _FEW_PARTITIONS:
            return None
        try:
            topic, heads, positions = self._known()
            if len(positions) < len(heads):
                is_searched = isinstance(wanted.begin, AtTimestamp) and not self._has_looked
                if wanted.group is not None or is_searched:  # to be stored, or looked for
                    return None
                positions = self._begun(topic, heads)
        except OffsetOutOfRange:
            return None
        if any(head.next_offset > positions[head.partition] for head in heads):
            return None
        return Found(topic, (), positions, False, self._place)

    @property
    def _place(self) -> Place | None:
        return None if self.share is None else self.share.place

    def _stand(self) -> tuple[Topic, tuple[PartitionOffsets, ...], dict[int, int]]:
        """The topic, how far its partitions reach, and where the consumer is in them."""
        topic, heads, positions = self._known()
        if self.wanted.group is None:
            return topic, heads, self._begun(topic, heads)
        while len(positions) < len(heads):
            self._begin_group(self.wanted.group, topic)
            topic, heads, positions = self._known()
        return topic, heads, positions

    def _known(self) -> tuple[Topic, tuple[PartitionOffsets, ...], dict[int, int]]:
        """The same as far as it is known: of a group that never read here it is not."""
        wanted = self.wanted
        topic = self.log.topic(wanted.topic_id)
        heads = self.log.offsets(topic.id)
        if wanted.partition is not None:
            heads = (heads[partition_of(topic, wanted.partition).partition],)
        if self.share is not None:
            mine = self.share.place.assigned
            heads = tuple(self.share.bounded(head) for head in heads if head.partition in mine)
        places = ((head.partition, self._position(topic, head)) for head in heads)
        return topic, heads, {each: at for each, at in places if at is not None}

    def _begun(self, topic: Topic, heads: tuple[PartitionOffsets, ...]) -> dict[int, int]:
        """Where a poll without a group is."""
        for head in heads:
            if head.partition not in self.begun:
                start = start_in(self.wanted.begin, topic, head.partition, is_only=len(heads) == 1)
                if self._has_looked:  # the topic got it meanwhile: all is new
                    start = Earliest()
                self.begun[head.partition] = self.log.resolve(topic.id, head.partition, start)
        self._has_looked = True
        return {head.partition: max(self.begun[head.partition], head.start) for head in heads}

    def _begin_group(self, group: str, topic: Topic) -> None:
        """Store where the group begins: in all partitions, also in those of other members."""
        only = self.wanted.partition
        numbers = range(topic.partitions) if only is None else (only,)
        starts = {
            each: start_in(self.wanted.begin, topic, each, is_only=len(numbers) == 1)
            for each in numbers
            if self.log.group_position(group, topic.id, each) is None
        }
        known_or_first(self.log, group, topic.id, starts)

    def _look(self) -> Found[P]:
        wanted = self.wanted
        topic, heads, positions = self._stand()
        available = {
            head.partition: head.next_offset - positions[head.partition]
            for head in _turned(heads, wanted.turn)
        }
        ends = {head.partition: head.next_offset for head in heads}
        pages: list[P] = []
        left_out: list[tuple[int, LeftOut]] = []
        damaged: list[DamagedBatch] = []
        bytes_left = wanted.max_bytes if self.most_bytes is None else self.most_bytes
        for partition, records in shares(available, wanted.limit).items():
            at, end = positions[partition], ends[partition]
            try:
                page = self._page(topic, partition, at, records, bytes_left, end)
                if page.next_offset > end:  # behind what was left out there are more records
                    within = sum(min(each.next_offset, end) - each.first_offset
                                 for each in page.left_out if each.first_offset < end)  # fmt: skip
                    fewer = min(records, end - at - within)
                    if fewer > 0:
                        page = self._page(topic, partition, at, fewer, bytes_left, end)
            except DamagedBatch as damage:
                damaged.append(damage)
                continue
            left_out += ((partition, each) for each in page.left_out if each.first_offset < end)
            positions[partition] = min(page.next_offset, end)
            if page.next_offset <= end:
                pages.append(page)
                bytes_left -= page.nbytes
            if bytes_left <= 0:
                break
        if damaged and not any(page.count for page in pages):
            raise damaged[0]
        has_more = any(head.next_offset > positions[head.partition] for head in heads)
        return Found(
            topic, tuple(pages), positions, has_more, self._place, tuple(left_out), tuple(damaged)
        )

    def _page(self, topic: Topic, partition: int, at: int, records: int, size: int, end: int) -> P:
        return self.fetch(topic.id, partition, at, max_records=records, max_bytes=size, upto=end)

    def _position(self, topic: Topic, head: PartitionOffsets) -> int | None:
        """Where the group is, never before what is kept; None when that is not known."""
        share, group = self.share, self.wanted.group
        own = None if share is None else self.wanted.next_offsets.get(head.partition)
        if own is not None and own > head.next_offset:
            self.log.resolve(topic.id, head.partition, AtOffset(own))  # refuses it
        if share is not None and own is not None and head.partition in share.place.kept:
            return max(own, head.start)
        if group is None:
            return None
        stored = self.log.group_position(group, topic.id, head.partition)
        position = -1 if stored is None else stored.position
        if share is not None and own is not None and head.partition in share.place.resumed:
            position = max(position, own)
        return None if position < 0 else min(max(position, head.start), head.next_offset)


def _turned(heads: tuple[PartitionOffsets, ...], turn: int) -> tuple[PartitionOffsets, ...]:
    first = turn % max(1, len(heads))
    return heads[first:] + heads[:first]
