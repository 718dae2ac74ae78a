"""Tokens: what a provider may answer, and that one is fresh whatever the provider does."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from duolog.bridge.kafka.tokens import TokenSource, source
from duolog.bridge.kafka.tokens.clients import ForAiokafka, ForLibrdkafka
from duolog.bridge.kafka.tokens.oidc import OidcServer, read_answer
from duolog.bridge.kafka.tokens.token import Token
from duolog.errors import InvalidSetting, InvalidToken, KafkaTokenUnavailable

NOW = 1_800_000_000.0
DEADLINE_SECONDS = 30.0


class Provider:
    """Answers as a test says, and counts."""

    def __init__(self, lives_seconds: float = 100.0) -> None:
        self.lives_seconds = lives_seconds
        self.now = NOW
        self.calls = 0
        self.failure: BaseException | None = None
        self.hangs: threading.Event | None = None

    def __call__(self) -> Any:
        self.calls += 1
        number = self.calls
        if self.hangs is not None:
            self.hangs.wait(DEADLINE_SECONDS)
        if self.failure is not None:
            raise self.failure
        return f"token-{number}", self.now + self.lives_seconds


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setattr(source, "_AGAIN_SECONDS", 0.0)
    made = Provider()
    yield made
    if made.hangs is not None:
        made.hangs.set()


def source_of(provider: Provider, wait_seconds: float = DEADLINE_SECONDS) -> TokenSource:
    return TokenSource(
        provider,
        "vault:token",
        secrets=[SecretStr("hush-hush"), SecretStr("")],
        wait_seconds=wait_seconds,
        now=lambda: provider.now,
    )


def text(token: Token) -> str:
    return token.value.get_secret_value()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "answered NoneType"),
        ("token", "answered str"),
        (("token",), "seconds since 1970"),
        ((b"token", NOW + 9), "a text"),
        (("", NOW + 9), "a text"),
        (("a b", NOW + 9), "characters"),
        (("a\x01b", NOW + 9), "characters"),
        (("x" * 70_000, NOW + 9), "at most"),
        (("token", "soon"), "seconds since 1970"),
        (("token", True), "seconds since 1970"),
        (("token", (NOW + 9) * 1000), "milliseconds"),
        (("token", float("nan")), "has ended"),
        (("token", NOW), "has ended 0 s ago"),
        (("token", NOW - 60), "has ended 60 s ago"),
    ],
)
def test_what_is_no_token(answer: Any, said: str) -> None:
    with pytest.raises(InvalidToken, match=said):
        Token.of(answer, NOW)


def test_a_token_is_made_anew_before_it_ends() -> None:
    token = Token.of(("secret-token", NOW + 100, "ann", {}), NOW)
    assert NOW < token.refresh_at < NOW + 80 < token.expires_at == NOW + 100
    assert "secret-token" not in repr(token)


def test_one_token_serves_all_until_it_is_time_for_another(provider: Provider) -> None:
    tokens = source_of(provider)
    assert {text(tokens.get()) for _ in range(5)} == {"token-1"}
    provider.now += 71
    assert text(tokens.get()) == "token-2"
    assert provider.calls == 2


def test_all_who_wait_get_the_same_answer(provider: Provider) -> None:
    provider.hangs = threading.Event()
    tokens = source_of(provider)
    asked = [tokens.begin() for _ in range(5)]
    provider.hangs.set()
    assert {text(each.result(DEADLINE_SECONDS)) for each in asked} == {"token-1"}
    assert provider.calls == 1


def test_the_old_token_serves_while_no_new_one_comes(provider: Provider) -> None:
    tokens = source_of(provider)
    tokens.get()
    provider.failure = ConnectionError("sealed")
    provider.now += 99
    assert text(tokens.get()) == "token-1"
    provider.now += 2
    with pytest.raises(KafkaTokenUnavailable, match=r"vault:token: ConnectionError: sealed\. "):
        tokens.get()
    provider.failure = None
    assert text(tokens.get()) == f"token-{provider.calls}"


@pytest.mark.parametrize("failure", [ValueError("hush-hush!"), SystemExit("hush-hush!")])
def test_a_provider_that_raises_is_named_without_our_secrets(
    provider: Provider, failure: BaseException
) -> None:
    provider.failure = failure
    with pytest.raises(KafkaTokenUnavailable, match=r"\*\*\*!") as refused:
        source_of(provider).get()
    assert "hush" not in str(refused.value)


def test_a_provider_that_fails_is_not_asked_all_the_time(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_AGAIN_SECONDS", 3600.0)
    provider.failure = ConnectionError("sealed")
    tokens = source_of(provider)
    for _ in range(20):
        with pytest.raises(KafkaTokenUnavailable, match="sealed"):
            tokens.get()
    assert provider.calls == 1


def test_a_provider_that_hangs_is_named_and_left_behind(provider: Provider) -> None:
    provider.hangs = threading.Event()
    tokens = source_of(provider, wait_seconds=0.05)
    said = []
    for _ in range(8):
        with pytest.raises(KafkaTokenUnavailable) as refused:
            tokens.get()
        said.append(str(refused.value))
    assert "not answered within 0.05 s" in said[0]
    assert "have not returned" in said[-1]
    assert provider.calls == 3  # threads do not pile up
    provider.hangs.set()
    for hung in tokens._hung:
        hung.answer.result(DEADLINE_SECONDS)
    tokens.wait_seconds = DEADLINE_SECONDS
    assert text(tokens.get()).startswith("token-")


def test_an_event_loop_goes_on_while_a_provider_hangs(provider: Provider) -> None:
    provider.hangs = threading.Event()
    tokens = ForAiokafka(source_of(provider), {"a": "b"})

    async def both() -> str:
        asked = asyncio.create_task(tokens.token())
        turns = 0
        while turns < 10:
            await asyncio.sleep(0)
            turns += 1
        assert not asked.done()
        assert provider.hangs is not None
        provider.hangs.set()
        return str(await asked)

    assert asyncio.run(both()) == "token-1"
    assert tokens.extensions() == {"a": "b"}


def test_an_event_loop_is_told_that_a_provider_hangs(provider: Provider) -> None:
    provider.hangs = threading.Event()
    tokens = ForAiokafka(source_of(provider, wait_seconds=0.05), {})
    with pytest.raises(KafkaTokenUnavailable, match=r"not answered within 0\.05 s"):
        asyncio.run(tokens.token())


def test_librdkafka_gets_what_it_asks_for(provider: Provider) -> None:
    tokens = ForLibrdkafka(source_of(provider), {"a": "b"})
    assert tokens("") == ("token-1", NOW + 100, "", {"a": "b"})


def jwt(**claims: Any) -> str:
    packed = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{packed}.x"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"access_token": "t", "expires_in": 60}, ("t", NOW + 60)),
        ({"access_token": "t", "expires_in": "60"}, ("t", NOW + 60)),
        ({"access_token": jwt(exp=NOW + 50)}, (jwt(exp=NOW + 50), NOW + 50)),
        ({"access_token": jwt(exp=NOW + 50), "expires_in": 60}, (jwt(exp=NOW + 50), NOW + 50)),
        ({"access_token": "a.%.c", "expires_in": 5}, ("a.%.c", NOW + 5)),
    ],
)
def test_what_a_token_endpoint_answers(answer: Any, expected: tuple[str, float]) -> None:
    assert read_answer(json.dumps(answer).encode(), NOW) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "without an access_token"),
        (b"<html>", "without an access_token"),
        (b'{"error": "invalid_scope"}', "invalid_scope"),
        (b'{"access_token": "secret-token"}', "expires_in"),
        (b'{"access_token": "secret-token", "expires_in": "soon"}', "expires_in"),
    ],
)
def test_what_is_no_answer_of_a_token_endpoint(body: bytes, said: str) -> None:
    with pytest.raises(InvalidToken, match=said) as refused:
        read_answer(body, NOW)
    assert "secret-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "https://"),
        ("ftp://here/token", "https://"),
        ("http://issuer.example/token", "unencrypted"),
        ("https://user:hunter2@issuer.example/token", "holds a password"),
    ],
)
def test_where_secrets_are_not_sent(url: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as refused:
        OidcServer(url, "duolog", SecretStr("s"))
    assert "hunter2" not in str(refused.value)


def test_a_token_endpoint_that_is_not_there_is_named() -> None:
    server = OidcServer("http://127.0.0.1:9/token", "duolog", SecretStr("s"))
    began = time.monotonic()
    with pytest.raises(InvalidToken, match="cannot be reached"):
        server()
    assert time.monotonic() - began < DEADLINE_SECONDS
