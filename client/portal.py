"""An event loop in a thread of its own, for those who do not run one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from duolog.errors import ClientClosed

T = TypeVar("T")


class Portal:
    """Runs coroutines for other threads. Safe for many of them; close it at the end."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def make(self, build: Callable[[], T]) -> T:
        """Build something that belongs to the loop."""

        async def built() -> T:
            return build()

        return self.run(built())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns or raises. An interrupt here cancels it there."""
        if os.getpid() != self._process or self.is_closed:
            coroutine.close()
            raise ClientClosed(
                "It was closed, or made before this process was forked. Make a new one here."
            )
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except concurrent.futures.CancelledError:
            raise ClientClosed("It was closed by another thread.") from None
        except BaseException:
            # An interrupt may come before there is anything here to cancel it by.
            with suppress(RuntimeError):  # closed meanwhile: that has cancelled it
                self._loop.call_soon_threadsafe(_cancel, coroutine)
            raise

    def close(self) -> None:
        """End the thread. Closing again does nothing."""
        if os.getpid() != self._process or self.is_closed:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


async def _cancel_others() -> None:
    """So that no thread waits for ever for what the loop will not do any more."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _cancel(coroutine: Coroutine[Any, Any, Any]) -> None:
    for task in asyncio.all_tasks():
        if task.get_coro() is coroutine:
            task.cancel()
            return
    coroutine.close()  # never begun, or over
