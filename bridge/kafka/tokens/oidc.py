"""Tokens of an OIDC server, by the grant for programs (client credentials).

By hand, and not by librdkafka's own way, so that one token serves both client libraries.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from pydantic import SecretStr

from duolog.errors import InvalidSetting, InvalidToken

URL_SETTING: Final = "sasl.oauthbearer.token.endpoint.url"
_MOST_BYTES: Final = 1 << 20
_LONGEST_SAID: Final = 200
_NAMED_SECONDS: Final = 10.0


class _NoRedirects(HTTPRedirectHandler):
    """A password goes where it was told to go, and nowhere else."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        del req, fp, code, msg, headers, newurl
        return None


@dataclass(frozen=True, slots=True)
class OidcServer:
    """A provider: call it for a token and when that ends. Blocks."""

    url: str
    client_id: str
    client_secret: SecretStr
    scope: str = ""
    ca_file: str = ""

    def __post_init__(self) -> None:
        where = urlsplit(self.url)
        if where.scheme not in {"http", "https"} or not where.hostname:
            raise InvalidSetting(f"{URL_SETTING} is the https:// address of a token endpoint.")
        if where.username or where.password:
            raise InvalidSetting(
                f"{URL_SETTING} holds a password. Give sasl.oauthbearer.client.id and "
                "sasl.oauthbearer.client.secret."
            )
        if where.scheme == "http" and not self._is_here:
            raise InvalidSetting(
                f"{URL_SETTING} would send the secret unencrypted to {where.hostname}: use https://."
            )

    def __call__(self) -> tuple[str, float]:
        secret = self.client_secret.get_secret_value()
        basic = base64.b64encode(f"{self.client_id}:{secret}".encode()).decode()
        asked = {"grant_type": "client_credentials"}
        if self.scope:
            asked["scope"] = self.scope
        request = Request(  # noqa: S310 - http or https, checked above
            self.url,
            urlencode(asked).encode(),
            {
                "Authorization": f"Basic {basic}",
                "Accept": "application/json",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        asked_at = time.time()
        try:
            with self._opener().open(request, timeout=_NAMED_SECONDS) as answer:
                return read_answer(answer.read(_MOST_BYTES), asked_at)
        except HTTPError as error:
            with error:
                said = _said(error.read(_MOST_BYTES))
            raise InvalidToken(f"{self.url} answered {error.code}{said}.") from None
        except URLError as error:
            raise InvalidToken(f"{self.url} cannot be reached: {error.reason}.") from None

    @property
    def _is_here(self) -> bool:
        host = urlsplit(self.url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def _opener(self) -> OpenerDirector:
        context = ssl.create_default_context(cafile=self.ca_file or None)
        handlers = [_NoRedirects(), HTTPSHandler(context=context)]
        return build_opener(*handlers, *([ProxyHandler({})] if self._is_here else []))


def read_answer(body: bytes, asked_at: float) -> tuple[str, float]:
    """A token endpoint's answer: the token, and when it ends. Pure."""
    answer = _object(body)
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise InvalidToken(f"The token endpoint answered without an access_token{_said(body)}.")
    ends = []
    expires_in = answer.get("expires_in")
    if isinstance(expires_in, int | float | str):
        with suppress(ValueError):
            ends.append(asked_at + float(expires_in))
    expiry = _claim(token, "exp")
    if isinstance(expiry, int | float):
        ends.append(float(expiry))
    if not ends:
        raise InvalidToken("The token endpoint does not say when its token ends (expires_in).")
    return token, min(ends)


def _claim(token: str, name: str) -> Any:
    """What a token says of itself, if it is one that can be read."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get(name)
    except ValueError:
        return None


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _said(body: bytes) -> str:
    """The reason, as the protocol words it; nothing else of the answer is repeated."""
    answer = _object(body)
    words = [answer.get("error"), answer.get("error_description")]
    said = ": ".join(word for word in words if isinstance(word, str))
    return f" ({said[:_LONGEST_SAID]})" if said else ""
