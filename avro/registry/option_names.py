"""The names and values of options, before anything is made of them."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from duolog.avro.registry.subject_names import strategy_of
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pydantic import SecretStr


def is_registry_option(name: str) -> bool:
    """Whether an option is one of these, for callers whose options come mixed.

    Names that others have too count only with the prefix: schema.registry.timeout.
    """
    plain = _plain(name)
    if name.strip().lower() in _AMBIGUOUS:
        return False
    return plain in _READERS or plain in _REFUSED or plain.startswith(HEADER_PREFIX)


def _text(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _secret(value: str) -> SecretStr:
    return _kept_secret(_text(value))


def _password(value: str) -> SecretStr:
    return _kept_secret(_text(value))  # its spaces may count


def _kept_secret(text: str) -> SecretStr:
    from pydantic import SecretStr  # where there is no secret, there need be no pydantic

    return SecretStr(text)


def _flag(value: str) -> bool:
    word = value.lower()
    if word not in {"true", "false"}:
        raise ValueError(f"must be true or false; got '{value}'")
    return word == "true"


def _number(value: str, *, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (least <= number < math.inf):
        raise ValueError(f"must be a number from {least:g} on; got '{value}'")
    return number


def _seconds(value: str) -> float:
    seconds = _number(value, least=0)
    if not seconds:
        raise ValueError("must be above 0")
    return seconds


def _milliseconds(value: str) -> float:
    return _seconds(value) / 1000


def _wait(value: str) -> float:
    return _number(value, least=0) / 1000


def _lifetime(value: str) -> float:
    seconds = _number(value, least=-1)
    return math.inf if seconds < 0 else seconds


def _whole(value: str, *, least: int) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", value) or int(value) < least:
        raise ValueError(f"must be a whole number from {least} on; got '{value}'")
    return int(value)


def _schema_id(value: str) -> int | None:
    number = _whole(value, least=-1)
    return None if number < 0 else number  # Java's "not set"


def _at_least_zero(value: str) -> int:
    return _whole(value, least=0)


def _at_least_one(value: str) -> int:
    return _whole(value, least=1)


URL: Final = "schema.registry.url"
HEADER_PREFIX: Final = "request.header."
BOTH_STRATEGIES: Final = "subject.name.strategy"

_READERS: Final[dict[str, Callable[[str], Any]]] = {
    URL: _text,
    "basic.auth.credentials.source": str.upper,
    "basic.auth.user.info": _password,
    "bearer.auth.credentials.source": str.upper,
    "bearer.auth.token": _secret,
    "bearer.auth.logical.cluster": _secret,
    "bearer.auth.identity.pool.id": _secret,
    "ssl.ca.location": _text,
    "ssl.certificate.location": _text,
    "ssl.key.location": _text,
    "ssl.key.password": _password,
    "proxy": _secret,
    "proxy.host": _text,
    "proxy.port": _at_least_one,
    "timeout": _seconds,
    "http.connect.timeout.ms": _milliseconds,
    "http.read.timeout.ms": _milliseconds,
    "max.retries": _at_least_zero,
    "retries.wait.ms": _wait,
    "retries.max.wait.ms": _wait,
    "retries.deadline.ms": _milliseconds,
    "max.schemas.per.subject": _at_least_one,
    "latest.cache.ttl.sec": _lifetime,
    "auto.register.schemas": _flag,
    "use.latest.version": _flag,
    "use.schema.id": _schema_id,
    "latest.compatibility.strict": _flag,
    "id.compatibility.strict": _flag,
    "normalize.schemas": _flag,
    "key.subject.name.strategy": strategy_of,
    "value.subject.name.strategy": strategy_of,
    BOTH_STRATEGIES: strategy_of,
}

_ALIASES: Final = {
    "url": URL,
    "cache.capacity": "max.schemas.per.subject",
    "cache.latest.ttl.sec": "latest.cache.ttl.sec",
    "subject.name.strategy.type": BOTH_STRATEGIES,
}

_AMBIGUOUS: Final = {"url", "timeout", "proxy"}

_PEM_ONLY: Final = (
    "Java's stores are not read. Give PEM files in ssl.ca.location, ssl.certificate.location and "
    "ssl.key.location."
)
TOKEN_ONLY: Final = "Tokens are not fetched here. Give one in bearer.auth.token."  # noqa: S105
_PREFIX_ONLY: Final = (
    "Records are written with the schema's id before the body, and read in either form."
)

_REFUSED: Final = {
    "use.latest.with.metadata": "Use use.latest.version or use.schema.id.",
    "ssl.truststore.location": _PEM_ONLY,
    "ssl.truststore.type": _PEM_ONLY,
    "ssl.truststore.password": _PEM_ONLY,
    "ssl.keystore.location": _PEM_ONLY,
    "ssl.keystore.type": _PEM_ONLY,
    "ssl.keystore.password": _PEM_ONLY,
    "bearer.auth.issuer.endpoint.url": TOKEN_ONLY,
    "bearer.auth.client.id": TOKEN_ONLY,
    "bearer.auth.client.secret": TOKEN_ONLY,
    "bearer.auth.scope": TOKEN_ONLY,
    "key.schema.id.serializer": _PREFIX_ONLY,
    "value.schema.id.serializer": _PREFIX_ONLY,
    "schema.id.serializer": _PREFIX_ONLY,
}


def _plain(name: str) -> str:
    """The name without Java's prefix, aliases resolved."""
    lower = name.strip().lower()
    if lower != URL:
        lower = lower.removeprefix("schema.registry.")
    return _ALIASES.get(lower, lower)


def read_options(given: Mapping[str, str]) -> dict[str, Any]:
    """The values by plain name. Texts that may be secrets do not get into messages."""
    read: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        plain = _plain(name)
        if plain in _REFUSED:
            raise InvalidSetting(f"{name} is not taken. {_REFUSED[plain]}")
        reader = _secret if plain.startswith(HEADER_PREFIX) else _READERS.get(plain)
        if reader is None:
            raise InvalidSetting(f"Unknown registry option '{name}'. {_nearest(name)}")
        try:
            found = reader(str(value) if reader is _password else str(value).strip())
        except ValueError as error:
            raise InvalidSetting(f"{name} {error}.") from None
        except InvalidSetting as error:
            raise InvalidSetting(f"{name}: {error}") from None
        if plain in read and read[plain] != found:
            raise InvalidSetting(
                f"{spelled[plain]} and {name} mean the same and differ. Leave one out."
            )
        read[plain], spelled[plain] = found, name
    return read


def _nearest(name: str) -> str:
    known = [*_READERS, *_ALIASES]
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)
    return f"The nearest known one is '{near[0]}'."
