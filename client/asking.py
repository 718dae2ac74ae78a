"""Requests to one host over HTTP, asked until they are answered or the deadline is over."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from typing import Any, Final

from duolog.client.answers import Answer, judged
from duolog.client.options import ConnectionOptions
from duolog.client.patience import Failure, Patience
from duolog.errors import (
    ClientClosed,
    DuologError,
    HostUnreachable,
    InvalidSetting,
    OutcomeUnknown,
)

try:
    import httpx
except ModuleNotFoundError as error:
    raise InvalidSetting("The client needs httpx: pip install 'duolog[client]'.") from error

JSON_TYPE: Final = "application/json"
ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"

_NOT_SEEN: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class HostClient:
    """Used from one event loop."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._closed = False
        headers = {"user-agent": "duolog", "accept-encoding": "identity"}
        if options.token is not None:
            headers["authorization"] = f"Bearer {options.token.reveal()}"
        self._http = httpx.AsyncClient(
            base_url=str(options.address),
            headers=headers,
            verify=_tls_context(options),
            trust_env=False,  # as all of Duolog asks its host: the url and nothing between
            follow_redirects=False,
            limits=httpx.Limits(max_connections=None, keepalive_expiry=4.0),
        )

    async def close(self) -> None:
        self._closed = True
        await self._http.aclose()

    async def ask(
        self,
        path: str,
        content: bytes,
        asked: str,
        *,
        wants: str = JSON_TYPE,
        extra_seconds: float = 0.0,
        changes: bool = False,
        deadline_seconds: float | None = None,
    ) -> Answer:
        """A success. `asked` continues "asked to ..." in messages; the rest raises its error.

        `extra_seconds`: how long the host may take by agreement. `changes`: a lost answer is
        OutcomeUnknown.
        """
        patience = Patience(deadline_seconds or self._options.deadline_seconds, random.random)
        started = time.monotonic()
        while True:
            found = await self._try(path, content, wants, extra_seconds)
            if isinstance(found, Answer):
                return found
            if isinstance(found, DuologError):
                raise found
            pause = patience.pause_after(found, time.monotonic())
            if pause is None:
                tried = time.monotonic() - started
                raise self._given_up(asked, found, tried, changes and patience.may_be_done)
            await asyncio.sleep(pause)

    async def _try(
        self, path: str, content: bytes, wants: str, extra_seconds: float
    ) -> Answer | Failure | DuologError:
        if self._closed:
            raise ClientClosed("It has been closed. Make a new one.")
        connect = self._options.connect_timeout_seconds
        silence = self._options.answer_timeout_seconds
        timeout = httpx.Timeout(silence, connect=connect, read=silence + extra_seconds, pool=None)
        try:
            response = await self._http.post(
                path,
                content=content,
                headers={"content-type": JSON_TYPE, "accept": wants},
                timeout=timeout,
            )
        except httpx.HTTPError as error:
            from duolog.avro.registry.tls import untrusted

            certificate = untrusted(error)
            if certificate is not None:
                return HostUnreachable(
                    f"The certificate of {self._options.address} is not trusted ({certificate}). "
                    "Give the authority's in ca_path."
                )
            return Failure(_reason(error), not isinstance(error, _NOT_SEEN))
        answer = Answer(response.status_code, response.headers, response.content)
        return judged(self._options.address, answer, wants=wants) or answer

    def _given_up(
        self, asked: str, failure: Failure, tried_seconds: float, may_be_done: bool
    ) -> DuologError:
        if may_be_done:
            return OutcomeUnknown(
                f"The host at {self._options.address} was asked to {asked}, and there was no "
                f"answer that settles it within {tried_seconds:.1f} s ({failure.reason}). It may "
                "have been done or not."
            )
        return failure.error or HostUnreachable(
            f"The host at {self._options.address} could not be asked to {asked}: {failure.reason} "
            f"(tried for {tried_seconds:.1f} s). Check that it runs and can be reached from here."
        )


def _reason(error: httpx.HTTPError) -> str:
    match error:
        case httpx.ConnectTimeout():
            return "no connection in time"
        case httpx.TimeoutException():
            return "no answer in time"
        case httpx.RemoteProtocolError() | httpx.ReadError():
            return "it hung up without an answer"
    return str(error) or type(error).__name__


def _tls_context(options: ConnectionOptions) -> Any:
    if not options.address.is_tls:
        return False  # nothing to verify, and authorities take 50 ms to load
    try:
        return ssl.create_default_context(cafile=options.ca_path)
    except OSError as error:
        raise InvalidSetting(
            f"ca_path '{options.ca_path}' cannot be used: it must be a PEM file of certificates."
        ) from error
