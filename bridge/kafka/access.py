"""Why Kafka cannot be entered, in words that name the setting to look at.

Both client libraries report it in their own ways; here they become the same few errors. Neither
passwords nor tokens are in what they say.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from duolog.errors import (
    KafkaLoginRefused,
    KafkaTokenUnavailable,
    KafkaUnreachable,
    KafkaUntrusted,
)

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

C = TypeVar("C")

NoEntry = KafkaLoginRefused | KafkaTokenUnavailable | KafkaUntrusted

_AGAIN: Final = "It is tried again until it works."
_SPEAKS_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
_CERTIFICATE_WANTED: Final = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")
_NAME_DIFFERS: Final = frozenset({62, 64})  # OpenSSL's: host name, address
_HAS_ENDED: Final = 10
_FIRST_LOOK_SECONDS: Final = 0.5
_ANY_TOPIC: Final = "__consumer_offsets"  # to ask for all of them would be much


def login_refused(where: str, said: str) -> KafkaLoginRefused:
    return KafkaLoginRefused(
        f"The Kafka broker at {where} does not let us in: {said.rstrip('.')}. Look at "
        "security.protocol, sasl.mechanism, sasl.username and sasl.password (or "
        f"sasl.oauthbearer.*), and at the user in Kafka. {_AGAIN}"
    )


def untrusted(where: str, error: BaseException) -> KafkaUntrusted | None:
    """What TLS stumbled over; None if it was something else."""
    for each in _chain(error):
        if isinstance(each, ssl.SSLError):
            return KafkaUntrusted(
                f"No TLS with the Kafka broker at {where}: {_tls_trouble(each)} {_AGAIN}"
            )
    return None


def _tls_trouble(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        said = error.verify_message
        if error.verify_code in _NAME_DIFFERS:
            return (
                f"its certificate is for another name ({said}). Give the address that the "
                "certificate names; or, if it is the right broker all the same, set "
                "ssl.endpoint.identification.algorithm=none."
            )
        if error.verify_code == _HAS_ENDED:
            return "its certificate has expired. Renew it there, and look at the clocks."
        return (
            f"its certificate is not trusted ({said}). Look at ssl.ca.location: it names the "
            "certificates of those who have signed it."
        )
    reason = error.reason or str(error)
    if reason in _SPEAKS_NO_TLS:
        return "it speaks no TLS on this port. Look at --bootstrap-servers and security.protocol."
    if any(word in reason for word in _CERTIFICATE_WANTED):
        return (
            f"it wants another certificate of us, or one at all ({reason}). Look at "
            "ssl.certificate.location and ssl.key.location."
        )
    return f"{reason}. Look at security.protocol and ssl.*."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class Overheard:
    """What a client of librdkafka says beside its answers, which only say that none came."""

    def __init__(self) -> None:
        self._said: list[KafkaError] = []

    @property
    def options(self) -> dict[str, Any]:
        """For the client. It is silent on stderr then: what it says is in our errors."""
        return {"error_cb": self._note, "log_level": 0}

    def _note(self, error: KafkaError) -> None:
        if said_of(error) is not None:
            self._said = [error]

    def why(self, client: Any) -> NoEntry | None:
        """Why the client gets no connection, if it is that it is not let in."""
        client.poll(0)  # it says so only when it is asked for what came in
        if not self._said:
            return None
        return said_of(self._said.pop())


def said_of(error: KafkaError) -> NoEntry | None:
    """What an error of librdkafka's says about the way in; None when it is about something else."""
    from confluent_kafka import KafkaError as Known

    code, said = error.code(), error.str()
    where, _, words = said.partition("/")[2].lstrip("/").partition(": ")
    where = where.partition("/")[0]
    if code == Known._AUTHENTICATION:  # noqa: SLF001 its public name
        if "acquire SASL OAUTHBEARER token" in said:
            return KafkaTokenUnavailable(
                f"There is no token to log in to Kafka with. Look at sasl.oauthbearer.*. {_AGAIN}"
            )
        return login_refused(where or "the bootstrap servers", _without_time(words or said))
    is_alert = "alert" in said and "certificate" in said
    if code == Known._SSL or is_alert:  # noqa: SLF001 the same
        return KafkaUntrusted(
            f"No TLS with the Kafka broker at {where or 'the bootstrap servers'}: "
            f"{_without_time(words or said)}. Look at ssl.ca.location, at ssl.certificate.location "
            "if it wants a certificate of us, at whether the certificate names this address "
            f"(ssl.endpoint.identification.algorithm), and at security.protocol. {_AGAIN}"
        )
    return None


def _without_time(said: str) -> str:
    """Without the time that it took, which is another one each time."""
    return said.partition(" (after ")[0]


def client_of(kind: Callable[[dict[str, Any]], C], options: Mapping[str, Any]) -> C:
    """A client of librdkafka. Without a token it says at once why there is none."""
    tokens = options.get("oauth_cb")
    if tokens is not None:
        tokens.check()
    return kind(dict(options))


def reached(client: Any, overheard: Overheard, timeout_seconds: float) -> None:
    """Wait until a new consumer has a connection. Raises at once when it is not let in."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + timeout_seconds
    patience = _FIRST_LOOK_SECONDS
    while True:
        try:
            client.list_topics(_ANY_TOPIC, timeout=patience)
        except KafkaException as failure:
            no_entry = overheard.why(client)
            if no_entry is not None:
                raise no_entry from failure
            if time.monotonic() >= deadline:
                raise KafkaUnreachable(
                    f"Kafka did not answer within {timeout_seconds:g} s "
                    f"({failure.args[0].str()}). Look at --bootstrap-servers and security.protocol."
                ) from failure
            patience *= 2  # a slow one is to have its time
        else:
            return
