"""Threads for calls of the log that block: as many as are useful, not one a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from duolog.errors import TooBusy

T = TypeVar("T")

READ_THREADS = 8
PARSE_THREADS = 1  # Python's lock lets no more run; two keep the event loop waiting for longer
WRITE_THREADS = 64  # they only wait, for a sync that all who write at the moment share
_MOST_UNDER_WAY = 10_000


class Workers:
    """Some threads with one purpose. Used from one event loop."""

    def __init__(self, name: str, threads: int, *, most_under_way: int = _MOST_UNDER_WAY) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"duolog-{name}")
        self._most_under_way = most_under_way
        self._under_way = 0
        self._name = name

    async def run(self, call: Callable[[], T]) -> T:
        """Run it in a thread, in the context of whoever asks. Refused when too many are under way
        already.
        """
        if self._under_way >= self._most_under_way:
            raise TooBusy(
                f"The host has {self._under_way} {self._name}s under way and takes no more. Try "
                "again in a moment."
            )
        self._under_way += 1
        try:
            within = partial(copy_context().run, call)
            return await asyncio.get_running_loop().run_in_executor(self._threads, within)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Finish what is under way."""
        self._threads.shutdown(wait=True)
