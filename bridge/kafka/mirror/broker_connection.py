"""A connection of aiokafka's that notices when its token is refused."""

from __future__ import annotations

from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator

_TELL_ME_WHY: Final = b"\x01"  # RFC 7628: what a client answers to a refusal, which then is final


class BrokerConnection(AIOKafkaConnection):  # type: ignore[misc] # has no types
    """One connection to one broker."""

    def authenticator_oauth(self) -> Any:
        return _Login(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


class _Login(OAuthAuthenticator):  # type: ignore[misc] # has no types
    """aiokafka takes any answer for a yes; a broker that refuses a token answers with the reason.

    Without this, the first request on the connection would be answered with an empty cluster.
    """

    async def step(self, payload: bytes | None) -> Any:
        if payload:
            return _TELL_ME_WHY, True
        return await super().step(payload)
