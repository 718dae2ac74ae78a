"""When a worker is started, stopped and started again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.serve.leash import NOT_RUNNABLE
from duolog.bridge.serve.supervision import (
    Course,
    Deed,
    Ended,
    Event,
    Patience,
    Phase,
    Sign,
    after,
    begun,
)
from duolog.errors import InvalidSetting

PATIENCE = Patience(
    first_pause_seconds=1.0, longest_pause_seconds=8.0, steady_seconds=60.0, stop_seconds=10.0
)
NOW = 100.0
S, R, W = Phase.STARTING, Phase.RUNNING, Phase.WAITING
STOPPING, STOPPED, GIVEN_UP = Phase.STOPPING, Phase.STOPPED, Phase.GIVEN_UP


@pytest.mark.parametrize(
    ("course", "event", "expected", "deed"),
    [
        (Course(S, 90, 2), Sign.SAID, Course(R, NOW, 2), None),
        (Course(S, 90), Sign.TIME, Course(S, 90), None),
        (Course(S, 90), Ended(1), Course(W, NOW, 1, NOW + 1), None),
        (Course(S, 90), Ended(0), Course(W, NOW, 1, NOW + 1), None),
        (Course(S, 90), Ended(-9), Course(W, NOW, 1, NOW + 1), None),
        (Course(S, 90), Ended(None), Course(W, NOW, 1, NOW + 1), None),
        (Course(S, 90, 1), Ended(1), Course(W, NOW, 2, NOW + 2), None),
        (Course(S, 30, 1), Ended(1), Course(W, NOW, 2, NOW + 2), None),  # never at work
        (Course(S, 90, 3), Ended(1), Course(W, NOW, 4, NOW + 8), None),
        (Course(S, 90, 50), Ended(1), Course(W, NOW, 51, NOW + 8), None),
        (Course(S, 90, 2), Ended(NOT_RUNNABLE), Course(GIVEN_UP, NOW, 3), None),
        (Course(S, 90, 2), Sign.STOP, Course(STOPPING, NOW, 2, NOW + 10), Deed.TERMINATE),
        (Course(R, 90, 2), Sign.SAID, Course(R, 90, 2), None),
        (Course(R, 90, 2), Sign.TIME, Course(R, 90, 2), None),
        (Course(R, 90, 2), Ended(1), Course(W, NOW, 3, NOW + 4), None),
        (Course(R, 40, 2), Ended(1), Course(W, NOW, 1, NOW + 1), None),  # steady since
        (Course(R, 40, 2), Ended(NOT_RUNNABLE), Course(GIVEN_UP, NOW, 3), None),
        (Course(R, 90, 2), Sign.STOP, Course(STOPPING, NOW, 2, NOW + 10), Deed.TERMINATE),
        (Course(W, 90, 2, NOW), Sign.TIME, Course(S, NOW, 2), Deed.START),
        (Course(W, 90, 2, NOW), Sign.STOP, Course(STOPPED, NOW, 2), None),
        (Course(W, 90, 2, NOW), Sign.SAID, Course(W, 90, 2, NOW), None),
        (Course(STOPPING, 90, 2, NOW), Sign.TIME, Course(STOPPING, 90, 2), Deed.KILL),
        (Course(STOPPING, 90, 2, 105), Sign.SAID, Course(STOPPING, 90, 2, 105), None),
        (Course(STOPPING, 90, 2, 105), Sign.STOP, Course(STOPPING, 90, 2, 105), None),
        (Course(STOPPING, 90, 2, 105), Ended(0), Course(STOPPED, NOW, 2), None),
        (Course(STOPPING, 90, 2), Ended(-9), Course(STOPPED, NOW, 2), None),
        (Course(STOPPING, 90, 2), Ended(NOT_RUNNABLE), Course(STOPPED, NOW, 2), None),
        (Course(GIVEN_UP, 90, 3), Sign.TIME, Course(GIVEN_UP, 90, 3), None),
        (Course(GIVEN_UP, 90, 3), Sign.STOP, Course(STOPPED, NOW, 3), None),
        (Course(STOPPED, 90, 3), Sign.STOP, Course(STOPPED, 90, 3), None),
        (Course(STOPPED, 90, 3), Sign.TIME, Course(STOPPED, 90, 3), None),
    ],
)
def test_what_becomes_of_a_worker(
    course: Course, event: Event, expected: Course, deed: Deed | None
) -> None:
    assert after(course, event, NOW, PATIENCE) == (expected, deed)


def test_it_begins_by_starting() -> None:
    assert begun(NOW) == (Course(Phase.STARTING, NOW), Deed.START)


EVENTS = st.one_of(
    st.sampled_from(list(Sign)),
    st.builds(Ended, st.sampled_from([None, 0, 1, -9, NOT_RUNNABLE])),
)


@given(st.lists(st.tuples(EVENTS, st.floats(0, 100)), max_size=60))
def test_one_process_at_a_time_and_none_after_the_end(told: list[tuple[Event, float]]) -> None:
    now = 0.0
    deed: Deed | None
    course, deed = begun(now)
    processes, was_stopped = 0, False
    for event, seconds in [(Sign.SAID, 0.0), *told]:
        if deed is Deed.START:
            processes, deed = processes + 1, None
        assert processes <= 1
        assert (processes == 1) == course.phase.has_process
        now += seconds
        if isinstance(event, Ended) and not processes:
            continue  # nothing there that could end
        if event is Sign.TIME and (course.wake_at is None or now < course.wake_at):
            continue
        processes -= isinstance(event, Ended)
        was_stopped |= event is Sign.STOP
        course, deed = after(course, event, now, PATIENCE)
        assert deed is not Deed.START or not was_stopped
        assert deed not in {Deed.TERMINATE, Deed.KILL} or (processes and was_stopped)
        assert not was_stopped or course.phase in {Phase.STOPPING, Phase.STOPPED}


@pytest.mark.parametrize("name", ["first_pause_seconds", "longest_pause_seconds", "stop_seconds"])
@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_times_that_make_no_sense_are_refused(name: str, seconds: float) -> None:
    with pytest.raises(InvalidSetting, match=name):
        Patience(**{name: seconds})
