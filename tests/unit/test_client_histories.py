"""Random histories of a consumer and its host: polls, acks, refusals, lost answers, deaths.

Whatever happens: the group never stands behind a record that nobody has used, a record comes twice
in one life only when it was refused, and partitions keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.client.deliveries import Deliveries
from duolog.client.model import Page, Piece, Question, Source

PARTITIONS = 3
ORDERS = Source("orders")


@dataclass(frozen=True)
class Records:
    first_offset: int
    next_offset: int


@dataclass
class World:
    """The host's side, and what the user has done."""

    heads: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    group: dict[int, int] = field(default_factory=dict)
    used: set[tuple[int, int]] = field(default_factory=set)
    core: Deliveries = field(init=False)
    seen: set[tuple[int, int]] = field(default_factory=set)  # in this life, and not refused since
    in_hand: list[tuple[Piece, int]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.begin_life()

    def begin_life(self) -> None:
        self.core = Deliveries([ORDERS], "Earliest", has_group=True)
        self.seen.clear()
        self.in_hand.clear()
        self.last.clear()

    def answer(self, question: Question, limit: int) -> Page:
        batches: list[tuple[int, Any]] = []
        next_offsets = {}
        for partition, head in enumerate(self.heads):
            at = (
                0
                if question.start == "Earliest"
                else question.start["Offsets"].get(str(partition), 0)
            )
            if question.as_group:
                at = self.group.get(partition, at)
            end = min(head, at + limit)
            next_offsets[partition] = end
            if at < end:
                batches.append((partition, Records(at, end)))
        return Page("orders", next_offsets, batches)

    def poll(self, limit: int, *, is_lost: bool) -> None:
        for source in self.core.hungry():
            question = self.core.question(source)
            page = self.answer(question, limit)
            if not is_lost:
                self.core.accept(question, page)

    def take(self, limit: int) -> None:
        for piece in self.core.take(limit, self.now):
            for offset in range(piece.start, piece.stop):
                place = (piece.place.partition, offset)
                assert place not in self.seen
                self.seen.add(place)
                if piece.attempt == 1:
                    assert offset > self.last.get(place[0], -1)
                    self.last[place[0]] = offset
                one = replace(piece, start=offset, stop=offset + 1)
                self.in_hand.append((one, offset))

    def use(self, which: int) -> None:
        if self.in_hand:
            piece, offset = self.in_hand.pop(which % len(self.in_hand))
            self.used.add((piece.place.partition, offset))
            self.core.finish_one(piece.place, offset)

    def refuse(self, which: int) -> None:
        if self.in_hand:
            piece, offset = self.in_hand.pop(which % len(self.in_hand))
            self.seen.discard((piece.place.partition, offset))
            again = replace(piece, attempt=piece.attempt + 1)
            self.core.come_again(again, self.now + which % 3)

    def use_all(self) -> None:
        for piece, offset in self.in_hand:
            self.used.add((piece.place.partition, offset))
        self.in_hand.clear()
        self.core.finish_all()

    def commit(self, lost: int) -> None:
        """0: all goes well; 1: the answer is lost; 2: it never arrives."""
        for ack in self.core.acks():
            if lost == 2:
                continue
            partition = ack.place.partition
            assert ack.upto_offset < self.heads[partition]
            self.group[partition] = max(self.group.get(partition, 0), ack.position)
            if lost == 0:
                self.core.acknowledged(ack, self.group[partition] - 1)

    def others(self, partition: int, records: int) -> None:
        """Another consumer of the group uses some and acknowledges them."""
        at = self.group.get(partition, 0)
        end = min(self.heads[partition], at + records)
        if end > at:
            self.used |= {(partition, offset) for offset in range(at, end)}
            self.group[partition] = end

    def check(self) -> None:
        for partition, position in self.group.items():
            unused = [at for at in range(position) if (partition, at) not in self.used]
            assert not unused, f"partition {partition} stands at {position}, {unused} are not used"


STEPS = st.tuples(
    st.sampled_from(
        [
            "append",
            "poll",
            "take",
            "use",
            "use",
            "refuse",
            "use_all",
            "commit",
            "die",
            "wait",
            "others",
        ]
    ),
    st.integers(0, 7),
    st.integers(0, 2),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=80))
def test_nothing_is_lost_and_nothing_comes_twice(steps: list[tuple[str, int, int]]) -> None:
    world = World()
    for step, number, which in steps:
        match step:
            case "append":
                world.heads[which] += number
            case "poll":
                world.poll(number + 1, is_lost=which == 2)
            case "take":
                world.take(number + 1)
            case "use":
                world.use(number)
            case "refuse":
                world.refuse(number)
            case "use_all":
                world.use_all()
            case "commit":
                world.commit(which)
            case "die":
                world.begin_life()
            case "others":
                world.others(which, number)
            case "wait":
                world.now += number
        world.check()
    for _ in range(sum(world.heads) + 3):
        world.now += 10
        world.take(100)
        world.use_all()
        world.commit(0)
        world.poll(100, is_lost=False)
    assert world.used == {(p, at) for p, head in enumerate(world.heads) for at in range(head)}
    assert all(world.group.get(p, 0) == head for p, head in enumerate(world.heads))
