"""Asking a host until it answers, within a deadline, and no more often than is safe.

What cannot have been seen is sent again; so is what a second time changes nothing. For the rest a
lost answer is OutcomeUnknown. A host that restarts in between is survived, also when it comes back
at another address of this machine.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from duolog.errors import (
    DuologError,
    HostFailed,
    HostFault,
    HostMismatch,
    HostRefused,
    HostUnreachable,
    LogClosed,
    OutcomeUnknown,
    TooBusy,
)
from duolog.reach.address import Address
from duolog.reach.exchange import (
    Answer,
    AnswerLost,
    Exchange,
    Introduction,
    NotSent,
    Request,
)
from duolog.reach.failures import error_of
from duolog.reach.options import RemoteOptions
from duolog.reach.protocol import LOG_HEADER, PROTOCOL_HEADER, VERSION, check_version
from duolog.reach.secret import Secret

_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 1.0
_FOR_NOW: Final = frozenset({429, 502, 503, 504})

Judged = TypeVar("Judged")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, how it knows us, and the log that is meant; no log: whichever is there.

    A host of this machine knows us by an introduction on each connection, others by a credential.
    """

    address: Address
    credential: Secret | None
    log_id: str | None = None
    introduction: Introduction | None = None


class HostConnection:
    """Safe for many threads. `find` looks anew where the host of a log on this machine is."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: RemoteOptions,
        find: Callable[[float], Endpoint] | None = None,
    ) -> None:
        self._options = options
        self._find = find
        self._closed = threading.Event()
        self._guard = threading.Lock()  # of the two below, which change together
        self._endpoint = endpoint
        self._exchange = self._exchange_with(endpoint)

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    def settle(self, endpoint: Endpoint) -> None:
        """Ask this one from now on."""
        with self._guard:
            old = self._exchange
            if (endpoint.address, endpoint.introduction) != (
                self._endpoint.address,
                self._endpoint.introduction,
            ):
                self._exchange = self._exchange_with(endpoint)
            self._endpoint = endpoint
        if old is not self._exchange:
            old.close()

    def _exchange_with(self, endpoint: Endpoint) -> Exchange:
        return Exchange(
            endpoint.address,
            self._options,
            vouched_for=endpoint.introduction is not None,
            introduction=endpoint.introduction,
        )

    def close(self) -> None:
        """End the connections. Calls under way fail."""
        self._closed.set()
        self._exchange.close()

    def json(self, request: Request, *, may_repeat: bool) -> Any:
        """What the host answers, decoded; its error raised."""
        return self._asked(request, result_of, may_repeat=may_repeat)

    def ask(self, request: Request, *, may_repeat: bool) -> Answer:
        """The host's answer as it is; its error raised."""
        return self._asked(request, judged, may_repeat=may_repeat)

    def ask_other(self, request: Request) -> Answer:
        """Whatever the host answers on a path that is not of our protocol. May be sent again."""
        return self._asked(request, lambda _, answer: answer, may_repeat=True)

    def _asked(
        self, request: Request, judge: Callable[[Endpoint, Answer], Judged], *, may_repeat: bool
    ) -> Judged:
        started = time.monotonic()
        until, failed = started + self._options.deadline_seconds, False
        pause = _FIRST_PAUSE_SECONDS
        credential_refused = False
        found: HostFault | None = None  # why no host was found since
        while True:
            endpoint, exchange = self._current()
            try:
                return judge(endpoint, exchange.ask(request, _headers(endpoint), until))
            except NotSent as failure:
                reason = str(failure)
            except AnswerLost as failure:
                if not may_repeat:
                    raise _unknown(endpoint, request, str(failure)) from failure
                reason = str(failure)
            except HostRefused:
                # A host that was started anew does not know us: once, look for it.
                if self._find is None or credential_refused:
                    raise
                credential_refused = True
                reason = "it does not know us"
            if self._closed.is_set():
                raise LogClosed("The log has been closed.")
            if not failed:  # until then there were signs of life: a long append, a large upload
                until, failed = time.monotonic() + self._options.deadline_seconds, True
            pause = self._paused(pause, until)
            if time.monotonic() >= until:
                tried = time.monotonic() - started
                if isinstance(found, HostMismatch):
                    raise found
                raise _unreachable(endpoint, request, reason, tried)
            found = self._look_again(until)

    def _current(self) -> tuple[Endpoint, Exchange]:
        with self._guard:
            return self._endpoint, self._exchange

    def _paused(self, pause: float, until: float) -> float:
        wait = min(pause * (0.5 + random.random() / 2), max(0.0, until - time.monotonic()))  # noqa: S311
        if self._closed.wait(wait):
            raise LogClosed("The log has been closed.")
        return min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _look_again(self, until: float) -> HostFault | None:
        """Find the host of a log on this machine, which may have moved; why it was not found."""
        if self._find is not None:
            try:
                self.settle(self._find(until))
            except HostFault as failure:
                return failure  # not yet: who asks goes on until its deadline
        return None


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {PROTOCOL_HEADER: str(VERSION), "User-Agent": "duolog"}
    if endpoint.credential is not None:
        headers["Authorization"] = f"Bearer {endpoint.credential.reveal()}"
    if endpoint.log_id is not None:
        headers[LOG_HEADER] = endpoint.log_id
    return headers


def judged(endpoint: Endpoint, answer: Answer) -> Answer:
    """An answer of yes."""
    said = answer.headers.get(PROTOCOL_HEADER.lower())
    if said is None:
        if answer.status in _FOR_NOW:  # of a proxy between
            raise AnswerLost(f"status {answer.status}")
        raise HostMismatch(
            f"What answers at {endpoint.address} (status {answer.status}) is no host of a Duolog "
            "log. Check the url and its path."
        )
    check_version(said, f"The host at {endpoint.address}")
    if 200 <= answer.status < 300:
        return answer
    raise _unless_for_now(error_of(_decoded(endpoint, answer))) or HostFailed(
        f"The host at {endpoint.address} answered with status {answer.status}."
    )


def result_of(endpoint: Endpoint, answer: Answer) -> Any:
    """The result that an answer of yes holds."""
    value = _decoded(endpoint, judged(endpoint, answer))
    error = _unless_for_now(error_of(value))  # found when it had begun to answer
    if error is not None:
        raise error
    if not isinstance(value, dict) or "result" not in value:
        raise HostMismatch(
            f"What answers at {endpoint.address} does not speak as a host of a Duolog log does. "
            "Check the url."
        )
    return value["result"]


def _unless_for_now(error: DuologError | None) -> DuologError | None:
    """The error, but for those that are no answer: then to be asked again, where that is safe."""
    if isinstance(error, TooBusy):
        raise NotSent("it is too busy")
    if isinstance(error, LogClosed):
        raise AnswerLost("it is being stopped")
    return error


def _decoded(endpoint: Endpoint, answer: Answer) -> Any:
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise HostFailed(
            f"An answer of the host at {endpoint.address} is not readable. Is there something "
            "between that changes what it sends?"
        ) from None


def _unknown(endpoint: Endpoint, request: Request, reason: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"The host at {endpoint.address} was asked to {request.asked}, and the answer was lost "
        f"({reason}). It may have been done or not: look before you send it again."
    )


def _unreachable(
    endpoint: Endpoint, request: Request, reason: str, tried_seconds: float
) -> HostUnreachable:
    return HostUnreachable(
        f"The host at {endpoint.address} could not be asked to {request.asked}: {reason} (tried "
        f"for {tried_seconds:.1f} s). Check that it runs and can be reached from here."
    )
