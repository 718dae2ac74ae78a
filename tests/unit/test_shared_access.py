"""Whoever wants to be alone goes before those who come later."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from duolog.log.shared_access import SharedAccess

DEADLINE = 30.0


def nothing() -> None:
    """No check."""


def test_a_writer_gets_in_although_readers_never_leave_together() -> None:
    """Two readers that overlap all the time: before, somebody was always inside."""
    access, stop = SharedAccess(), threading.Event()
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def read(me: int) -> None:
        """Goes out only when the other one is in, or says that it waits."""
        while not stop.is_set():
            access.enter(nothing)
            turns[1 - me].release()
            turns[me].acquire(timeout=0.01)  # the other one may have to wait outside
            access.leave()

    def write() -> None:
        with access.alone():
            pass

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read, me) for me in (0, 1)]
        try:
            for _ in range(20):
                pool.submit(write).result(DEADLINE)
        finally:
            stop.set()
        for reader in readers:
            reader.result(DEADLINE)


def test_new_readers_wait_while_somebody_waits_to_be_alone() -> None:
    access, order = SharedAccess(), []
    access.enter(nothing)
    wants = threading.Event()

    def write() -> None:
        with access.alone(waiting=wants.set):
            order.append("writer")

    def read() -> None:
        access.enter(nothing)
        order.append("reader")
        access.leave()

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(write)
        assert wants.wait(DEADLINE)
        reader = pool.submit(read)
        access.leave()
        writer.result(DEADLINE)
        reader.result(DEADLINE)
    assert order == ["writer", "reader"]


def test_a_reader_that_is_inside_may_come_in_again() -> None:
    access, wants = SharedAccess(), threading.Event()

    def write() -> None:
        with access.alone(waiting=wants.set):
            pass

    with ThreadPoolExecutor(1) as pool:
        access.enter(nothing)
        writer = pool.submit(write)
        assert wants.wait(DEADLINE)
        access.enter(nothing)  # would wait for the writer, which waits for us
        access.leave()
        assert not writer.done()
        access.leave()
        writer.result(DEADLINE)


def test_who_is_alone_may_read() -> None:
    access = SharedAccess()
    with access.alone():
        access.enter(nothing)
        access.leave()
    access.enter(nothing)
    access.leave()


def test_who_is_inside_cannot_wait_to_be_alone() -> None:
    access = SharedAccess()
    access.enter(nothing)
    with pytest.raises(RuntimeError, match="never"), access.alone():
        pass
    access.leave()
    with access.alone():
        pass


def test_a_refused_reader_is_not_inside() -> None:
    access = SharedAccess()

    def refuse() -> None:
        raise ValueError("closed")

    with pytest.raises(ValueError, match="closed"):
        access.enter(refuse)
    with access.alone():
        pass


def test_several_are_alone_one_after_the_other() -> None:
    access, inside, most = SharedAccess(), [0], [0]

    def write() -> None:
        for _ in range(50):
            with access.alone():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(write) for _ in range(4)]:
            done.result(DEADLINE)
    assert most == [1]
