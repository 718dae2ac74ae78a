"""The processes that answer queries: few, started when there is something to do, and kept warm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from duolog.bridge.metrics.names import SQL_PROCESSES, SQL_QUERIES
from duolog.bridge.sql.child import Child
from duolog.errors import DuologError, QueryTimedOut, TooBusy

if TYPE_CHECKING:
    from duolog.bridge.journal import Journal
    from duolog.bridge.metrics.tally import Tally
    from duolog.bridge.sql.child import Answer, Outcome
    from duolog.bridge.sql.frames import Query
    from duolog.bridge.sql.rules import SqlRules

_WAIT_SECONDS: Final = 1.0  # for a process, when all are at work
_GRACE_SECONDS: Final = 2.0  # a query ends itself in time, unless it does not hear
_COMPLAINT: Final = 500


class Children:
    """Used on one event loop."""

    def __init__(self, rules: SqlRules, journal: Journal, tally: Tally) -> None:
        self._rules = rules
        self._journal = journal
        self._tally = tally
        self._free = asyncio.Semaphore(rules.max_processes)
        self._idle: dict[Child, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, query: Query, answer: Answer) -> bytes:
        """What a query answers. When it is cancelled, its process ends with it."""
        try:
            content = await self._run(query, answer)
        except asyncio.CancelledError:
            self._tally.add(SQL_QUERIES, "given up")
            raise
        except DuologError as error:
            self._tally.add(SQL_QUERIES, error.code)
            raise
        self._tally.add(SQL_QUERIES, "done")
        return content

    async def close(self) -> None:
        """End those that wait for a query; the others end with theirs."""
        for child, timer in self._idle.items():
            timer.cancel()
            self._end_soon(child)
        self._idle.clear()
        await asyncio.gather(*self._ending)

    async def _run(self, query: Query, answer: Answer) -> bytes:
        async with self._place():
            child = await self._take()
            outcome: Outcome | None = None
            try:
                async with asyncio.timeout(query.timeout_seconds + _GRACE_SECONDS):
                    outcome = await child.run(query, answer)
            except TimeoutError:
                raise _timed_out(query) from None
            finally:
                if outcome is None or is_spent(outcome):
                    await self._end(child)
                else:
                    self._keep(child)
            if outcome.error is not None:
                raise outcome.error
            return outcome.content

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise TooBusy(
                f"All places for queries are taken: there are {self._rules.max_processes}. Try "
                "again in a moment."
            ) from None
        try:
            yield
        finally:
            self._free.release()

    async def _take(self) -> Child:
        while self._idle:
            child, timer = self._idle.popitem()
            timer.cancel()
            if child.is_alive:
                return child
            await self._end(child)
        child = await Child.start(self._rules.memory_bytes)
        self._tally.add(SQL_PROCESSES)
        self._journal.detail("sql.process_started", pid=child.pid)
        return child

    def _keep(self, child: Child) -> None:
        loop = asyncio.get_running_loop()
        self._idle[child] = loop.call_later(self._rules.idle_seconds, self._let_go, child)

    def _let_go(self, child: Child) -> None:
        del self._idle[child]
        self._end_soon(child)

    def _end_soon(self, child: Child) -> None:
        task = asyncio.get_running_loop().create_task(self._end(child))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, child: Child) -> None:
        self._tally.add(SQL_PROCESSES, by=-1)
        await child.end()
        if child.said:
            self._journal.warn("sql.process_said", pid=child.pid, said=child.said[-_COMPLAINT:])
        self._journal.detail("sql.process_ended", pid=child.pid)


def is_spent(outcome: Outcome) -> bool:
    """Whether what a query leaves behind may trouble the next one: threads that go on, memory."""
    return outcome.is_worn or isinstance(outcome.error, QueryTimedOut)


def _timed_out(query: Query) -> QueryTimedOut:
    return QueryTimedOut(
        f"The query took longer than the {query.timeout_seconds:g} s it may take, and was ended. "
        "Ask for fewer offsets or for later times."
    )
