"""Who waits for a group to come to rest: when they are answered, and what is said to be missing."""

from __future__ import annotations

import pytest

from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitEcho,
    AwaitEmptyGroup,
    AwaitMirror,
    Moved,
    MoveNative,
    OneWay,
    Step,
    WriteKafka,
)
from duolog.bridge.kafka.positions.settler import Outcome
from duolog.bridge.kafka.positions.waits import (
    Wait,
    Waits,
    has_noticed,
    is_settled,
    missing,
    never_will,
)
from duolog.log.groups_seen import KafkaWrite


def outcome(step: Step, *, on_its_way: bool = False, partition: int = 0) -> Outcome:
    return Outcome("g", "orders", partition, step, on_its_way)


@pytest.mark.parametrize(
    ("step", "settled", "noticed", "said"),
    [
        (Agreed(), True, True, ""),
        (Agreed(3), False, True, "3 acknowledged records are not mirrored yet"),
        (AwaitEmptyGroup(5), False, True, "has members in Kafka"),
        (OneWay(), False, True, "metadata of its own"),
        (AwaitMirror(9), False, False, "offset 9 lies beyond"),
        (MoveNative(9, Moved.FORWARD), False, False, "taken over"),
        (WriteKafka(9), False, False, "being written"),
        (AwaitEcho(KafkaWrite("n", 9)), False, False, "being written"),
    ],
)
def test_what_each_step_means_for_who_waits(
    step: Step, settled: bool, noticed: bool, said: str
) -> None:
    assert is_settled(outcome(step)) is settled
    assert has_noticed(outcome(step)) is noticed
    assert said in missing(outcome(step))
    for rule in (is_settled, has_noticed):
        assert not rule(outcome(step, on_its_way=True))  # its echo may bring something
    assert never_will(outcome(step)) is isinstance(step, OneWay)


def test_a_wait_ends_with_the_first_look_at_which_all_it_concerns_are_done() -> None:
    waits = Waits()
    wait = Wait("g", lambda each: each.partition < 2, is_settled)
    waits.add(wait)
    away = outcome(AwaitEmptyGroup(5))
    waits.looked("other", [outcome(Agreed())])
    waits.looked("g", [away, outcome(Agreed(), partition=1)])
    assert not wait.future.done()
    assert wait.last == (away, outcome(Agreed(), partition=1))
    assert waits.groups() == ["g"]
    done = (outcome(Agreed()), outcome(Agreed(), partition=1))
    waits.looked("g", [*done, outcome(WriteKafka(1), partition=2)])
    assert wait.future.result(0) == done
    assert waits.groups() == []


def test_where_nothing_is_mirrored_there_is_nothing_to_wait_for() -> None:
    waits = Waits()
    wait = Wait("g", lambda _: False, is_settled)
    waits.add(wait)
    waits.looked("g", [outcome(WriteKafka(1))])
    assert wait.future.result(0) == ()


def test_nobody_waits_for_what_never_comes() -> None:
    waits = Waits()
    wait = Wait("g", lambda _: True, is_settled)
    waits.add(wait)
    waits.looked("g", [outcome(OneWay())])
    assert wait.future.result(0) == (outcome(OneWay()),)


def test_who_gives_up_is_forgotten_and_the_others_are_answered() -> None:
    waits = Waits()
    gone, stays, left = (Wait("g", lambda _: True, is_settled) for _ in range(3))
    for wait in (gone, stays):
        waits.add(wait)
    gone.future.cancel()
    waits.looked("g", [outcome(Agreed())])
    assert stays.future.done()
    waits.add(left)
    left.future.cancel()
    assert waits.groups() == []
    last = Wait("g", lambda _: True, is_settled)
    waits.add(last)
    waits.give_up()
    assert last.future.cancelled()
