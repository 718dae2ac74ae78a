"""All that a consumer decides: what to ask for, what to hand out, what is done, what comes again.

Pure: no clock, no host; times are handed in. The rules:

- What was handed out comes again in this consumer only when it was refused, or after a seek.
- A partition's records come in order. While a refused one waits, nothing new of its partition is
  handed out.
- The host is told a position only when everything before it is done.
- While all is done and the host knows it, the host says where the group is; so what others of the
  group acknowledge, or a group that was moved, is followed. Else it is asked by offsets.
- As a member of a group it has the partitions that the host tells. Of those that it loses nothing
  more is handed out, and nothing of them counts as done.
- A topic is asked for by its id too, once that is known. One that was dropped and made again is
  read from its first record on: all of it was written after the consumer began. Nothing that was
  handed out of the one before counts as done in it.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from duolog.client.again import Again
from duolog.client.model import Ack, Page, Piece, Place, Question, Seat, Source
from duolog.client.progress import Progress
from duolog.errors import (
    InvalidRequest,
    InvalidSetting,
    OffsetOutOfRange,
    PartitionRevoked,
    TopicRecreated,
)
from duolog.log.model import position_after


class Deliveries:
    """The state of one consumer. Safe for a thread that takes while another one asks."""

    def __init__(
        self, sources: Iterable[Source], start: Any, *, has_group: bool, joins: bool = False
    ) -> None:
        """`joins`: as a member of the group, in topics of which no partition is named."""
        self._start = start
        self._has_group = has_group
        self._guard = threading.Lock()  # of all below
        self._turns = dict.fromkeys(sources, 0)
        members = [each for each in self._turns if joins and has_group and each.partition is None]
        self._seats = dict.fromkeys(members, Seat())
        self._has_stale = False  # without the guard, for each record of a loop
        self._revoked: set[Place] = set()
        self._names: dict[str, str] = {}
        self._topic_ids: dict[str, int] = {}
        self._restarted: set[str] = set()  # topics that were made again
        self._progress: dict[Place, Progress] = {}
        self._ready: deque[Piece] = deque()
        self._again = Again()
        self._in_hand: list[Piece] = []
        self._told: dict[Place, Ack] = {}  # what was acknowledged last

    # -- asking

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self._turns)

    def hungry(self) -> list[Source]:
        """The sources of which nothing is left to hand out."""
        with self._guard:
            full = {piece.place for piece in self._ready}
            return [each for each in self._turns if not any(each.holds(one) for one in full)]

    def question(self, source: Source) -> Question:
        with self._guard:
            known = {p: each for p, each in self._progress.items() if source.holds(p)}
            start = "Earliest" if source.topic in self._restarted else self._start
            seat = self._seats.get(source)
            topic_id = self._topic_ids.get(source.topic)
            if known:
                offsets = {str(p.partition): each.next_offset for p, each in sorted(known.items())}
                start = {"Offsets": offsets}
            if seat is not None:
                own = {p.partition: e.next_offset for p, e in known.items() if not e.is_settled}
                return Question(source, True, start, self._turns[source], seat, own, topic_id)
            as_group = self._has_group and all(each.is_settled for each in known.values())
            turn = self._turns[source]
            return Question(source, as_group, start, turn, topic_id=topic_id)

    def accept(self, question: Question, page: Page) -> bool:
        """Take an answer in; False for one that a seek has made worthless, or that is of another
        topic of this name than what was read before.
        """
        source = question.source
        with self._guard:
            if self._turns[source] != question.turn:
                return False
            if page.topic_id is not None:
                known = self._topic_ids.setdefault(source.topic, page.topic_id)
                if known != page.topic_id:
                    return False
            self._learn_name(source.topic, page.topic)
            if page.seat is not None:
                self._sit(source, page.seat)
            first: dict[int, int] = dict(page.next_offsets)
            for partition, batch in page.batches:
                first[partition] = min(first[partition], batch.first_offset)
            for left_out in page.left_out:  # the host began there, and found no records
                at = left_out.partition
                first[at] = min(first.get(at, left_out.next_offset), left_out.first_offset)
            for partition, offset in first.items():
                self._learn(question, Place(source.topic, partition), offset)
            for partition, batch in page.batches:
                place = Place(source.topic, partition)
                start = max(batch.first_offset, self._progress[place].next_offset)
                if start < batch.next_offset:
                    stop, topic_id = batch.next_offset, page.topic_id
                    self._ready.append(Piece(place, batch, start, stop, topic_id=topic_id))
            return True

    def _learn(self, question: Question, place: Place, offset: int) -> None:
        """The host answers from here on in a partition."""
        progress = self._progress.get(place)
        if progress is None:
            self._progress[place] = Progress(offset)
        elif question.as_group and place.partition not in question.next_offsets:
            if progress.next_offset != offset:  # the group was moved, or others did it
                progress.begin(offset)
        elif question.seat is None:
            progress.skip_to(offset)
        elif progress.next_offset != offset:  # it was not this member's all the time
            self._drop(place)
            progress.begin(offset)
            self._revoked.add(place)

    # -- topics that were made again

    def restart(self, topic: str, topic_id: int | None) -> None:
        """Begin with the first record of the topic that has this name now, unless the one with
        this id, which was read before, has been left already.
        """
        with self._guard:
            if self._topic_ids.get(topic) != topic_id:
                return
            self._topic_ids.pop(topic, None)
            self._restarted.add(topic)
            for source in [each for each in self._turns if each.topic == topic]:
                self._turns[source] += 1
                if source in self._seats:
                    self._seats[source] = Seat()
            self._count_stale()
            for place in [each for each in self._progress if each.topic == topic]:
                self._drop(place)
                self._in_hand = [piece for piece in self._in_hand if piece.place != place]
                del self._progress[place]
                self._told.pop(place, None)
                self._revoked.discard(place)

    def check_topic(self, piece: Piece) -> None:
        """Raises TopicRecreated for what was handed out of a topic that is gone."""
        topic = piece.place.topic
        with self._guard:
            now = self._topic_ids.get(topic)
            is_known = now is not None or topic in self._restarted
        if is_known and piece.topic_id not in {None, now}:
            raise TopicRecreated(
                f"Topic '{topic}' was dropped and made again since offset {piece.start} of "
                f"partition {piece.place.partition} was handed out: there is nothing left to "
                "acknowledge, and nothing comes again.",
                topic=topic,
                topic_id=now,
            )

    # -- as a member of a group

    def _sit(self, source: Source, seat: Seat) -> None:
        self._seats[source] = seat
        self._count_stale()
        for place in [each for each in self._progress if source.holds(each)]:
            if place.partition not in seat.assigned:
                self._lose(place)

    def _lose(self, place: Place) -> None:
        """It is another member's now: nothing of it is handed out or done any more."""
        self._drop(place)
        self._in_hand = [piece for piece in self._in_hand if piece.place != place]
        self._progress.pop(place, None)
        self._revoked.add(place)

    def lose(self, ack: Ack) -> None:
        """The host does not take an acknowledgement, as the partition is somebody else's."""
        with self._guard:
            self._lose(ack.place)

    def to_ask_again(self, seat: Seat | None) -> None:
        """The host says that a member's partitions have changed, or that it does not know it."""
        with self._guard:
            for source, known in self._seats.items():
                if seat is not None and _is_same(known, seat):
                    self._seats[source] = replace(known, is_stale=True)
            self._count_stale()

    @property
    def has_stale(self) -> bool:
        return self._has_stale

    def _count_stale(self) -> None:
        self._has_stale = any(
            seat.is_stale and seat.member_id is not None for seat in self._seats.values()
        )

    def stale(self) -> list[Source]:
        """Those that have been members, and are to ask which partitions they have now."""
        with self._guard:
            seats = self._seats.items()
            return [each for each, seat in seats if seat.is_stale and seat.member_id is not None]

    @property
    def is_member_everywhere(self) -> bool:
        """Whether each source is read as a member of the group, which tells where it goes on."""
        with self._guard:
            seats = [self._seats.get(source) for source in self._turns]
            return all(
                seat is not None and seat.member_id is not None and not seat.is_stale
                for seat in seats
            )

    def seats(self) -> dict[Source, Seat]:
        """The places in the group that the host knows of."""
        with self._guard:
            return {s: seat for s, seat in self._seats.items() if seat.member_id is not None}

    def is_elsewhere(self, place: Place) -> bool:
        """Whether a partition may be another member's."""
        with self._guard:
            return any(source.holds(place) for source in self._seats)

    def go_on_after(self, question: Question, error: OffsetOutOfRange) -> bool:
        """Pass over what retention has removed; False when that is not what the error is about."""
        place = Place(question.source.topic, error.partition)
        with self._guard:
            progress = self._progress.get(place)
            if progress is None or progress.next_offset >= error.earliest:
                return False
            progress.skip_to(error.earliest)
            return True

    def _learn_name(self, reference: str, name: str) -> None:
        self._names[reference] = name
        others = [each for each, known in self._names.items() if known == name]
        if len(others) > 1:
            raise InvalidSetting(
                f"{' and '.join(map(repr, sorted(others)))} are one topic, '{name}'. Name it once."
            )

    # -- handing out

    @property
    def has_ready(self) -> bool:
        """Whether anything new is left to hand out."""
        with self._guard:
            return bool(self._ready)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is left to hand out, nor comes again."""
        with self._guard:
            return not self._ready and not self._again.places and not self._has_stale

    def batches(self) -> list[Any]:
        """The batches of which something will be handed out."""
        with self._guard:
            pieces = (*self._ready, *self._again.pieces())
            return list({id(piece.batch): piece.batch for piece in pieces}.values())

    def take(self, limit: int, now: float, *, only_decoded: bool = False) -> list[Piece]:
        """Hand out at most so many records: those that are due again first."""
        with self._guard:
            if only_decoded and not self._is_decoded():
                return []
            waiting = self._again.places
            taken = self._again.due(now)[:limit]
            for piece in taken:
                self._again.remove(piece.place, piece.start)
            limit -= len(taken)
            held: list[Piece] = []
            while self._ready and limit > 0:
                piece = self._ready.popleft()
                if piece.place in waiting:
                    held.append(piece)
                    continue
                stop = min(piece.stop, piece.start + limit)
                if stop < piece.stop:
                    self._ready.appendleft(piece.cut(stop, piece.stop))
                taken.append(piece.cut(piece.start, stop))
                progress = self._progress[piece.place]
                progress.skip_to(piece.start)  # before it are no records
                progress.hand_out(stop)
                limit -= stop - piece.start
            self._ready.extendleft(reversed(held))
            self._in_hand = taken
            return taken

    def _is_decoded(self) -> bool:
        """Whether what comes next is; all that waits to come again may come next."""
        pieces = (*self._again.pieces(), *self._ready)
        return all(piece.batch.values is not None for piece in pieces)

    def next_due(self) -> float | None:
        """When the next record comes again."""
        with self._guard:
            return self._again.next_due()

    # -- what became of it

    def finish(self, place: Place, start: int, stop: int) -> None:
        """These are done, but for those that wait to come again."""
        with self._guard:
            self._check_handed_out(place, stop)
            self._finish(place, start, stop)

    def finish_one(self, place: Place, offset: int) -> None:
        """This one is done, also if it was refused before."""
        with self._guard:
            self._check_handed_out(place, offset + 1)
            self._again.remove(place, offset)
            self._finish(place, offset, offset + 1)

    def finish_in_hand(self) -> None:
        """What the last `take` gave is done, but for what was refused."""
        with self._guard:
            for piece in self._in_hand:
                self._finish(piece.place, piece.start, piece.stop)
            self._in_hand = []

    def finish_all(self) -> None:
        """Everything handed out is done, but for what waits to come again."""
        with self._guard:
            for place, progress in self._progress.items():
                self._finish(place, progress.floor, progress.next_offset)
            self._in_hand = []

    def come_again(self, piece: Piece, due: float) -> None:
        """Hand this record out again, as the attempt that the piece says."""
        with self._guard:
            self._check_handed_out(piece.place, piece.stop)
            if not self._progress[piece.place].is_done(piece.start):
                self._again.add(piece, due)

    def give_back_in_hand(self) -> None:
        """What the last `take` gave was not used: it comes first next time."""
        with self._guard:
            for piece in self._in_hand:
                progress = self._progress[piece.place]
                refused = set(self._again.offsets(piece.place))
                for offset in range(piece.start, piece.stop):
                    if offset not in refused and not progress.is_done(offset):
                        self._again.add(piece.cut(offset, offset + 1), -math.inf)
            self._in_hand = []

    def acks(self) -> list[Ack]:
        """What the host is to be told."""
        with self._guard:
            if not self._has_group:
                return []
            told = ((place, each.to_commit) for place, each in self._progress.items())
            return [
                Ack(place, position, self._seat_of(place), self._topic_ids.get(place.topic))
                for place, position in told
                if position is not None
            ]

    def _seat_of(self, place: Place) -> Seat | None:
        return next((seat for each, seat in self._seats.items() if each.holds(place)), None)

    def is_committed(self, ack: Ack) -> bool:
        """Whether the host knows as much."""
        with self._guard:
            progress = self._progress.get(ack.place)
            return progress is not None and progress.committed >= ack.position

    def all_acks(self) -> list[Ack]:
        """The same, and once more what the host was told before."""
        new = {ack.place: ack for ack in self.acks()}
        with self._guard:
            told = {
                place: replace(ack, seat=self._seat_of(place))
                for place, ack in self._told.items()
                if place in self._progress
            }
            return list({**told, **new}.values())

    def acknowledged(self, ack: Ack, upto_offset: int) -> None:
        """The host has it, and says how far the group is."""
        with self._guard:
            progress = self._progress.get(ack.place)
            if progress is None:  # it has been lost since
                return
            self._told[ack.place] = ack
            progress.acknowledged(ack.position, position_after(upto_offset))
            self._drop(ack.place, before=progress.floor)

    # -- places

    def is_known(self, place: Place) -> bool:
        with self._guard:
            return place in self._progress

    def position(self, place: Place) -> int:
        """The offset that is handed out next."""
        with self._guard:
            return self._progress[place].next_offset

    def seek(self, place: Place, offset: int) -> None:
        """Go on from another offset. What was handed out before needs no answer any more."""
        with self._guard:
            for source in self._turns:
                if source.holds(place):
                    self._turns[source] += 1
            self._drop(place)
            self._in_hand = [piece for piece in self._in_hand if piece.place != place]
            self._progress[place].seek(offset)
            # The rest of a page lies behind in other partitions: it stays.

    def place_of(self, topic: str, partition: int) -> Place:
        """The place that a user means: a topic by the name or alias that it was subscribed by."""
        for reference in dict.fromkeys(source.topic for source in self._turns):
            if topic in {reference, self._names.get(reference)}:
                place = Place(reference, partition)
                if any(source.holds(place) for source in self._turns):
                    return place
        raise InvalidRequest(
            f"This consumer does not read topic '{topic}' partition {partition}. It reads "
            f"{', '.join(sorted(map(str, self._turns)))}."
        )

    def _finish(self, place: Place, start: int, stop: int) -> None:
        progress = self._progress[place]
        for offset in self._again.offsets(place):
            if start <= offset < stop:
                progress.finish(start, offset)
                start = offset + 1
        progress.finish(start, stop)

    def _check_handed_out(self, place: Place, stop: int) -> None:
        progress = self._progress.get(place)
        if progress is None or stop > progress.next_offset:
            if place in self._revoked:
                raise PartitionRevoked(
                    f"Topic '{place.topic}' partition {place.partition} has become another "
                    f"member's since offset {stop - 1} was handed out: it is not acknowledged, and "
                    "comes again there."
                )
            raise InvalidRequest(
                f"Offset {stop - 1} of topic '{place.topic}' partition {place.partition} was not "
                "handed out by this consumer, or it was before a seek. Acknowledge what it gave."
            )

    def _drop(self, place: Place, *, before: int | None = None) -> None:
        """Of a partition, what is ready or waits: all of it, or what lies before an offset."""
        kept: deque[Piece] = deque()
        for piece in self._ready:
            if piece.place != place:
                kept.append(piece)
            elif before is not None and piece.stop > before:
                kept.append(piece.cut(max(piece.start, before), piece.stop))
        self._ready = kept
        self._again.drop(place, before=before)


def _is_same(known: Seat, seat: Seat) -> bool:
    """Whether what was said of one seat is still to be said of the other."""
    return (known.member_id, known.generation) == (seat.member_id, seat.generation)
