"""Where a host is, as its url says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from duolog.errors import InvalidSetting
from duolog.server.address import is_loopback


@dataclass(frozen=True, slots=True)
class Address:
    """A host's url in its pieces; `path` is without a slash at its end."""

    host: str
    port: int
    is_tls: bool = False
    path: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.host)


def parse_address(url: str) -> Address:
    """The address of http(s)://HOST[:PORT][/PATH], or of HOST:PORT as host.json has it."""
    if not isinstance(url, str) or not url.strip():
        raise InvalidSetting(f"url must be http://HOST:PORT or https://HOST:PORT; got {url!r}.")
    text = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidSetting("url is not readable. Write http://HOST:PORT or https://…") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidSetting("url holds credentials. Leave them out and give the token apart.")
    if parts.scheme not in {"http", "https"} or not host or any(c.isspace() for c in text):
        raise InvalidSetting(f"url must be http://HOST:PORT or https://HOST:PORT; got {url!r}.")
    if parts.query or parts.fragment:
        raise InvalidSetting("url has a query or a fragment, which it cannot have.")
    is_tls = parts.scheme == "https"
    return Address(host, port or (443 if is_tls else 80), is_tls, parts.path.rstrip("/"))


def check_privacy(address: Address, *, allow_plain_http: bool) -> Address:
    """Refuse to send a token in the clear over a network."""
    if address.is_tls or address.is_loopback or allow_plain_http:
        return address
    raise InvalidSetting(
        f"{address} is plain http to another machine, where anybody on the way may read the token. "
        "Use https, or say allow_plain_http if the network is trusted."
    )
