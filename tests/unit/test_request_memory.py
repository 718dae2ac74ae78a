"""Memory of large requests: never more than there is, in the order of asking, and given back."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import RequestTooLarge, TokenLimitReached, TooBusy
from duolog.server.json_pieces import count_values
from duolog.server.request_memory import RequestMemory, memory_of, memory_of_bytes


def test_those_who_find_no_room_go_on_in_the_order_of_asking() -> None:
    async def scene() -> None:
        memory = RequestMemory(100)
        went_on: list[str] = []

        async def ask(name: str, size: int, end: asyncio.Event) -> None:
            with memory.request() as request:
                await request.wait_for(size)
                went_on.append(name)
                await end.wait()

        ends = {name: asyncio.Event() for name in "abcd"}
        tasks = [
            asyncio.create_task(ask(name, size, ends[name]))
            for name, size in (("a", 60), ("b", 50), ("c", 10), ("d", 50))
        ]
        await _settle()
        assert went_on == ["a"]  # c would fit, but b came first
        ends["a"].set()
        await _settle()
        assert went_on == ["a", "b", "c"]
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)
        assert went_on == ["a", "b", "c", "d"]
        with memory.request() as request:
            request.take_now(100)  # all of it was given back

    asyncio.run(scene())


def test_whoever_leaves_the_line_keeps_nothing_and_holds_nobody_up() -> None:
    async def scene() -> None:
        memory = RequestMemory(100)
        with memory.request() as first:
            first.take_now(60)
            large = asyncio.create_task(_take(memory, 90))
            small = asyncio.create_task(_take(memory, 40))
            await _settle()
            assert not small.done()
            large.cancel()
            await _settle()
            assert small.done()
        in_turn = RequestMemory(100)
        with in_turn.request() as first:
            first.take_now(100)
            waiting = asyncio.create_task(_take(in_turn, 100))
            await _settle()
            first.give_back()
            waiting.cancel()  # in the moment in which its turn has come
            await _settle()
        with in_turn.request() as last:
            last.take_now(100)

    asyncio.run(scene())


def test_one_caller_has_half_at_most_and_keeps_nobody_else_waiting() -> None:
    async def scene() -> None:
        memory = RequestMemory(100)
        with memory.request("greedy") as first:
            await first.wait_for(40)
            more = [asyncio.create_task(_take(memory, 20, "greedy")) for _ in range(3)]
            await _settle()
            assert not any(each.done() for each in more)
            await asyncio.wait_for(_take(memory, 50, "other"), 10)
            await asyncio.wait_for(_take(memory, 60), 10)  # where there are no names
            with memory.request("greedy") as impatient, pytest.raises(TooBusy):
                impatient.take_now(20)
            large = asyncio.create_task(_take(memory, 90, "greedy"))  # never fits beside the first
            await _settle()
            await asyncio.wait_for(_take(memory, 10, "other"), 10)
            with memory.request() as another:
                another.take_now(10)  # who does not wait is not held up by those who do
            first.give_back()
            await asyncio.gather(*more, large)  # one request may be of any size
        with memory.request() as last:
            last.take_now(100)

    asyncio.run(scene())


def test_a_request_that_does_not_wait_takes_what_is_there_or_nothing() -> None:
    memory = RequestMemory(100)
    with memory.request() as request, memory.request() as other:
        request.take_now(40)
        request.take_now(30)  # it has them already
        request.take_now(70)
        with pytest.raises(TooBusy, match="hands full"):
            other.take_now(31)
        other.take_now(30)
    with memory.request() as request:
        request.take_now(100)


def test_more_than_there_is_and_more_requests_than_may_wait_are_refused_by_name() -> None:
    memory = RequestMemory(3 << 20, most_requests=2)
    with memory.request() as request, memory.request():
        with pytest.raises(RequestTooLarge, match=r"5 MiB .* 3 MiB .*serve\.large_request_memory"):
            request.take_now(5 << 20)
        with pytest.raises(TooBusy, match="2 large requests"), memory.request():
            pass
    with memory.request():
        pass
    with memory.request("greedy"), pytest.raises(TokenLimitReached), memory.request("greedy"):
        pass


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_SMALL = st.none() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | _TEXTS
_VALUES = st.recursive(
    _SMALL, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4)
)


@given(_VALUES, st.booleans())
def test_what_is_parsed_takes_no_more_than_was_said(value: Any, ascii_alone: bool) -> None:
    rows = [value] * 200
    body = json.dumps(rows, ensure_ascii=ascii_alone).encode()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        parsed = json.loads(body)
        _, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert parsed == rows
    assert highest - before <= memory_of(body, count_values(body)) + 10_000


def test_the_least_that_a_body_takes_is_never_more_than_what_it_takes() -> None:
    for body in (b'["a"]', '["ü"]'.encode(), '["😀"]'.encode(), b'["\\u1234"]', b"[" * 100):
        assert memory_of_bytes(len(body)) <= memory_of(body, count_values(body))


async def _take(memory: RequestMemory, size: int, caller: str | None = None) -> None:
    with memory.request(caller) as request:
        await request.wait_for(size)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
