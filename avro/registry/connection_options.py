"""How a registry is reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from duolog.avro.registry.option_names import HEADER_PREFIX, TOKEN_ONLY, URL
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How a registry is reached."""

    urls: tuple[str, ...]  # without credentials and without a slash at the end
    user_info: SecretStr | None = None  # name:password
    token: SecretStr | None = None
    headers: tuple[tuple[str, SecretStr], ...] = ()
    proxy: SecretStr | None = None  # an address, which may hold a password
    ca_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    key_password: SecretStr | None = None
    connect_timeout_seconds: float = 30.0
    read_timeout_seconds: float = 30.0
    deadline_seconds: float = 60.0
    max_retries: int = 3
    retry_wait_seconds: float = 1.0
    retry_max_wait_seconds: float = 20.0
    cache_capacity: int = 1000
    latest_cache_seconds: float = 0.0  # infinity: for ever
    max_response_bytes: int = 16 << 20


_CONNECTION_FIELDS: Final = {
    "ssl.ca.location": "ca_path",
    "ssl.certificate.location": "certificate_path",
    "ssl.key.location": "key_path",
    "ssl.key.password": "key_password",
    "http.connect.timeout.ms": "connect_timeout_seconds",
    "http.read.timeout.ms": "read_timeout_seconds",
    "retries.deadline.ms": "deadline_seconds",
    "max.retries": "max_retries",
    "retries.wait.ms": "retry_wait_seconds",
    "retries.max.wait.ms": "retry_max_wait_seconds",
    "max.schemas.per.subject": "cache_capacity",
    "latest.cache.ttl.sec": "latest_cache_seconds",
}

_WITHOUT_FIELD: Final = ("basic.auth.", "bearer.auth.", "proxy", "timeout", HEADER_PREFIX)


def connection_options(read: Mapping[str, Any]) -> ConnectionOptions | None:
    """What the options say of the connection; None when there is no address."""
    if URL not in read:
        for name in read:
            if name in _CONNECTION_FIELDS or name.startswith(_WITHOUT_FIELD):
                raise InvalidSetting(f"{name} is given without schema.registry.url. Add it.")
        return None
    urls, carried = _addresses(read[URL])
    user_info, token, headers = _user_info(read, carried), _token(read), _headers(read)
    credentials = {
        "basic.auth.user.info": user_info is not None,
        "bearer.auth.token": token is not None,
        f"{HEADER_PREFIX}authorization": any(name == "authorization" for name, _ in headers),
    }
    if sum(credentials.values()) > 1:
        several = " and ".join(name for name, given in credentials.items() if given)
        raise InvalidSetting(f"{several} are given. A request carries one of them: keep one.")
    if "ssl.certificate.location" not in read and (
        "ssl.key.location" in read or "ssl.key.password" in read
    ):
        raise InvalidSetting(
            "ssl.key.location and ssl.key.password belong to a certificate: give "
            "ssl.certificate.location too."
        )
    options = {field: read[name] for name, field in _CONNECTION_FIELDS.items() if name in read}
    if "timeout" in read:
        for field in ("connect_timeout_seconds", "read_timeout_seconds"):
            options.setdefault(field, read["timeout"])
    return ConnectionOptions(urls, user_info, token, headers, _proxy(read), **options)


def _addresses(listed: str) -> tuple[tuple[str, ...], str | None]:
    """The addresses, and the name and password that they all carry."""
    urls: list[str] = []
    carried: set[str | None] = set()
    for place, text in enumerate(listed.split(","), 1):
        which = f"Address {place} of {URL}"
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidSetting(f"{which} is not readable.") from None
        if parts.scheme not in {"http", "https"} or not _is_host(host):
            raise InvalidSetting(f"{which} must be http://HOST:PORT or https://HOST:PORT.")
        if parts.query or parts.fragment:
            raise InvalidSetting(f"{which} has a query or a fragment, which it cannot have.")
        shown = f"[{host}]" if ":" in host else host
        end = "" if port is None else f":{port}"
        urls.append(f"{parts.scheme}://{shown}{end}{parts.path.rstrip('/')}")
        carried.add(parts.netloc.rpartition("@")[0] or None)
    if len(carried) > 1:
        raise InvalidSetting(
            f"The addresses of {URL} carry different credentials. Put one name and password into "
            "basic.auth.user.info."
        )
    return tuple(dict.fromkeys(urls)), carried.pop()


