"""Answers that are remembered, and asked for once however many threads want them."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class AnswerCache:
    """The answers used last. Failures are not remembered, only shared by those who waited."""

    def __init__(self, capacity: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._monotonic = monotonic
        self._answers: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()
        self._asked: dict[Hashable, Future[Any]] = {}
        self._guard = threading.Lock()

    def get(
        self, key: Hashable, ask: Callable[[], Answer], *, lifetime_seconds: float = math.inf
    ) -> Answer:
        """The remembered answer, or that of `ask`, which runs in one thread at a time per key."""
        while True:
            with self._guard:
                answer, expires = self._answers.get(key, (None, -math.inf))
                if self._monotonic() < expires:
                    self._answers.move_to_end(key)
                    return answer  # type: ignore[no-any-return]
                waiting = self._asked.get(key)
                if waiting is None:
                    mine: Future[Any] = Future()
                    self._asked[key] = mine
                    break
            answered, answer = _awaited(waiting)
            if answered:
                return answer  # type: ignore[no-any-return]
        return self._ask(key, ask, mine, lifetime_seconds)

    def put(self, key: Hashable, answer: object) -> None:
        """Remember an answer that came with another."""
        with self._guard:
            self._remember(key, answer, math.inf)

    def _ask(
        self,
        key: Hashable,
        ask: Callable[[], Answer],
        mine: Future[Any],
        lifetime_seconds: float,
    ) -> Answer:
        try:
            answer = ask()
        except BaseException as error:
            with self._guard:
                del self._asked[key]
            if isinstance(error, Exception):
                mine.set_exception(error)
            else:
                mine.cancel()  # this thread was interrupted: another one asks
            raise
        with self._guard:
            del self._asked[key]
            if lifetime_seconds > 0:
                self._remember(key, answer, self._monotonic() + lifetime_seconds)
        mine.set_result(answer)
        return answer

    def _remember(self, key: Hashable, answer: object, expires: float) -> None:
        self._answers[key] = (answer, expires)
        self._answers.move_to_end(key)
        if len(self._answers) > self._capacity:
            self._answers.popitem(last=False)


def _awaited(asked: Future[Any]) -> tuple[bool, Any]:
    """What another thread was answered; False when it was interrupted."""
    try:
        return True, asked.result()
    except CancelledError:
        return False, None
