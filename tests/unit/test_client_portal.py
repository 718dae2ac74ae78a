"""The event loop in a thread."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from duolog.client.portal import Portal
from duolog.errors import ClientClosed


async def answer(number: int) -> int:
    return number // (number - 1)


def test_it_gives_results_and_errors_to_many_threads() -> None:
    portal = Portal("portal")
    try:
        assert portal.run(answer(3)) == 1
        with pytest.raises(ZeroDivisionError):
            portal.run(answer(1))
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(portal.run(answer(2)))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == [2, 2, 2, 2]
    finally:
        portal.close()


def test_an_interrupt_cancels_what_is_waited_for() -> None:
    portal = Portal("portal")
    cancelled = threading.Event()

    async def interrupt() -> None:
        waited_for_by = threading.main_thread().ident
        assert waited_for_by is not None
        signal.pthread_kill(waited_for_by, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            portal.run(interrupt())
        assert cancelled.wait(60)
    finally:
        signal.signal(signal.SIGINT, before)
        portal.close()


def test_closing_ends_what_other_threads_wait_for() -> None:
    portal = Portal("portal")
    waits = threading.Event()

    async def wait() -> None:
        waits.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(lambda: portal.run(wait()))
        assert waits.wait(60)
        portal.close()
        assert isinstance(waiting.exception(60), ClientClosed)


def test_closed_or_in_a_forked_process_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    portal = Portal("portal")
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)
        with pytest.raises(ClientClosed, match="before this process was forked"):
            portal.run(answer(2))
        portal.close()
    assert portal.run(answer(2)) == 2
    portal.close()
    portal.close()
    assert portal.is_closed
    with pytest.raises(ClientClosed):
        portal.run(answer(2))
