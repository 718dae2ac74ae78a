"""The worker's side of being asked by its host.

The thread that reads from the host only sorts lines; questions are answered on an event loop, and
one thread writes what is said, so that a host that does not listen holds up nobody.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from queue import SimpleQueue
from typing import Any, Final

from duolog.bridge.journal import Journal
from duolog.bridge.serve.exchange import (
    MOST_UNDER_WAY,
    Answer,
    Ask,
    NotUnderstood,
    Told,
    answer_line,
    ask_in,
    told_line,
)
from duolog.bridge.serve.leash import say
from duolog.errors import (
    DuologError,
    HostFailed,
    InvalidRequest,
    KafkaWorkerUnavailable,
    TooBusy,
)

_MOST_UNSAID: Final = 4 * MOST_UNDER_WAY

Handle = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Answers one kind of question, on the event loop: with something that JSON can hold."""


class Answering:
    """Takes lines from any thread; answers from `start` to `close`, what came before included."""

    def __init__(self, journal: Journal, say: Callable[[bytes], object] = say) -> None:
        self._journal = journal
        self._say = say
        self._handlers: dict[str, Handle] = {}
        self._guard = threading.Lock()  # of the four below
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[Ask] = []  # for the loop
        self._under_way = 0
        self._unsaid = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._speaker = threading.Thread(target=self._speak, name="duolog-answers", daemon=True)
        self._speaker.start()

    def handle(self, what: str, handle: Handle) -> None:
        """Answer a kind of question from now on. Before `start`, or on its loop."""
        self._handlers[what] = handle

    def hear(self, line: bytes) -> None:
        """A line has come from the host. May be called from any thread; returns at once."""
        ask = ask_in(line)
        match ask:
            case NotUnderstood(number, error):
                self._put(answer_line(Answer(number, error=error)))
            case Ask():
                self._take(ask)

    def tell(self, event: str, **fields: Any) -> bool:
        """Tell the host, from any thread; False if it has not listened for long and is not told."""
        return self._put(told_line(Told(event, fields)))

    def start(self) -> None:
        """Answer on the event loop that runs."""
        with self._guard:
            self._loop = asyncio.get_running_loop()
            waiting, self._waiting = self._waiting, []
        for ask in waiting:
            self._begin(ask)

    async def close(self) -> None:
        """Give up on what is being answered, and have said all that is said."""
        with self._guard:
            self._loop = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._lines.put(None)
        await asyncio.to_thread(self._speaker.join)

    def _take(self, ask: Ask) -> None:
        with self._guard:
            if self._under_way >= MOST_UNDER_WAY:
                refused = TooBusy(
                    f"The worker has {MOST_UNDER_WAY} questions to answer. Ask again a little "
                    "later."
                )
            else:
                self._under_way += 1
                if self._loop is None:
                    self._waiting.append(ask)
                else:
                    self._loop.call_soon_threadsafe(self._begin, ask)
                return
        self._put(answer_line(Answer(ask.number, error=refused)))

    def _begin(self, ask: Ask) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(ask))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with self._guard:
            self._under_way -= 1

    async def _answer(self, ask: Ask) -> None:
        try:
            line = answer_line(Answer(ask.number, await self._result(ask)))
        except DuologError as error:
            line = answer_line(Answer(ask.number, error=error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the host is told
            self._journal.error("worker.answer_failed", error, what=ask.what)
            line = answer_line(Answer(ask.number, error=_failed(ask)))
        self._put(line)

    async def _result(self, ask: Ask) -> Any:
        handle = self._handlers.get(ask.what)
        if handle is None:
            raise InvalidRequest(
                f"The worker does not know the question '{ask.what}': Duolog was replaced while "
                "the host ran. Start the host again."
            )
        limit = asyncio.timeout(ask.seconds)
        try:
            async with limit:
                return await handle(ask.arguments)
        except TimeoutError:
            if not limit.expired():
                raise
            raise KafkaWorkerUnavailable(
                f"The worker was not done with '{ask.what}' within {ask.seconds:g} s. Ask again."
            ) from None

    def _put(self, line: bytes) -> bool:
        with self._guard:
            if self._unsaid >= _MOST_UNSAID:
                return False
            self._unsaid += 1
        self._lines.put(line)
        return True

    def _speak(self) -> None:
        while (line := self._lines.get()) is not None:
            self._say(line)
            with self._guard:
                self._unsaid -= 1


def _failed(ask: Ask) -> HostFailed:
    return HostFailed(
        f"The worker failed at '{ask.what}' in a way that it has no name for; the host's journal "
        "says more."
    )