def _user_info(read: Mapping[str, Any], carried: str | None) -> SecretStr | None:
    source = read.get("basic.auth.credentials.source")
    given: SecretStr | None = read.get("basic.auth.user.info")
    if source not in {None, "URL", "USER_INFO"}:
        raise InvalidSetting(
            "basic.auth.credentials.source must be URL or USER_INFO: Kafka's own credentials are "
            "not looked at. Put the name and password into basic.auth.user.info."
        )
    if given is not None and carried is not None:
        raise InvalidSetting(
            f"Credentials are both in {URL} and in basic.auth.user.info. Leave one out."
        )
    if source == "URL" and given is not None:
        raise InvalidSetting(
            "basic.auth.user.info is given, but basic.auth.credentials.source is URL. Set it to "
            "USER_INFO, or leave it out."
        )
    if source == "USER_INFO" and given is None:
        raise InvalidSetting(
            "basic.auth.credentials.source is USER_INFO, but basic.auth.user.info is not given."
        )
    if given is None and carried is not None:
        from pydantic import SecretStr

        name, _, password = carried.partition(":")
        given = SecretStr(f"{unquote(name)}:{unquote(password)}")
    if given is not None and ":" not in given.get_secret_value():
        raise InvalidSetting("basic.auth.user.info must be a name and a password, a colon between.")
    return given


def _token(read: Mapping[str, Any]) -> SecretStr | None:
    if read.get("bearer.auth.credentials.source") not in {None, "STATIC_TOKEN"}:
        raise InvalidSetting(f"bearer.auth.credentials.source must be STATIC_TOKEN. {TOKEN_ONLY}")
    token: SecretStr | None = read.get("bearer.auth.token")
    if "bearer.auth.credentials.source" in read and token is None:
        raise InvalidSetting("bearer.auth.token is not given.")
    if token is not None and not re.fullmatch(r"[!-~]+", token.get_secret_value()):
        raise InvalidSetting("bearer.auth.token holds characters that no token has.")
    return token


def _headers(read: Mapping[str, Any]) -> tuple[tuple[str, SecretStr], ...]:
    named = {
        name.removeprefix(HEADER_PREFIX): value
        for name, value in read.items()
        if name.startswith(HEADER_PREFIX)
    }
    for name, header in (
        ("bearer.auth.logical.cluster", "target-sr-cluster"),
        ("bearer.auth.identity.pool.id", "confluent-identity-pool-id"),
    ):
        if name in read:
            named[header] = read[name]
    for name, value in named.items():
        text = value.get_secret_value()
        if not re.fullmatch(r"[a-z0-9!#$%&'*+.^_`|~-]+", name) or not text.isascii():
            raise InvalidSetting(f"{HEADER_PREFIX}{name} is no header that HTTP has.")
        if not text.isprintable():
            raise InvalidSetting(f"{HEADER_PREFIX}{name} holds characters that HTTP forbids.")
    return tuple(named.items())


def _proxy(read: Mapping[str, Any]) -> SecretStr | None:
    proxy: SecretStr | None = read.get("proxy")
    host, port = read.get("proxy.host"), read.get("proxy.port")
    if (host is None) != (port is None):
        raise InvalidSetting("proxy.host and proxy.port belong together.")
    if host is not None and proxy is not None:
        raise InvalidSetting("proxy and proxy.host are both given. Leave one out.")
    if host is not None:
        from pydantic import SecretStr

        proxy = SecretStr(f"http://{host}:{port}")
    if proxy is not None and not _is_address(proxy.get_secret_value()):
        raise InvalidSetting("proxy must be http://HOST:PORT or https://HOST:PORT.")
    return proxy


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and _is_host(parts.hostname or "") and has_port


def _is_host(host: str) -> bool:
    return re.fullmatch(r"[\w.-]+|[0-9a-f:.]+", host) is not None
