"""The answers that clients have not taken yet: how many bytes there may be of them.

A client may be slow, or take nothing, and its answer stays in memory meanwhile. Where there is as
much as may be, nothing more is read: whoever asks is told to come again. The clients of one token
may leave half of it, so that they keep no others from reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from duolog.errors import TokenLimitReached, TooBusy

SMALL_ANSWER_BYTES: Final = 64 << 10  # not counted: connections bound them


class AnswersHeld:
    """All of one host. For one event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: Counter[str | None] = Counter()  # by token

    @contextmanager
    def answer(self, token: str | None) -> Iterator[Answer]:
        """A request, until its client has taken the answer."""
        answer = Answer(self, token)
        try:
            yield answer
        finally:
            self.add(token, -answer.size)

    def check(self, token: str | None) -> None:
        """Refuse to read more where there is as much as may be. TooBusy, TokenLimitReached."""
        if token is not None and 2 * self._held[token] >= self._most_bytes:
            raise TokenLimitReached(
                "Answers to this token wait for its clients to take them, as many bytes as one "
                "token may have. Take them, ask for less at once, or raise serve.answer_memory."
            )
        if self.bytes_held >= self._most_bytes:
            raise TooBusy(
                "Answers wait for clients to take them, as many bytes as the host keeps. Ask again "
                "in a moment, ask for less at once, or raise serve.answer_memory."
            )

    @property
    def bytes_held(self) -> int:
        """Of all answers that clients have not taken."""
        return self._held.total()

    def add(self, token: str | None, size: int) -> None:
        if size:
            self._held[token] += size
            if not self._held[token]:
                del self._held[token]


class Answer:
    """What a request is answered with, as far as it is known."""

    def __init__(self, answers: AnswersHeld, token: str | None) -> None:
        self._answers = answers
        self._token = token
        self.size = 0

    def check(self) -> None:
        """To be asked before anything is read. TooBusy, TokenLimitReached."""
        self._answers.check(self._token)

    def now_has(self, size: int) -> None:
        """So many bytes are there for the client in all."""
        counted = size if size > SMALL_ANSWER_BYTES else 0
        self._answers.add(self._token, counted - self.size)
        self.size = counted
