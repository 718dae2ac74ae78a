"""One round of the committer: what becomes one atomic write with one sync."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from duolog.log.batch import TARGET_BYTES, encode_small
from duolog.log.catalogue import NEXT_TOPIC_ID, Catalogue
from duolog.log.debris import remove_beyond
from duolog.log.dedup import LatestOfPartition
from duolog.log.heads import pack_head
from duolog.log.keys import (
    group_key,
    partition_key,
    record_key,
    sequence_key,
    time_key,
    topic_key,
)
from duolog.log.merge_plan import SMALL_BYTES
from duolog.log.mirror_control import StoredModes, write_modes
from duolog.log.mirrors import StoredMirror, write_mirror
from duolog.log.model import Head, Record, Topic, TopicPartition
from duolog.log.positions import PositionKey, StoredPosition, pack_position
from duolog.log.published import REMEMBERED_SEQUENCES, highest_sequence
from duolog.log.readback import read_back
from duolog.log.removals import Removal, note_removals, remove
from duolog.log.state import State
from duolog.log.store import MAX_WRITE_BYTES, WriteBatch, WriteFailed
from duolog.log.times import BatchSize, pack_batch_size
from duolog.log.topic_json import topic_to_bytes

_LAST_ROUND = b"last_round"
_RECORD_OVERHEAD_BYTES = 64


class Round:
    """Collects what jobs change. Nothing of it is to be seen before `publish`."""

    def __init__(self, state: State, number: int) -> None:
        self._state = state
        self._number = b"%d" % number
        self._incarnation = state.store.recoveries
        self._heads: dict[TopicPartition, Head] = {}
        self._records: dict[TopicPartition, list[Record]] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self._positions: dict[PositionKey, StoredPosition | None] = {}
        self._mirrors: dict[TopicPartition, StoredMirror | None] = {}
        self._mirror_modes: StoredModes | None = None
        self._published: dict[bytes, bytes] = {}
        self._sequences: dict[str, int] = {}
        self._latest: dict[TopicPartition, LatestOfPartition] = {}
        self._removals: list[Removal] = []
        self._afterwards: list[Callable[[], None]] = []
        self.state = state
        self.catalogue = state.catalogue
        self._batch = WriteBatch()  # all but records, heads and positions
        self._has_written = False
        self.is_changed = False  # by the job that is being prepared
        self.now_ms = max(0, state.options.clock.now_ms())  # a clock may be set before 1970
        self.record_bytes = 0

    @property
    def batch(self) -> WriteBatch:
        """To put into it what the round has no method for."""
        self.is_changed = True
        return self._batch

    def head(self, where: TopicPartition) -> Head:
        """The head as the round leaves it, but for records added to it."""
        return self._heads.get(where) or self._state.heads.get(where)

    def set_head(self, where: TopicPartition, head: Head) -> None:
        self.is_changed = True
        self._heads[where] = head

    def add(self, where: TopicPartition, record: Record) -> int:
        """Append a record; the offset that it gets."""
        self.is_changed = True
        waiting = self._records.setdefault(where, [])
        waiting.append(record)
        size = record_bytes(record)
        self._sizes[where] = self._sizes.get(where, 0) + size
        self.record_bytes += size
        return self.head(where).next_offset + len(waiting) - 1

    def position(self, key: PositionKey) -> StoredPosition | None:
        """A group's position as the round leaves it."""
        return self._positions[key] if key in self._positions else self._state.positions.get(key)

    def set_position(self, key: PositionKey, position: StoredPosition | None) -> None:
        """Move a group's position, or forget it."""
        self.is_changed = True
        self._positions[key] = position

    def positions_of(self, group: str) -> dict[PositionKey, StoredPosition]:
        """All positions of a group, as the round leaves them."""
        known: dict[PositionKey, StoredPosition | None] = dict(
            self._state.positions.of_group(group)
        )
        known |= {key: each for key, each in self._positions.items() if key[0] == group}
        return {key: position for key, position in known.items() if position is not None}

    def positions_where(self, wanted: Callable[[str, TopicPartition], bool]) -> list[PositionKey]:
        """The groups and partitions that have a position, as the round leaves it."""
        known: dict[PositionKey, StoredPosition | None] = {
            **dict(self._state.positions.all()),
            **self._positions,
        }
        return [key for key, position in known.items() if position is not None and wanted(*key)]

    def mirror(self, where: TopicPartition) -> StoredMirror | None:
        """A partition's mirror as the round leaves it."""
        known = self._state.mirrors
        return self._mirrors[where] if where in self._mirrors else known.get(where)

    def set_mirror(self, where: TopicPartition, mirror: StoredMirror | None) -> None:
        """Change a partition's mirror, or forget it."""
        if mirror is not self.mirror(where):
            self.is_changed = True
            self._mirrors[where] = mirror

    @property
    def mirror_modes(self) -> StoredModes:
        """What is wanted of mirrors, as the round leaves it."""
        return self._state.mirror_modes if self._mirror_modes is None else self._mirror_modes

    def set_mirror_modes(self, modes: StoredModes) -> None:
        """Change what is wanted of mirrors."""
        if modes != self.mirror_modes:
            self.is_changed = True
            self._mirror_modes = modes

    def stored_publish(self, writer: str, sequence: int) -> bytes | None:
        """What is remembered of a publisher's sequence."""
        key = sequence_key(writer, sequence)
        return self._published.get(key) or self._state.store.get("epochs", key)

    def highest_sequence(self, writer: str) -> int | None:
        """The highest sequence that a publisher has used, in this round or before."""
        stored = highest_sequence(self._state.store, writer)
        here = self._sequences.get(writer)
        return max((s for s in (stored, here) if s is not None), default=None)

    def remember_publish(self, writer: str, sequence: int, stored: bytes) -> None:
        self.is_changed = True
        key = sequence_key(writer, sequence)
        self._published[key] = stored
        self._sequences[writer] = max(sequence, self._sequences.get(writer, 0))
        self._batch.put("epochs", key, stored)

    def forget_publishes(
        self, writer: str, highest_before: int | None, sequence: int, next_sequence: int
    ) -> None:
        """Forget what is too far back, a thousand sequences at a time, and nothing of the call that
        goes from `sequence` up to `next_sequence`.
        """
        before = 0 if highest_before is None else highest_before // REMEMBERED_SEQUENCES
        if next_sequence // REMEMBERED_SEQUENCES > before:
            self.batch.delete_range(
                "epochs",
                sequence_key(writer, 0),
                sequence_key(
                    writer, max(0, min(sequence, next_sequence - 2 * REMEMBERED_SEQUENCES))
                ),
            )

    def latest(self, topic: Topic, where: TopicPartition) -> LatestOfPartition:
        """The latest changes of a partition's keys, for a topic that leaves out repeats."""
        self.is_changed = True
        head = self.head(where)
        if where not in self._latest:
            latest = self._state.latest_changes.of(
                topic, where, head, self.now_ms, read_back(self._state)
            )
            self._latest[where] = latest
            self.afterwards(latest.keep)
        latest = self._latest[where]
        latest.start = head.start  # retention may have raised it in this round
        return latest

    def count_duplicates(self, repeated: int) -> None:
        """Records were left out as repeats."""
        counters = self._state.counters

        def count() -> None:
            counters.duplicates_dropped += repeated

        self.afterwards(count)

    def set_catalogue(self, catalogue: Catalogue, changed: Topic | None) -> None:
        """Change what topics there are."""
        self.is_changed = True
        self.catalogue = catalogue
        if changed is not None:
            self.batch.put("topics", topic_key(changed.id), topic_to_bytes(changed))
        self.batch.put("meta", NEXT_TOPIC_ID, b"%d" % catalogue.next_id)

    def remove_records(self, removal: Removal) -> None:
        """Remove records below a start that this round raises, or of a topic that it drops."""
        self.is_changed = True
        self._removals.append(removal)

    def afterwards(self, call: Callable[[], None]) -> None:
        """Call this when the round is durable, before readers and callers learn of it."""
        self.is_changed = True
        self._afterwards.append(call)

    @property
    def changes_nothing(self) -> bool:
        """Its jobs have found everything as they want it: there is nothing to write."""
        return not (
            self._batch.operations
            or self._records
            or self._heads
            or self._positions
            or self._mirrors
            or self._mirror_modes
            or self._removals
        )

    def write(self) -> None:
        """Records first, heads last. Durable on return.

        WriteFailed: the store is in doubt. Whatever else is raised, no head has been written.
        """
        store, fault = self._state.store, self._state.options.fault
        # All is encoded before anything is written: what cannot be encoded leaves nothing behind.
        *before, last = self._encode()
        for batch in before:
            self._has_written = True
            store.write(batch, self._incarnation)
        store.write(last, self._incarnation)
        try:
            fault("publish.written")
            store.sync(self._incarnation)
            fault("publish.synced")
        except WriteFailed:
            raise
        except BaseException as error:  # the heads are written already
            raise store.doubt(error) from error

    def _encode(self) -> list[WriteBatch]:
        """What is written, in pieces; the last one has the heads."""
        pieces: list[WriteBatch] = []
        last = WriteBatch()
        for where, records in self._records.items():
            for key, encoded in self._encoded(where, records):
                if last.size_bytes + len(encoded) > MAX_WRITE_BYTES:
                    pieces.append(last)
                    last = WriteBatch()
                last.put("records", key, encoded)
        for (group, where), position in self._positions.items():
            if position is None:
                self._batch.delete("groups", group_key(group, where))
            else:
                self._batch.put("groups", group_key(group, where), pack_position(position))
        for where, mirror in self._mirrors.items():
            write_mirror(self._batch, where, self._state.mirrors.get(where), mirror)
        if self._mirror_modes is not None:
            write_modes(self._batch, self._state.mirror_modes, self._mirror_modes)
        for where, head in self._heads.items():
            self._batch.put("heads", partition_key(where), pack_head(head))
        note_removals(self._batch, self._removals)
        self._batch.put("meta", _LAST_ROUND, self._number)
        last.extend(self._batch)
        return [*pieces, last]

    def discard(self) -> None:
        """Remove the records of a round whose `write` raised before it came to the heads."""
        if self._has_written:
            for where in self._records:
                remove_beyond(self._state.store, where, self._state.heads.get(where))

    def is_stored(self) -> bool:
        """Whether the store holds the round, after a write that raised."""
        return self._state.store.get("meta", _LAST_ROUND) == self._number

    def publish(self) -> None:
        """Show it to readers."""
        self._state.catalogue = self.catalogue
        for key, position in self._positions.items():
            self._state.positions.put(key, position)
        for where, mirror in self._mirrors.items():
            if mirror is None:
                self._state.mirrors.pop(where, None)
            else:
                self._state.mirrors[where] = mirror
        self._state.mirror_modes = self.mirror_modes
        if self._state.publishing is not None:
            self._state.publishing.update(self._sequences)
        for call in self._afterwards:
            call()
        if self._positions:
            self._state.moves.add(len(self._positions))
        if self._heads:
            self._state.heads.publish(self._heads)
        for where in self._records:
            if self._sizes[where] < SMALL_BYTES:
                self._state.merges.note(where, 1)
        self._state.counters.records_appended += sum(map(len, self._records.values()))

    def remove_gone(self) -> None:
        """Remove the records that readers no longer ask for, now that the round was published.

        What fails here is done by recovery: it opens the log anew, before the next write.
        """
        if not self._removals:
            return
        batch = WriteBatch()
        try:
            remove(self._state.store, batch, self._removals)
            self._state.options.fault("removal.shown")
            self._state.store.write(batch, self._incarnation)
            self._state.options.fault("removal.written")
        except WriteFailed:
            pass
        except BaseException as error:  # noqa: BLE001 - the round is durable: nobody is told
            self._state.store.doubt(error)

    def _encoded(
        self, where: TopicPartition, records: list[Record]
    ) -> Iterator[tuple[bytes, bytes]]:
        head = self.head(where)
        few = self._sizes[where] <= TARGET_BYTES
        for chunk in [records] if few else _chunks(records):
            encoded, highest = encode_small(chunk, self.now_ms)
            base = head.next_offset
            head = Head(
                head.start,
                base + len(chunk),
                head.bytes + len(encoded),
                max(head.last_ts_ms, highest),
            )
            self._batch.put(
                "times",
                time_key(where, head.last_ts_ms, base),
                pack_batch_size(BatchSize(len(chunk), len(encoded))),
            )
            yield record_key(where, base), encoded
        self._heads[where] = head


def record_bytes(record: Record) -> int:
    """About what a record takes."""
    size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size


def _chunks(records: list[Record]) -> Iterator[list[Record]]:
    """The records in pieces that make good batches."""
    chunk: list[Record] = []
    size = 0
    for record in records:
        if chunk and size + record_bytes(record) > TARGET_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += record_bytes(record)
    yield chunk
