"""One token for all clients of a process, made anew before it ends.

A provider is somebody else's code: it may raise, take long, or never return. So it runs in a
thread of its own, one at a time; who waits for it waits with a limit; and while an old token still
holds, nobody notices. Where none is left there is a named error, and the next who asks asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from duolog.bridge.kafka.tokens.token import Provider, Token
from duolog.errors import KafkaTokenUnavailable

WAIT_SECONDS: Final = 10.0
"""So long a provider may take."""

_AGAIN_SECONDS: Final = 1.0  # it is not asked again sooner, however many clients want a token
_MOST_HUNG: Final = 3
_LONGEST_SAID: Final = 300


@dataclass(slots=True)
class _Asked:
    """A provider that has been called."""

    answer: Future[Token]
    since: float  # monotonic


class TokenSource:
    """Fresh tokens. May be used by several threads and event loops."""

    def __init__(
        self,
        provider: Provider,
        name: str,
        *,
        secrets: Iterable[SecretStr] = (),
        wait_seconds: float = WAIT_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`name` is how errors call it; what is in `secrets` is blotted out in them."""
        self._provider = provider
        self._name = name
        self._secrets = tuple(secrets)
        self._now = now
        self.wait_seconds = wait_seconds
        self._guard = threading.Lock()
        self._token: Token | None = None
        self._asked: _Asked | None = None
        self._hung: list[_Asked] = []
        self._failure: KafkaTokenUnavailable | None = None
        self._failed_at = 0.0  # monotonic

    def get(self) -> Token:
        """A token that is good now. Blocks for `wait_seconds` at most."""
        try:
            return self.begin().result(self.wait_seconds)
        except (KafkaTokenUnavailable, TimeoutError) as error:
            return self.instead(error)

    def begin(self) -> Future[Token]:
        """A fresh token, once there is one."""
        with self._guard:
            token, now = self._token, time.monotonic()
            if token is not None and self._now() < token.refresh_at:
                return _done(token)
            if self._asked is not None and now - self._asked.since < self.wait_seconds:
                return self._asked.answer
            if self._failure is not None and now - self._failed_at < _AGAIN_SECONDS:
                return _failed(self._failure)
            return self._ask(now)

    def instead(self, error: KafkaTokenUnavailable | TimeoutError) -> Token:
        """The old token while it holds; else what is wrong."""
        with self._guard:
            token = self._token
        if token is not None and self._now() < token.expires_at:
            return token
        if isinstance(error, KafkaTokenUnavailable):
            raise error
        raise self._unavailable(f"it has not answered within {self.wait_seconds:g} s")

    def _ask(self, now: float) -> Future[Token]:
        """Call the provider in a thread of its own. One that hangs is left behind."""
        if self._asked is not None:
            self._hung.append(self._asked)
        self._hung = [each for each in self._hung if not each.answer.done()]
        if len(self._hung) >= _MOST_HUNG:
            self._asked = None
            return _failed(
                self._unavailable(
                    f"{len(self._hung)} calls of it have not returned; it is asked again when one "
                    "has"
                )
            )
        asked = self._asked = _Asked(Future(), now)
        # A daemon: one that never returns does not keep the process from ending.
        threading.Thread(target=self._call, args=(asked,), name="duolog-token", daemon=True).start()
        return asked.answer

    def _call(self, asked: _Asked) -> None:
        try:
            token = Token.of(self._provider(), self._now())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told as ours
            said = f"{type(error).__name__}: {self._without_secrets(str(error))}"
            failure = self._unavailable(said)
            with self._guard:
                self._failure, self._failed_at = failure, time.monotonic()
                self._asked = None if self._asked is asked else self._asked
            asked.answer.set_exception(failure)
        else:
            with self._guard:
                self._token, self._failure = token, None
                self._asked = None if self._asked is asked else self._asked
            asked.answer.set_result(token)

    def _unavailable(self, said: str) -> KafkaTokenUnavailable:
        return KafkaTokenUnavailable(
            f"There is no token to log in to Kafka with, from {self._name}: {said.rstrip('.')}. "
            "Mend it, or look at the settings sasl.oauthbearer.*; it is asked again by itself."
        )

    def _without_secrets(self, said: str) -> str:
        for secret in self._secrets:
            word = secret.get_secret_value()
            said = said.replace(word, "***") if word else said
        return said[:_LONGEST_SAID]


def _done(token: Token) -> Future[Token]:
    future: Future[Token] = Future()
    future.set_result(token)
    return future


def _failed(failure: KafkaTokenUnavailable) -> Future[Token]:
    future: Future[Token] = Future()
    future.set_exception(failure)
    return future
