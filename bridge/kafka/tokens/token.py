"""A token, and when it has to be another one. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr

from duolog.errors import InvalidToken

Provider = Callable[[], Any]
"""Answers (token, when it ends in seconds since 1970), as confluent-kafka's `oauth_cb` does."""

_REFRESH_AFTER: Final = 0.7  # of its life: librdkafka asks at 0.8, and then gets another one
_MOST_BYTES: Final = 64 << 10
_MILLISECONDS_FROM: Final = 1e11  # in seconds that is the year 5138


@dataclass(frozen=True, slots=True)
class Token:
    """What a broker is shown. Times are seconds since 1970."""

    value: SecretStr
    refresh_at: float
    expires_at: float

    @classmethod
    def of(cls, answer: Any, now: float) -> Token:
        """What a provider answered at a time, checked. Raises InvalidToken."""
        if not isinstance(answer, tuple | list) or len(answer) < 2:
            raise InvalidToken(
                f"It answered {type(answer).__name__}: it is to answer (token, when it ends in "
                "seconds since 1970)."
            )
        text, expires_at = answer[0], answer[1]
        if not isinstance(text, str) or not text or len(text) > _MOST_BYTES:
            raise InvalidToken(
                f"The first of its answer is to be the token, a text of at most {_MOST_BYTES} "
                f"characters; it is {type(text).__name__}."
            )
        if not text.isascii() or not text.isprintable() or " " in text:
            raise InvalidToken("Its token has characters that no token has.")
        if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
            raise InvalidToken(
                "The second of its answer is to be the time when the token ends, in seconds since "
                f"1970; it is {type(expires_at).__name__}."
            )
        if expires_at >= _MILLISECONDS_FROM:
            raise InvalidToken(
                f"Its token ends at {expires_at:g}: that is milliseconds, and should be seconds "
                "since 1970."
            )
        if not expires_at > now:
            raise InvalidToken(
                f"Its token has ended {now - expires_at:.0f} s ago. Look at what it keeps, and at "
                "the clocks."
            )
        return cls(SecretStr(text), now + (expires_at - now) * _REFRESH_AFTER, float(expires_at))
