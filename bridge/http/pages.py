"""Requests that a page of another site makes in somebody's browser.

A browser sends such a request wherever the page likes, with what it knows of that place: that it is
on the user's own machine, and a password that the user has given it there. It says so itself, in
headers that no page can change.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit


def is_of_another_site(headers: Iterable[tuple[bytes, bytes]], known_as: str | None) -> bool:
    """Whether a browser says that the request comes from a page that is not the host's own.

    `known_as` is the host's name for others, where a proxy stands between.
    """
    said = [(name, value.decode("latin-1").strip().lower()) for name, value in headers]
    asked = {value for name, value in said if name == b"host"}
    return any(
        (name == b"sec-fetch-site" and value == "cross-site")
        or (name == b"origin" and not _is_own(value, asked, known_as))
        for name, value in said
    )


def _is_own(origin: str, asked: set[str], known_as: str | None) -> bool:
    try:
        parts = urlsplit(origin)
        name = parts.hostname
    except ValueError:
        return False
    if parts.scheme not in {"http", "https"}:
        return False  # "null": a page that hides where it comes from, or a file
    return parts.netloc in asked or (known_as is not None and name == known_as.lower())


def brings_what_a_browser_keeps(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the credentials are such that a browser sends by itself: a password."""
    return any(
        name == b"authorization" and value[:6].lower() == b"basic " for name, value in headers
    )
