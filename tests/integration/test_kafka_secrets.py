"""Passwords, tokens and keys for Kafka are nowhere to be read while a host mirrors, or cannot.

A real `duolog serve` and `duolog audit` against a real broker: what they print, log, answer, write
and show in lists of processes is searched for every secret they were given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import pytest

from duolog import open_log
from duolog.log.model import Record
from tests.integration.test_serve_secrets import Told, look_at_files, look_at_processes
from tests.support import token_hook
from tests.support.groups import until
from tests.support.kafka import DEADLINE_SECONDS
from tests.support.secured import PASSWORD, SecuredKafka, TokenEndpoint, Way, oidc

DUOLOG = [sys.executable, "-P", "-m", "duolog.cli"]
ROOT = Path(__file__).parents[2]
WRONG = "hunter2-of-the-brokers"


@contextmanager
def serving(
    folder: Path, way: Way, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    told = {"bootstrap.servers": way.bootstrap_servers, **way.settings}
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in told.items()]
    (folder / "duolog.toml").write_text("\n".join(["[kafka]", *lines, ""]))
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            [
                *(*DUOLOG, "serve", "--log", "log", "--listen", "127.0.0.1:0"),
                *("--json", "--log-level", "debug"),
            ],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as host,
    ):
        try:
            yield host, str(json.loads(cast("IO[bytes]", host.stdout).readline())["url"])
        finally:
            host.terminate()
            host.wait(DEADLINE_SECONDS)


def look(url: str, told: Told) -> None:
    for path in ("/readyz", "/healthz", "/metrics", "/openapi.json"):
        try:
            with urllib.request.urlopen(f"{url}{path}", timeout=DEADLINE_SECONDS) as answer:
                told.add(path, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                told.add(path, error.read())


def audited(folder: Path, environment: dict[str, str], told: Told) -> int:
    run = subprocess.run(
        [*DUOLOG, "audit", "--log", "log"],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        timeout=2 * DEADLINE_SECONDS,
    )
    told.add("audit", run.stdout + run.stderr)
    return run.returncode


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("wrong password", "KafkaLoginRefused"),
        ("wrong client secret", "KafkaTokenUnavailable"),
        ("token", "mirror.begins"),
        ("key with a password", "mirror.begins"),
    ],
)
def test_secrets_for_kafka_are_nowhere_to_be_read(
    secured: SecuredKafka, tmp_path: Path, kind: str, sign: str
) -> None:
    environment = {name: text for name, text in os.environ.items() if name[:7] != "DUOLOG_"}
    environment["PYTHONPATH"] = str(ROOT)
    topic = f"secrets-{tmp_path.name}".lower()
    with open_log(tmp_path / "log", create=True) as log:
        log.create_topic(topic)
        log.publish(topic, [Record(b"tea")])
    told = Told()
    with TokenEndpoint(secured.issuer, "ann") as endpoint:
        way, secrets = guarded(secured, kind, endpoint, tmp_path, environment)
        with serving(tmp_path, way, environment) as (host, url):
            until(lambda: sign in (tmp_path / "stderr").read_text(), f"log {sign}")
            if sign == "mirror.begins":
                until(lambda: audited(tmp_path, environment, told) == 0, "be equal")
            else:
                assert audited(tmp_path, environment, told) != 0
            look(url, told)
            look_at_processes(host.pid, told)
    (tmp_path / "token.json").unlink(missing_ok=True)
    look_at_files(tmp_path, told)
    # What may be seen is found, so the rest would be.
    assert told.places_of(sign) != []
    assert told.places_of("duolog.bridge.kafka.worker") != []
    for secret in secrets:
        assert told.places_of(secret) == []


def guarded(
    secured: SecuredKafka,
    kind: str,
    endpoint: TokenEndpoint,
    folder: Path,
    environment: dict[str, str],
) -> tuple[Way, list[str]]:
    """How to come in, and what nobody is to see."""
    if kind == "wrong password":
        return secured.way("SASL_SSL/SCRAM-SHA-512").but(sasl_password=WRONG), [WRONG, PASSWORD]
    if kind == "key with a password":
        return with_locked_key(secured.way("MTLS"), folder)
    way = secured.way("SASL_SSL/OAUTHBEARER")
    if kind == "token":
        token = secured.issuer.token("ann")
        file = folder / "token.json"
        file.write_text(json.dumps(token))
        environment[token_hook.FILE_VARIABLE] = str(file)
        return way, [token[0], token[0].rpartition(".")[2]]
    way = way.but(sasl_oauthbearer_token_provider=None)
    way.settings.update(oidc(endpoint, WRONG))
    return way, [WRONG]


def with_locked_key(way: Way, folder: Path) -> tuple[Way, list[str]]:
    """The same key as text, encrypted, with the password beside it."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(Path(way.settings["ssl.key.location"]).read_bytes(), None)
    locked = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(WRONG.encode())
    ).decode()
    certificate = Path(way.settings["ssl.certificate.location"]).read_text()
    way = way.but(ssl_key_location=None, ssl_certificate_location=None)
    way.settings.update(
        {"ssl.certificate.pem": certificate, "ssl.key.pem": locked, "ssl.key.password": WRONG}
    )
    return way, [WRONG, locked.splitlines()[1]]
