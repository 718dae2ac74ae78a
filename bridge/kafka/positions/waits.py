"""Who waits until a group has come to rest, and what is still missing. One thread's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitEmptyGroup,
    AwaitMirror,
    MoveNative,
    OneWay,
)
from duolog.bridge.kafka.positions.settler import Outcome

Done = Callable[[Outcome], bool]


def is_settled(outcome: Outcome) -> bool:
    """Both sides are at one place, and the echo of what was written has been read."""
    return outcome.step == Agreed() and not outcome.on_its_way


def has_noticed(outcome: Outcome) -> bool:
    """All that was committed in Kafka counts natively, whatever Kafka still waits for."""
    stands = isinstance(outcome.step, Agreed | AwaitEmptyGroup | OneWay)
    return stands and not outcome.on_its_way


def never_will(outcome: Outcome) -> bool:
    """Nothing is written for such a group: to wait is of no use."""
    return isinstance(outcome.step, OneWay)


def missing(outcome: Outcome) -> str:
    """What is still to come, for people."""
    place = f"topic '{outcome.topic}' partition {outcome.partition}"
    match outcome.step:
        case AwaitEmptyGroup():
            return f"{place}: the group has members in Kafka, and is moved when they have left"
        case AwaitMirror(offset):
            return f"{place}: Kafka's offset {offset} lies beyond what is mirrored"
        case Agreed(unmirrored) if unmirrored:
            return f"{place}: {unmirrored} acknowledged records are not mirrored yet"
        case OneWay():
            return (
                f"{place}: the group keeps metadata of its own in Kafka, as Kafka Streams does, so "
                "nothing is written there"
            )
        case MoveNative():
            return f"{place}: Kafka's offset is being taken over"
    return f"{place}: it is being written to Kafka"


@dataclass(eq=False)
class Wait:
    """One who waits for some partitions of a group; answered with what they are at then."""

    group: str
    concerns: Callable[[Outcome], bool]
    is_done: Done
    future: Future[tuple[Outcome, ...]] = field(default_factory=Future)
    last: tuple[Outcome, ...] | None = None  # None: it has not been looked at


class Waits:
    """All who wait."""

    def __init__(self) -> None:
        self._of: dict[str, list[Wait]] = {}

    def add(self, wait: Wait) -> None:
        self._of.setdefault(wait.group, []).append(wait)

    def looked(self, group: str, outcomes: Iterable[Outcome]) -> None:
        """A group was looked at; only looks since the wait began are counted."""
        waiting: Sequence[Wait] = self._of.pop(group, ())
        found = tuple(outcomes)
        kept = []
        for wait in waiting:
            wait.last = tuple(each for each in found if wait.concerns(each))
            if all(wait.is_done(each) or never_will(each) for each in wait.last):
                with suppress(InvalidStateError):
                    wait.future.set_result(wait.last)
            elif not wait.future.done():
                kept.append(wait)
        if kept:
            self._of[group] = kept

    def groups(self) -> list[str]:
        """Those that somebody waits for; who has given up is forgotten."""
        for group, waiting in list(self._of.items()):
            left = [wait for wait in waiting if not wait.future.done()]
            if left:
                self._of[group] = left
            else:
                del self._of[group]
        return list(self._of)

    def give_up(self) -> None:
        """Nobody looks any more."""
        for waiting in self._of.values():
            for wait in waiting:
                wait.future.cancel()
        self._of.clear()
