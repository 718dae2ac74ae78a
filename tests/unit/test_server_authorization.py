"""Which token a request brings, for all that check one."""

from __future__ import annotations

import base64

import pytest

from duolog.server.authorization import token_in


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


@pytest.mark.parametrize(
    ("sent", "token"),
    [
        ([], None),
        ([b"Bearer abc"], "abc"),
        ([b"bearer   abc  "], "abc"),
        ([b"Bearer "], ""),
        ([b"Bearer"], ""),
        ([b"abc"], ""),
        ([b""], ""),
        ([b"Digest abc"], ""),
        ([basic("anybody:abc")], "abc"),
        ([basic("anybody:a:b")], "a:b"),
        ([basic(":abc\n")], "abc"),
        ([basic("abc")], ""),
        ([b"basic !"], ""),
        ([b"Bearer abc", b"Bearer abc"], ""),
        ([b"Bearer abc", basic("anybody:abc")], ""),
        ([b"Bearer \xff"], "\xff"),
    ],
)
def test_a_token_comes_as_bearer_or_as_a_password(sent: list[bytes], token: str | None) -> None:
    headers = [(b"host", b"Bearer no"), *((b"authorization", value) for value in sent)]
    assert token_in(headers) == token


@pytest.mark.parametrize(("sent", "token"), [(b"Bearer abc", "abc"), (basic("anybody:abc"), "")])
def test_where_passwords_are_not_taken_only_a_bearer_counts(sent: bytes, token: str) -> None:
    assert token_in([(b"authorization", sent)], takes_passwords=False) == token
