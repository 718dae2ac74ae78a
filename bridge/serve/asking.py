"""The host's side of asking a worker. Safe to use from many threads, and never blocks."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from duolog.bridge.journal import Journal
from duolog.bridge.serve.exchange import MOST_UNDER_WAY, Answer, Ask, Told, ask_line
from duolog.errors import DuologError, KafkaWorkerUnavailable, TooBusy

ANSWER_SECONDS: Final = 30.0

Hear = Callable[[Mapping[str, Any]], object]


class Hearer(Protocol):
    """One run of a worker's process."""

    def send(self, line: bytes) -> None:
        """Hand a line over; it goes out when the process takes it."""


@dataclass(slots=True)
class _UnderWay:
    future: Future[Any]
    what: str
    seconds: float
    until: float
    run: int


class Asking:
    """Questions to one worker, over all its runs, from `start` to `close`.

    Results and events come on threads of this object's own: whoever is called there does little.
    """

    def __init__(
        self, name: str, journal: Journal, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._journal = journal
        self._clock = clock
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()  # guards all below
        self._process: Hearer | None = None
        self._run = self._over = 0  # the one that is asked, and the last that has ended
        self._why_not = "it has not been started yet"
        self._under_way: dict[int, _UnderWay] = {}
        self._hear: dict[str, list[Hear]] = defaultdict(list)
        self._closed = False
        self._watch = threading.Thread(
            target=self._watch_deadlines, name=f"duolog-{name}-asking", daemon=True
        )

    # -- for those who ask

    def ask(
        self,
        what: str,
        arguments: Mapping[str, Any] | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> Future[Any]:
        """Ask the worker. What goes wrong is in the future, by its name:

        KafkaWorkerUnavailable (it does not run, ended meanwhile, or did not answer in time: it may
        have done it or not), TooBusy, InvalidRequest, and whatever the worker answers.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            # The worker gives up first: then it says whether anything was done.
            ask = Ask(next(self._numbers), what, 0.9 * timeout_seconds, arguments or {})
            self._send(ask, future, timeout_seconds)
        except DuologError as error:
            future.set_exception(error)
        return future

    async def asked(
        self,
        what: str,
        arguments: Mapping[str, Any] | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> Any:
        """The same on an event loop: the answer."""
        return await asyncio.wrap_future(self.ask(what, arguments, timeout_seconds))

    def subscribe(self, event: str, hear: Hear) -> Callable[[], None]:
        """Be told of an event of the worker, from any run; what is returned ends that."""
        with self._changed:
            self._hear[event].append(hear)

        def end() -> None:
            with self._changed, suppress(ValueError):
                self._hear[event].remove(hear)

        return end

    @property
    def is_closed(self) -> bool:
        """Whether nobody will ever answer again."""
        return self._closed

    # -- for the worker's supervisor

    def start(self) -> None:
        self._watch.start()

    def close(self) -> None:
        """Nobody is answered any more."""
        self.end(self._run, "the host is stopping")
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._watch.ident is not None:
            self._watch.join()

    def begin(self, run: int, process: Hearer) -> None:
        """A process has been started."""
        with self._changed:
            if run > self._over:  # else it has ended before anybody got here
                self._process, self._run = process, run

    def end(self, run: int, why: str) -> None:
        """It is gone, and with it all that it was asked."""
        with self._changed:
            self._over = max(self._over, run)
            if self._run <= run:
                self._process, self._why_not = None, why
            lost = [n for n, each in self._under_way.items() if each.run == run]
            failed = [self._under_way.pop(number) for number in lost]
        for each in failed:
            each.future.set_exception(
                KafkaWorkerUnavailable(
                    f"The {self._name} worker ended before it answered '{each.what}' ({why}). The "
                    "host starts it again; ask again, since it may have been done or not."
                )
            )

    def hear(self, run: int, said: Answer | Told) -> None:
        """The worker has said something."""
        if isinstance(said, Told):
            self._tell(said)
            return
        with self._changed:
            asked = self._under_way.get(said.number)
            if asked is None or asked.run != run:  # given up meanwhile
                return
            del self._under_way[said.number]
        if said.error is None:
            asked.future.set_result(said.result)
        else:
            asked.future.set_exception(said.error)

    def _send(self, ask: Ask, future: Future[Any], seconds: float) -> None:
        line = ask_line(ask)
        with self._changed:
            process = self._process
            if process is None:
                raise KafkaWorkerUnavailable(
                    f"The {self._name} worker cannot be asked for '{ask.what}': {self._why_not}. "
                    "The host starts it again by itself; /readyz and its journal say how it is."
                )
            if len(self._under_way) >= MOST_UNDER_WAY:
                raise TooBusy(
                    f"The {self._name} worker has {MOST_UNDER_WAY} questions to answer. Ask again "
                    "a little later."
                )
            until = self._clock() + seconds
            self._under_way[ask.number] = _UnderWay(future, ask.what, seconds, until, self._run)
            self._changed.notify()
            process.send(line)

    def _tell(self, told: Told) -> None:
        with self._changed:
            hearers = tuple(self._hear.get(told.event, ()))
        for hear in hearers:
            try:
                hear(told.fields)
            except Exception as error:  # noqa: BLE001 - the others are told all the same
                self._journal.error("worker.event_failed", error, told=told.event)

    def _watch_deadlines(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now = self._clock()
                late = [n for n, each in self._under_way.items() if each.until <= now]
                given_up = [self._under_way.pop(number) for number in late]
                if not given_up:
                    soonest = min((each.until for each in self._under_way.values()), default=None)
                    self._changed.wait(None if soonest is None else soonest - now)
            for each in given_up:
                each.future.set_exception(_late(self._name, each))


def _late(name: str, asked: _UnderWay) -> KafkaWorkerUnavailable:
    return KafkaWorkerUnavailable(
        f"The {name} worker did not answer '{asked.what}' within {asked.seconds:g} s; it may have "
        "been done or not. Ask again; /readyz and the host's journal say how the worker is."
    )
