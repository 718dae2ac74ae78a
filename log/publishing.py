"""Publishing single records: durable on return, one sync for all who publish at the moment."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence

from duolog.errors import (
    InvalidRecord,
    InvalidRequest,
    RecordTooLarge,
    SequenceContentMismatch,
    SequenceTooOld,
    UnsupportedFormat,
)
from duolog.log.catalogue import Catalogue, partition_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import LAST_OFFSET
from duolog.log.model import Placed, Record, Topic, TopicPartition
from duolog.log.names import check_text_name
from duolog.log.rounds import Round
from duolog.log.routing.murmur2_scalar import partition_of_key
from duolog.log.state import State

REMEMBERED_SEQUENCES = 1024
_VERSION = 1
_MAX_HEADERS = 1000
_LATEST_TIME_MS = 2**62


class Publisher:
    """Publishes into an opened log."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer
        self._turns = itertools.count()

    def publish(
        self, targets: Sequence[tuple[Topic, Record]], writer: str | None, sequence: int | None
    ) -> tuple[Placed, ...]:
        """Append records to their topics, all or none, and return where they lie."""
        for _, record in targets:
            check_record(record, self._state.options.max_record_bytes)
        if (writer is None) != (sequence is None):
            raise InvalidRequest("writer and sequence belong together: give both or none.")
        if writer is not None:
            check_text_name(writer, "writer")
            if not isinstance(sequence, int) or not 0 <= sequence < LAST_OFFSET:
                raise InvalidRequest(f"sequence must be a whole number from 0; got {sequence!r}.")
        if not targets:
            return ()
        job = _Publish(targets, writer, sequence or 0, next(self._turns))
        self._committer.run(job)
        return job.placed


def check_record(record: Record, max_record_bytes: int) -> None:
    """Refuse what no topic takes."""
    for what, content in (("value", record.value), ("key", record.key)):
        if content is not None and not isinstance(content, bytes):
            raise InvalidRecord(
                f"A record's {what} must be bytes or None; got {type(content).__name__}."
            )
    if record.ts_ms is not None and not 0 <= record.ts_ms <= _LATEST_TIME_MS:
        raise InvalidRecord(f"A record's ts_ms must be 0 or more; got {record.ts_ms}.")
    if len(record.headers) > _MAX_HEADERS:
        raise InvalidRecord(f"A record has {len(record.headers)} headers, {_MAX_HEADERS} go in.")
    for name, value in record.headers:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise InvalidRecord("A header is a text name and a value of bytes or None.")
    size = len(record.value or b"") + len(record.key or b"")
    size += sum(len(name) + len(value or b"") for name, value in record.headers)
    if size > max_record_bytes:
        raise RecordTooLarge(
            f"A record of {size} bytes is over the limit of {max_record_bytes}. Make it smaller, "
            "or raise max_record_bytes (and max.message.bytes of its Kafka topic)."
        )


class _Publish(Job):
    def __init__(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int,
        turn: int,
    ) -> None:
        super().__init__()
        self._targets = targets
        self._writer = writer
        self._sequence = sequence
        self._turn = turn
        self._places: list[TopicPartition] = []
        self._places_chosen_for: Catalogue | None = None
        self.placed: tuple[Placed, ...] = ()

    def gates(self, state: State) -> frozenset[TopicPartition]:
        if self._places_chosen_for is not state.catalogue:
            self._choose_places(state.catalogue)
        return frozenset(self._places)

    def _choose_places(self, catalogue: Catalogue) -> None:
        self._places = [
            self._place(catalogue.topic(topic.id), record) for topic, record in self._targets
        ]
        self._places_chosen_for = catalogue

    def _place(self, topic: Topic, record: Record) -> TopicPartition:
        if record.partition is not None:
            return partition_of(topic, record.partition)
        if record.key is None:
            return TopicPartition(topic.id, self._turn % topic.partitions)
        return TopicPartition(topic.id, partition_of_key(record.key, topic.partitions))

    def prepare(self, round_: Round) -> None:
        if self._writer is not None and self._answered_before(round_, self._writer):
            return
        offsets: list[int] = []
        repeated = 0
        for where, (_, record) in zip(self._places, self._targets, strict=True):
            topic = round_.catalogue.topic(where.topic_id)
            if topic.settings.dedup_window_seconds is None:
                offsets.append(round_.add(where, record))
                continue
            offset, is_news = _add_news(round_, topic, where, record)
            offsets.append(offset)
            repeated += not is_news
        if repeated:
            round_.count_duplicates(repeated)
        self.placed = tuple(
            Placed(round_.catalogue.topic(where.topic_id).name, where.partition, offset)
            for where, offset in zip(self._places, offsets, strict=True)
        )
        if self._writer is not None:
            self._remember(round_, self._writer)

    # -- a publisher that sends again

    def _answered_before(self, round_: Round, writer: str) -> bool:
        """Whether this sequence has been written; then the first answer is given again."""
        stored = round_.stored_publish(writer, self._sequence)
        if stored is not None:
            fields = json.loads(stored)
            if fields["v"] != _VERSION:
                raise UnsupportedFormat(
                    f"A publish is stored as version {fields['v']}. Use a newer Duolog."
                )
            if fields["content"] != self._content():
                raise SequenceContentMismatch(
                    f"Writer '{writer}' has already published sequence {self._sequence}, with "
                    "other records. Give each new record the next sequence."
                )
            self.placed = tuple(Placed(*place) for place in fields["placed"])
            return True
        highest = round_.highest_sequence(writer)
        if highest is not None and self._sequence <= highest - REMEMBERED_SEQUENCES:
            raise SequenceTooOld(
                f"Writer '{writer}' has published up to sequence {highest}; {self._sequence} is "
                f"too far back to say whether it was written (the last {REMEMBERED_SEQUENCES} are "
                "remembered)."
            )
        return False

    def _remember(self, round_: Round, writer: str) -> None:
        stored = {
            "v": _VERSION,
            "content": self._content(),
            "placed": [[placed.topic, placed.partition, placed.offset] for placed in self.placed],
        }
        round_.remember_publish(
            writer, self._sequence, json.dumps(stored, separators=(",", ":")).encode()
        )
        if self._sequence % REMEMBERED_SEQUENCES == 0 and self._sequence:
            round_.forget_publishes(writer, max(0, self._sequence - 2 * REMEMBERED_SEQUENCES))

    def _content(self) -> str:
        content = hashlib.blake2b(digest_size=16)
        for topic, record in self._targets:
            content.update(topic.id.to_bytes(4, "big"))
            for part in (record.key, record.value):
                size = -1 if part is None else len(part)
                content.update(size.to_bytes(8, "big", signed=True))
                content.update(part or b"")
        return content.hexdigest()


def _add_news(
    round_: Round, topic: Topic, where: TopicPartition, record: Record
) -> tuple[int, bool]:
    """A record that repeats its key's latest change gets that one's offset."""
    ts_ms = round_.now_ms if record.ts_ms is None else record.ts_ms
    change = (record.key, ts_ms, int(record.op), record.table, record.value)
    latest = round_.latest(topic, where, ts_ms)
    offset = latest.repeats(*change)
    if offset is not None:
        return offset, False
    offset = round_.add(where, record)
    latest.note(*change, offset)
    return offset, True
