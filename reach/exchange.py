"""One request and its answer over HTTP/1.1. No second tries here: who asks knows what may be
asked again. But it says what they need to know: whether the request can have been seen at all.
"""

from __future__ import annotations

import http.client
import os
import select
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import BinaryIO, Final, Protocol
from weakref import WeakKeyDictionary, WeakSet

from duolog.errors import InvalidSetting
from duolog.reach.address import Address
from duolog.reach.options import RemoteOptions

MAX_ANSWER_BYTES: Final = 1 << 30
_IDLE_CONNECTIONS: Final = 16
_BLOCK_BYTES: Final = 1 << 18


class NotSent(Exception):
    """The request cannot have been seen."""


class AnswerLost(Exception):
    """The request may have been seen, or not."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked; `asked` continues "asked to ..." in messages. Files go from their start."""

    method: str
    path: str
    asked: str
    body: bytes | BinaryIO | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_seconds: float = 0.0  # that the host may take by agreement before it answers


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]  # by small letters
    content: bytes


class Introduction(Protocol):
    """What comes first on a connection, so that both sides know whom they speak with."""

    def on(self, ask: Callable[[Request, dict[str, str]], Answer]) -> dict[str, str]:
        """Headers for all that is asked there. Raises NotSent when it is not whom we mean."""


_made_here: WeakSet[Exchange] = WeakSet()


def _leave_to_parent() -> None:
    for exchange in tuple(_made_here):
        exchange.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


class Exchange:
    """Requests to one address. Keeps connections for the next ones; safe for many threads."""

    def __init__(
        self,
        address: Address,
        options: RemoteOptions,
        *,
        vouched_for: bool = False,
        introduction: Introduction | None = None,
    ) -> None:
        """`introduction` comes first on each connection. A host of this machine that is vouched for
        by one needs no authority to do it.
        """
        self.address = address
        self._options = options
        self._introduction = introduction
        is_vouched_for = vouched_for and address.is_loopback
        self._tls = _tls_context(options, check=not is_vouched_for) if address.is_tls else None
        self._idle: list[HTTPConnection] = []
        self._known_by: WeakKeyDictionary[HTTPConnection, dict[str, str]] = WeakKeyDictionary()
        self._guard = threading.Lock()  # of `_idle` and `_closed`
        self._closed = False
        _made_here.add(self)

    def leave_to_parent(self) -> None:
        """In a forked child: the connections are the parent's, which goes on with them."""
        idle, self._idle = self._idle, []
        self._guard = threading.Lock()
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """End the connections that nobody uses; those in use end with their request."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _introduced(self, connection: HTTPConnection, until: float) -> dict[str, str]:
        """Headers by which the host knows us on this connection."""
        if self._introduction is None:
            return {}
        is_open = True

        def ask(request: Request, headers: dict[str, str]) -> Answer:
            nonlocal is_open
            answer, is_open = self._exchanged(connection, request, headers, until)
            return answer

        try:
            known_by = self._introduction.on(ask)
        except AnswerLost as failure:  # of the introduction: nothing else was sent
            raise NotSent(str(failure)) from failure
        if not is_open:
            raise NotSent("it hung up before anything was asked")
        return known_by

    def ask(self, request: Request, headers: Mapping[str, str], until: float) -> Answer:
        """The answer, whatever its status. `until` is in seconds of time.monotonic()."""
        connection = self._connected(until)
        try:
            known_by = self._known_by.get(connection)
            if known_by is None:
                known_by = self._known_by[connection] = self._introduced(connection, until)
            answer, may_stay = self._exchanged(connection, request, {**headers, **known_by}, until)
        except BaseException:
            connection.close()
            raise
        self._keep(connection, may_stay=may_stay)
        return answer

    def _exchanged(
        self, connection: HTTPConnection, request: Request, headers: Mapping[str, str], until: float
    ) -> tuple[Answer, bool]:
        silence = min(self._options.answer_timeout_seconds, until - time.monotonic())
        connection.sock.settimeout(max(0.001, silence) + request.extra_seconds)
        if isinstance(request.body, bytes | None):
            body: bytes | BinaryIO | None = request.body
        else:
            request.body.seek(0)
            body = request.body
        target = f"{self.address.path}{request.path}"
        was_sent = True
        try:
            try:
                connection.request(request.method, target, body, {**request.headers, **headers})
            except (BrokenPipeError, ConnectionResetError):
                was_sent = False  # perhaps refused before all of it was there: see what it says
            response = connection.getresponse()
            content = _read(response)
        except TimeoutError as error:
            raise AnswerLost(f"no answer for {silence:.3g} s") from error
        except (OSError, HTTPException, ValueError) as error:
            raise AnswerLost(_reason(error)) from error
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content), was_sent and not response.will_close

    def _connected(self, until: float) -> HTTPConnection:
        while True:
            with self._guard:
                if self._closed:
                    raise NotSent("the log has been closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect(until)
            if _is_quiet(connection):
                return connection
            connection.close()

    def _connect(self, until: float) -> HTTPConnection:
        seconds = min(self._options.connect_timeout_seconds, until - time.monotonic())
        if seconds <= 0:
            raise NotSent("no time was left")
        host, port = self.address.host, self.address.port
        connection = (
            HTTPConnection(host, port, timeout=seconds, blocksize=_BLOCK_BYTES)
            if self._tls is None
            else http.client.HTTPSConnection(
                host, port, timeout=seconds, blocksize=_BLOCK_BYTES, context=self._tls
            )
        )
        try:
            connection.connect()
        except TimeoutError as error:
            connection.close()
            raise NotSent(f"no connection within {seconds:.3g} s") from error
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            raise NotSent(_reason(error)) from error
        return connection

    def _keep(self, connection: HTTPConnection, *, may_stay: bool) -> None:
        with self._guard:
            if may_stay and not self._closed and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


def _is_quiet(connection: HTTPConnection) -> bool:
    """Whether the other side has neither closed nor said anything since."""
    poll = select.poll()  # unlike select(), of any number of files
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _read(response: HTTPResponse) -> bytes:
    content = response.read(MAX_ANSWER_BYTES + 1)
    if len(content) > MAX_ANSWER_BYTES:
        raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
    if response.length:  # read(n) does not say so itself
        raise http.client.IncompleteRead(content, response.length)
    return content


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {(error.reason or 'unknown').replace('_', ' ').lower()}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut short"
    if isinstance(error, http.client.RemoteDisconnected):
        return "it hung up without an answer"
    return str(error) or type(error).__name__


def _tls_context(options: RemoteOptions, *, check: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_path)
    except OSError as error:
        raise InvalidSetting(
            f"ca_path '{options.ca_path}' cannot be used: it must be a PEM file of certificates."
        ) from error
    if not check:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
