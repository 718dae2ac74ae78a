"""Which pages a host takes for its own."""

from __future__ import annotations

import pytest

from duolog.bridge.http.pages import Origin, is_of_another_site

ADVERTISED = Origin.of("https://Logs.example:8443/duolog")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://localhost", Origin("http", "localhost", 80)),
        ("https://localhost", Origin("https", "localhost", 443)),
        ("HTTP://Localhost:7070/path", Origin("http", "localhost", 7070)),
        ("http://[::1]:7070", Origin("http", "::1", 7070)),
        ("null", None),
        ("", None),
        ("file://", None),
        ("http://", None),
        ("http://[::1", None),
        ("http://a:99999", None),
        ("http://user@localhost", None),
    ],
)
def test_an_origin_has_a_scheme_a_name_and_a_port(url: str, origin: Origin | None) -> None:
    assert Origin.of(url) == origin


@pytest.mark.parametrize(
    ("scheme", "host", "origin", "is_foreign"),
    [
        ("http", "localhost:7070", "http://localhost:7070", False),
        ("http", "localhost:7070", "http://localhost:7071", True),
        ("http", "localhost:7070", "https://localhost:7070", True),
        ("http", "localhost", "http://localhost", False),
        ("http", "localhost", "http://localhost:80", False),
        ("http", "localhost", "https://localhost", True),
        ("https", "localhost", "https://localhost:443", False),
        ("http", "10.0.0.7:7070", "https://logs.example:8443", False),
        ("http", "10.0.0.7:7070", "https://logs.example", True),
        ("http", "10.0.0.7:7070", "http://logs.example:8443", True),
        ("http", "10.0.0.7:7070", "https://logs.example:8444", True),
        ("http", "10.0.0.7:7070", "null", True),
        ("http", "10.0.0.7:7070", "", True),
    ],
)
def test_another_port_or_scheme_is_another_site(
    scheme: str, host: str, origin: str, is_foreign: bool
) -> None:
    headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    scope = {"scheme": scheme, "headers": headers}
    assert is_of_another_site(scope, ADVERTISED) is is_foreign


def test_no_host_header_makes_no_page_an_own_one() -> None:
    for origin in (b"null", b"", b"http://", b"https://evil.example"):
        assert is_of_another_site({"scheme": "http", "headers": [(b"origin", origin)]}, None)
