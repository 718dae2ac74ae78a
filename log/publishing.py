"""Publishing single records: durable on return, one sync for all who publish at the moment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from duolog.errors import (
    InvalidRequest,
    SequenceContentMismatch,
    SequenceGap,
    SequenceOutOfOrder,
    SequenceTooOld,
)
from duolog.log.catalogue import Catalogue, partition_of
from duolog.log.commits import Committer, Job
from duolog.log.keys import LAST_OFFSET, sequence_key
from duolog.log.model import Placed, Record, Topic, TopicPartition
from duolog.log.names import check_text_name
from duolog.log.published import (
    REMEMBERED_SEQUENCES,
    Published,
    content_of,
    pack_published,
    unpack_published,
)
from duolog.log.record_check import checked_record
from duolog.log.rounds import Round
from duolog.log.routing.murmur2_scalar import partition_of_key
from duolog.log.state import State
from duolog.log.timestamps import latest_allowed_ms

Then = Callable[[tuple[Placed, ...], BaseException | None], object]
"""Told where the records lie, or why not. It must not wait; what it raises is logged."""


class Publisher:
    """Publishes into an opened log."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer
        self._turns = itertools.count()

    def publish(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int | None,
        *,
        in_order: bool = False,
    ) -> tuple[Placed, ...]:
        """Append records to their topics, all or none, and return where they lie."""
        targets = self._checked(targets, writer, sequence, in_order)
        if not targets:
            return ()
        job = _Publish(targets, writer, sequence or 0, next(self._turns), in_order)
        job.choose_places(self._state.catalogue)  # here, since the committer's time is dearer
        self._committer.run(job)
        return job.placed

    def submit(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int | None,
        then: Then,
        *,
        in_order: bool = False,
    ) -> None:
        """The same without waiting; `then` is called in the committer's thread."""
        targets = self._checked(targets, writer, sequence, in_order)
        if not targets:
            then((), None)
            return
        job = _PublishThen(targets, writer, sequence or 0, next(self._turns), in_order, then)
        job.choose_places(self._state.catalogue)
        self._committer.submit(job)

    def _checked(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int | None,
        in_order: object,
    ) -> list[tuple[Topic, Record]]:
        """The targets with their records as they may be written."""
        options = self._state.options
        max_bytes = options.max_record_bytes
        latest_ms = latest_allowed_ms(options.clock.now_ms(), options.max_timestamp_ahead_seconds)
        checked = [
            (topic, checked_record(record, max_bytes, latest_ms)) for topic, record in targets
        ]
        if (writer is None) != (sequence is None):
            raise InvalidRequest("writer and sequence belong together: give both or none.")
        if not isinstance(in_order, bool) or (in_order and writer is None):
            raise InvalidRequest(
                f"in_order is true or false, and goes with a writer and a sequence; got "
                f"{in_order!r}{'' if writer else ' without them'}."
            )
        if writer is not None:
            check_text_name(writer, "writer")
            if type(sequence) is not int or not 0 <= sequence <= LAST_OFFSET - len(checked):
                raise InvalidRequest(f"sequence must be a whole number from 0; got {sequence!r}.")
        return checked

    def last_sequence(self, writer: str) -> int | None:
        """The highest sequence that a publisher has used."""
        job = _LastSequence(check_text_name(writer, "writer"))
        self._committer.run(job)
        return job.sequence

    def published(self, writer: object, sequence: object) -> Published | None:
        """What is remembered of a sequence, if anything is stored of it."""
        if (
            not isinstance(writer, str)
            or type(sequence) is not int
            or not 0 <= sequence <= LAST_OFFSET
        ):
            return None
        stored = self._state.store.get(
            "epochs", sequence_key(check_text_name(writer, "writer"), sequence)
        )
        return None if stored is None else unpack_published(stored)


class _LastSequence(Job):
    """Asked of the committer, so that what is written but not durable yet is not seen."""

    def __init__(self, writer: str) -> None:
        super().__init__()
        self._writer = writer
        self.sequence: int | None = None

    def prepare(self, round_: Round) -> None:
        self.sequence = round_.highest_sequence(self._writer)


