"""A real Kafka that lets in only whom it knows: one broker with a door of each kind.

`secured` is one for the whole run. Whoever comes through a door may do what its rules allow; `ann`,
`bob` (by certificate) and everybody without a name may do all. Tests have users of their own to
take rights or passwords from.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from pydantic import SecretStr

from duolog.bridge.kafka.local import Door, LocalKafka, Security
from tests.support import token_hook
from tests.support.kafka import DEADLINE_SECONDS, START_SECONDS, Kafka
from tests.support.tokens import TokenIssuer

PASSWORD = "ann-keeps-this-to-herself"
CLIENT_SECRET = "what-the-program-shows-the-issuer"
_SHORTLY = {"oauthbearer.connections.max.reauth.ms": "3600000"}  # a token's end is a login's end

DOORS = (
    Door("SSL"),
    Door("SSL", name="MTLS", wants_certificate=True),
    Door("SSL", name="ELSEWHERE", host_names=("elsewhere.example",)),
    Door("SASL_PLAINTEXT"),
    Door("SASL_SSL", properties=_SHORTLY),
)


@dataclass(frozen=True)
class Way:
    """Where to come in, and with what."""

    bootstrap_servers: str
    settings: dict[str, str]

    def but(self, **changed: str | None) -> Way:
        """The same with other settings: `sasl_password="x"`; None leaves one out."""
        settings = dict(self.settings)
        for name, value in changed.items():
            dotted = name.replace("_", ".")
            settings.pop(dotted, None)
            if value is not None:
                settings[dotted] = value
        return Way(self.bootstrap_servers, settings)


class SecuredKafka:
    """The broker, its doors, and the rules behind them."""

    def __init__(self, broker: LocalKafka, issuer: TokenIssuer) -> None:
        self.broker = broker
        self.issuer = issuer
        self.plain = Kafka(broker.bootstrap_servers, "secured")
        self.admin: AdminClient = self.plain.admin()
        for principal in ("ann", "CN=bob"):
            self.allow_all(principal)

    def way(self, kind: str) -> Way:
        """By its name, as the ways in tests are called."""
        door, _, mechanism = kind.partition("/")
        ca = {"ssl.ca.location": str(self.broker.authority.certificate_file)}
        login = {"sasl.username": "ann", "sasl.password": PASSWORD}
        if mechanism == "OAUTHBEARER":
            login = {"sasl.oauthbearer.token.provider": token_hook.NAMED}
        settings = {"security.protocol": "SSL" if door in {"MTLS", "ELSEWHERE"} else door}
        if mechanism:
            settings |= {"sasl.mechanism": mechanism, **login}
        if door != "SASL_PLAINTEXT":
            settings |= ca
        if door == "MTLS":
            certificate, key = self.broker.authority.client("bob")
            settings |= {
                "ssl.certificate.location": str(certificate),
                "ssl.key.location": str(key),
            }
        return Way(self.broker.address_of(door), settings)

    def new_user(self, password: str = PASSWORD) -> str:
        """Somebody new, who may do nothing yet."""
        user = f"user-{uuid.uuid4().hex[:12]}"
        self.set_password(user, password)
        return user

    def set_password(self, user: str, password: str) -> None:
        """By SCRAM-SHA-512, from the next login on."""
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        asked: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, how, password.encode())
        ]
        for done in self.admin.alter_user_scram_credentials(asked).values():
            done.result(DEADLINE_SECONDS)

    def allow_all(self, user: str) -> None:
        for kind in (ResourceType.TOPIC, ResourceType.GROUP):
            self.allow(user, kind, "*", AclOperation.ALL)
        self.allow(user, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL)

    def allow(self, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        rule = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for done in self.admin.create_acls([rule]).values():
            done.result(DEADLINE_SECONDS)

    def forbid(self, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Take a rule away; there is to be one."""
        rule = AclBindingFilter(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        (done,) = self.admin.delete_acls([rule]).values()
        assert done.result(DEADLINE_SECONDS)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One for all tests of this run."""
    folder: Path = tmp_path_factory.mktemp("secured")
    issuer = TokenIssuer(folder)
    users = {"ann": SecretStr(PASSWORD)}
    security = Security(DOORS, users=users, jwks=issuer.jwks, guarded=True)
    with LocalKafka(
        folder / "kafka",
        security=security,
        start_seconds=START_SECONDS,
        java_options=["-XX:TieredStopAtLevel=1"],
    ) as broker:
        yield SecuredKafka(broker, issuer)


class TokenEndpoint:
    """An OIDC server as far as programs use it: who shows the right secret gets a token."""

    def __init__(self, issuer: TokenIssuer, user: str) -> None:
        self.asked: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append(
                    {"form": parse_qs(body), "login": self.headers["Authorization"]}
                )
                endpoint.answer(self, issuer, user)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, name="tests-token-endpoint")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def answer(self, to: BaseHTTPRequestHandler, issuer: TokenIssuer, user: str) -> None:
        wanted = base64.b64encode(f"duolog:{CLIENT_SECRET}".encode()).decode()
        if self.asked[-1]["login"] == f"Basic {wanted}":
            status, told = 200, {"access_token": issuer.token(user)[0], "expires_in": 3600}
        else:
            status, told = 401, {"error": "invalid_client", "error_description": "who are you?"}
        body = json.dumps(told).encode()
        to.send_response(status)
        to.send_header("Content-Type", "application/json")
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def oidc(endpoint: TokenEndpoint, secret: str = CLIENT_SECRET) -> dict[str, str]:
    """Settings that take tokens from there."""
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "duolog",
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.oauthbearer.scope": "kafka",
    }
