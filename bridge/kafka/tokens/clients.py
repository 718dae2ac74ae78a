"""A token source as aiokafka and as librdkafka ask for tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider

from duolog.bridge.kafka.tokens.source import TokenSource
from duolog.errors import KafkaTokenUnavailable


class ForAiokafka(AbstractTokenProvider):  # type: ignore[misc] # has no types
    """Never blocks the event loop."""

    def __init__(self, source: TokenSource, extensions: Mapping[str, str]) -> None:
        self._source = source
        self._extensions = dict(extensions)

    async def token(self) -> str:
        try:
            async with asyncio.timeout(self._source.wait_seconds):
                # Shielded: others may wait for the same answer.
                token = await asyncio.shield(asyncio.wrap_future(self._source.begin()))
        except (KafkaTokenUnavailable, TimeoutError) as error:
            token = self._source.instead(error)
        return token.value.get_secret_value()

    def extensions(self) -> dict[str, str]:
        return self._extensions


class ForLibrdkafka:
    """Its `oauth_cb`, which is called in a thread of librdkafka's own."""

    def __init__(self, source: TokenSource, extensions: Mapping[str, str]) -> None:
        self._source = source
        self._extensions = dict(extensions)

    def check(self) -> None:
        """Raise what is wrong, if there is no token. A client that is made without one only says
        so after ten seconds, in words of Python's own."""
        self._source.get()

    def __call__(self, config: str | None) -> tuple[Any, ...]:
        del config
        token = self._source.get()
        return token.value.get_secret_value(), token.expires_at, "", self._extensions
