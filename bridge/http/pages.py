"""Requests that a page of another site makes in somebody's browser.

A browser sends such a request wherever the page likes, with what it knows of that place: that it is
on the user's own machine, and a password that the user has given it there. It says so itself, in
headers that no page can change.

An origin is a scheme, a name and a port. Two servers of one machine differ in the port alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where a page comes from, or a host is asked."""

    scheme: str
    name: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """The origin of a url; None for "null", which hides it, and for files and the like."""
        try:
            parts = urlsplit(url.lower())
            port = parts.port
        except ValueError:
            return None
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            return None
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme])


def is_of_another_site(scope: Any, advertised: Origin | None) -> bool:
    """Whether a browser says that the request comes from a page that is not the host's own.

    `advertised` is where others ask the host, if a proxy stands between.
    """
    said = [(name, value.decode("latin-1").strip().lower()) for name, value in scope["headers"]]
    own = {Origin.of(f"{scope['scheme']}://{value}") for name, value in said if name == b"host"}
    own = (own | {advertised}) - {None}
    return any(
        (name == b"sec-fetch-site" and value == "cross-site")
        or (name == b"origin" and Origin.of(value) not in own)
        for name, value in said
    )


def brings_what_a_browser_keeps(scope: Any) -> bool:
    """Whether the credentials are such that a browser sends by itself: a password."""
    return any(
        name == b"authorization" and value[:6].lower() == b"basic "
        for name, value in scope["headers"]
    )
