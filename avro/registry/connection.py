"""Requests to a registry: over several addresses, with retries, within a deadline.

All that is asked may be asked again: a schema that is registered twice has one id. So whatever
failed on the way, or was refused for now (408, 429, 500, 502, 503, 504), is tried at the next
address, and after the last one again from the first, with growing waits between the rounds. What
answered last is asked first.
"""

from __future__ import annotations

import base64
import json
import random
import re
import threading
import time
from typing import Any, Final

import httpx

from duolog.avro.registry.answers import Answer
from duolog.avro.registry.connection_options import ConnectionOptions
from duolog.avro.registry.tls import tls_context, untrusted
from duolog.errors import InvalidSetting, RegistryRefused, RegistryUnreachable

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_FOR_NOW: Final = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
_MAX_REDIRECTS: Final = 3


class RegistryConnection:
    """Safe to use from many threads."""

    def __init__(
        self, options: ConnectionOptions, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._options = options
        self._urls = options.urls  # the one that answered last first; replaced as a whole
        self._closed = threading.Event()
        for url in options.urls:
            try:
                httpx.URL(url)
            except httpx.InvalidURL as error:
                raise InvalidSetting(
                    f"schema.registry.url '{url}' is no address: {error}."
                ) from None
        try:
            self._http = httpx.Client(
                headers=_headers(options),
                verify=tls_context(options),
                proxy=None if options.proxy is None else options.proxy.get_secret_value(),
                transport=transport,
                follow_redirects=False,
            )
        except (ImportError, ValueError, TypeError, httpx.InvalidURL):
            # Not with its own words: they would show a proxy's password.
            raise InvalidSetting(
                "The proxy that is set, here or in the environment, cannot be used. It must be "
                "http://HOST:PORT or https://HOST:PORT."
            ) from None

    def close(self) -> None:
        """End all connections. Calls under way fail."""
        self._closed.set()
        self._http.close()

    def ask(self, method: str, path: str, asked: str, *, body: Any = None) -> Answer:
        """The registry's answer. `asked` says in messages what it was asked to do.

        Raises RegistryUnreachable when nobody answered in time; an answer of no is an answer.
        """
        content = None if body is None else json.dumps(body).encode()
        until = time.monotonic() + self._options.deadline_seconds
        failures: dict[str, str] = {}
        answer: Answer | None = None
        for round_ in range(self._options.max_retries + 1):
            if round_ and not self._waited(round_, answer, until):
                break
            for url in self._urls:
                try:
                    answer = self._ask_at(url, method, path, asked, content, until)
                except _Failed as failure:
                    failures[url] = str(failure)
                    if failure.is_final:
                        raise _unreachable(asked, failures) from None
                    continue
                if answer.status not in _FOR_NOW:
                    self._urls = (url, *(other for other in self._urls if other != url))
                    return answer
        if answer is None:
            raise _unreachable(asked, failures)
        return answer

    def _waited(self, round_: int, answer: Answer | None, until: float) -> bool:
        """Wait before another round; False when there is no time for it."""
        longest = self._options.retry_max_wait_seconds
        wait = min(longest, self._options.retry_wait_seconds * 2 ** min(round_ - 1, 30))
        wait *= random.random()  # noqa: S311  # so that many clients do not come back together
        if answer is not None:
            wait = max(wait, min(longest, answer.retry_after_seconds))
        return time.monotonic() + wait < until and not self._closed.wait(wait)

    def _ask_at(
        self, url: str, method: str, path: str, asked: str, content: bytes | None, until: float
    ) -> Answer:
        """One answer of one address, behind redirects that stay with it."""
        target = httpx.URL(f"{url}/{path}")
        for _ in range(_MAX_REDIRECTS + 1):
            if self._closed.is_set():
                raise _Failed("the client was closed", is_final=True)
            seconds_left = until - time.monotonic()
            if seconds_left <= 0:
                raise _Failed(f"no time left of {self._options.deadline_seconds:g} s")
            try:
                with self._http.stream(
                    method, target, content=content, timeout=self._timeout(seconds_left)
                ) as response:
                    if response.status_code not in _REDIRECTS:
                        return self._read(response, asked, url, until)
                    target = _redirected(response, target, asked, url)
            except httpx.HTTPError as error:
                certificate = untrusted(error)
                if certificate is not None:
                    raise _Failed(
                        f"its certificate is not trusted ({certificate}); set ssl.ca.location",
                        is_final=True,
                    ) from error
                raise _Failed(_reason(error)) from error
            except RuntimeError as error:
                if self._closed.is_set():  # by another thread, just now
                    raise _Failed("the client was closed", is_final=True) from error
                raise
        raise _Failed("it redirects in circles")

    def _timeout(self, seconds_left: float) -> httpx.Timeout:
        read = min(self._options.read_timeout_seconds, seconds_left)
        connect = min(self._options.connect_timeout_seconds, seconds_left)
        return httpx.Timeout(read, connect=connect, pool=connect)

    def _read(self, response: httpx.Response, asked: str, url: str, until: float) -> Answer:
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > self._options.max_response_bytes:
                raise RegistryRefused(
                    f"What answers at {url} sent more than {self._options.max_response_bytes} "
                    f"bytes when asked to {asked}. Check schema.registry.url.",
                    status=response.status_code,
                    error_code=response.status_code,
                )
            if time.monotonic() > until:
                raise _Failed(f"its answer took over {self._options.deadline_seconds:g} s")
        retry_after = response.headers.get("retry-after", "")
        return Answer(
            asked,
            url,
            response.status_code,
            bytes(content),
            float(retry_after) if re.fullmatch(r"[0-9]{1,6}", retry_after) else 0.0,
        )


class _Failed(Exception):
    """No answer from one address. Final: there is no use in asking again."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        self.is_final = is_final
        super().__init__(reason)


def _headers(options: ConnectionOptions) -> dict[str, str]:
    headers = {
        "accept": f"{_MEDIA_TYPE}, application/vnd.schemaregistry+json, application/json",
        "accept-encoding": "identity",  # so that a small answer cannot become a large one here
        "content-type": _MEDIA_TYPE,
        "user-agent": "duolog",
    }
    if options.user_info is not None:
        secret = base64.b64encode(options.user_info.get_secret_value().encode()).decode()
        headers["authorization"] = f"Basic {secret}"
    if options.token is not None:
        headers["authorization"] = f"Bearer {options.token.get_secret_value()}"
    return headers | {name: value.get_secret_value() for name, value in options.headers}


def _redirected(response: httpx.Response, from_: httpx.URL, asked: str, url: str) -> httpx.URL:
    """Where to ask instead. Nobody else is told the credentials, or gets what is registered."""
    try:
        target = from_.join(response.headers.get("location", ""))
    except httpx.InvalidURL:
        target = httpx.URL()
    same_place = (target.scheme, target.host, _port(target)) == (
        from_.scheme,
        from_.host,
        _port(from_),
    )
    keeps_method = response.status_code in {307, 308} or response.request.method == "GET"
    if same_place and keeps_method:
        return target
    raise RegistryRefused(
        f"The schema registry at {url} was asked to {asked}: it redirects to {target.scheme}://"
        f"{target.host}, which is not followed. If that is right, set schema.registry.url to it.",
        status=response.status_code,
        error_code=response.status_code,
    )


def _port(url: httpx.URL) -> int | None:
    return url.port or {"http": 80, "https": 443}.get(url.scheme)


def _reason(error: httpx.HTTPError) -> str:
    match error:
        case httpx.ConnectTimeout():
            return "no connection in time"
        case httpx.TimeoutException():
            return "no answer in time"
        case httpx.ProxyError():
            return "the proxy refused"
    return str(error) or type(error).__name__


def _unreachable(asked: str, failures: dict[str, str]) -> RegistryUnreachable:
    told = "; ".join(f"{url}: {reason}" for url, reason in failures.items())
    return RegistryUnreachable(
        f"No schema registry could be asked to {asked}: {told}. Check schema.registry.url, and "
        "that it runs and can be reached from here."
    )