class _Publish(Job):
    def __init__(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int,
        turn: int,
        in_order: bool,
    ) -> None:
        super().__init__()
        self._targets = targets
        self._writer = writer
        self._sequence = sequence
        self._turn = turn
        self._in_order = in_order
        self._places: list[TopicPartition] = []
        self._places_chosen_for: Catalogue | None = None
        self.placed: tuple[Placed, ...] = ()

    def gates(self, state: State) -> frozenset[TopicPartition]:
        if self._places_chosen_for is not state.catalogue:
            self.choose_places(state.catalogue)
        return frozenset(self._places)

    def choose_places(self, catalogue: Catalogue) -> None:
        """Find the partition of each record."""
        self._places = [
            self._place(catalogue.topic(topic.id), record) for topic, record in self._targets
        ]
        self._places_chosen_for = catalogue

    def _place(self, topic: Topic, record: Record) -> TopicPartition:
        if record.partition is not None:
            return partition_of(topic, record.partition)
        if topic.partitions == 1:
            return TopicPartition(topic.id, 0)
        if record.key is None:
            return TopicPartition(topic.id, self._turn % topic.partitions)
        return TopicPartition(topic.id, partition_of_key(record.key, topic.partitions))

    def prepare(self, round_: Round) -> None:
        catalogue = round_.catalogue
        topics = [catalogue.topic(where.topic_id) for where in self._places]
        highest = None if self._writer is None else round_.highest_sequence(self._writer)
        answered = self._answers(round_, highest)  # all is decided before anything is added
        placed: list[Placed] = []
        repeated = 0
        for nth, (where, (_, record)) in enumerate(zip(self._places, self._targets, strict=True)):
            if answered and (known := answered.get(nth)) is not None:
                placed.append(known)
                continue
            topic = topics[nth]
            if topic.settings.dedup_window_seconds is None:
                offset = round_.add(where, record)
            else:
                offset, is_news = _add_news(round_, topic, where, record)
                repeated += not is_news
            placed.append(Placed(topic.name, where.partition, offset, topic.id))
            if self._writer is not None:
                round_.remember_publish(
                    self._writer,
                    self._sequence + nth,
                    pack_published(Published(where, offset, content_of(record), round_.now_ms)),
                )
        if self._writer is not None:
            round_.forget_publishes(
                self._writer, highest, self._sequence, self._sequence + len(placed)
            )
        if repeated:
            round_.count_duplicates(repeated)
        self.placed = tuple(placed)

    def _answers(self, round_: Round, highest: int | None) -> dict[int, Placed]:
        """Where those records lie that were sent before, by their number in the call."""
        if self._writer is None or highest is None:
            return {}
        if self._sequence > highest:
            if self._in_order and self._sequence > highest + 1:
                raise SequenceGap(
                    f"Writer '{self._writer}' publishes in order and has published up to sequence "
                    f"{highest}; {self._sequence} leaves out {self._sequence - highest - 1}. Send "
                    f"{highest + 1} next."
                )
            return {}
        answers: dict[int, Placed] = {}
        for nth, target in enumerate(self._targets[: highest + 1 - self._sequence]):
            answered = self._answered_before(
                round_, self._writer, self._sequence + nth, highest, target
            )
            if answered is not None:
                answers[nth] = answered
            elif self._in_order:
                raise SequenceOutOfOrder(
                    f"Writer '{self._writer}' publishes in order and has published up to sequence "
                    f"{highest}, but never {self._sequence + nth}. Send {highest + 1} next."
                )
        return answers

    def _answered_before(
        self,
        round_: Round,
        writer: str,
        sequence: int,
        highest: int,
        target: tuple[Topic, Record],
    ) -> Placed | None:
        """Where a record went that was sent before; None when it was not."""
        stored = round_.stored_publish(writer, sequence)
        if stored is not None:
            topic, record = target
            published = unpack_published(stored)
            same_topic = published.where.topic_id == topic.id
            if not same_topic or not published.is_of(record):
                raise SequenceContentMismatch(
                    f"Writer '{writer}' has already published sequence {sequence}, with another "
                    f"{'record' if same_topic else 'topic'}. Give each new record the next "
                    "sequence, and each use its own writer."
                )
            return Placed(topic.name, published.where.partition, published.offset, topic.id)
        if sequence <= highest - REMEMBERED_SEQUENCES:
            raise SequenceTooOld(
                f"Writer '{writer}' has published up to sequence {highest}; {sequence} is too far "
                f"back to say whether it was written (the last {REMEMBERED_SEQUENCES} are "
                f"remembered). Send {highest + 1} next, or use another writer's name for another "
                "input."
            )
        return None


class _PublishThen(_Publish):
    """One whose caller does not wait."""

    def __init__(
        self,
        targets: Sequence[tuple[Topic, Record]],
        writer: str | None,
        sequence: int,
        turn: int,
        in_order: bool,
        then: Then,
    ) -> None:
        super().__init__(targets, writer, sequence, turn, in_order)
        self._then = then

    def finish(self, error: BaseException | None) -> None:
        self._then(self.placed, error)


def _add_news(
    round_: Round, topic: Topic, where: TopicPartition, record: Record
) -> tuple[int, bool]:
    """A record that repeats its key's latest change gets that one's offset."""
    ts_ms = round_.now_ms if record.ts_ms is None else record.ts_ms
    change = (record.key, ts_ms, int(record.op), record.table, record.value)
    latest = round_.latest(topic, where)
    offset = latest.repeats(*change)
    if offset is not None:
        return offset, False
    offset = round_.add(where, record)
    latest.note(*change, offset)
    return offset, True
