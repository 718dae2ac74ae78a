"""What a secured local broker is told, and the certificates that it shows."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from pydantic import SecretStr

from duolog.bridge.kafka.local import Door, Security
from duolog.bridge.kafka.local.certificates import Authority
from duolog.errors import InvalidSetting

USERS = {"ann": SecretStr("ann-alone-knows")}


def test_a_door_asks_for_what_its_protocol_says(tmp_path: Path) -> None:
    doors = (Door("SSL", name="MTLS", wants_certificate=True), Door("SASL_PLAINTEXT"))
    told = Security(doors, users=USERS).properties({"MTLS": tmp_path / "s"}, tmp_path / "ca")
    assert told["listener.name.mtls.ssl.client.auth"] == "required"
    assert told["listener.name.mtls.ssl.keystore.location"] == str(tmp_path / "s")
    kinds = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
    assert told["listener.name.sasl_plaintext.sasl.enabled.mechanisms"] == kinds
    assert not [name for name in told if name.startswith("listener.name.mtls.sasl")]
    assert not [name for name in told if name.startswith("listener.name.sasl_plaintext.ssl")]
    assert "authorizer.class.name" not in told


def test_tokens_are_taken_with_a_signature_alone(tmp_path: Path) -> None:
    told = Security((Door("SASL_SSL"),), jwks=tmp_path / "jwks").properties(
        {"SASL_SSL": tmp_path / "s"}, tmp_path / "ca"
    )
    validator = told["listener.name.sasl_ssl.sasl.oauthbearer.jwt.validator.class"]
    assert validator.endswith(".BrokerJwtValidator")
    assert told["listener.name.sasl_ssl.sasl.enabled.mechanisms"] == "OAUTHBEARER"


def test_with_rules_only_the_plain_listener_may_do_all() -> None:
    told = Security((), guarded=True).properties({}, None)
    assert told["super.users"] == "User:ANONYMOUS"
    assert "allow.everyone.if.no.acl.found" not in told


@pytest.mark.parametrize(
    ("user", "password"),
    [("ann", 'x"y'), ("ann", "a b"), ("ann", "ümlaut"), ("a,b", "x"), ("a=b", "x"), ("a", "x\n")],
)
def test_what_kafkas_files_could_not_hold_is_refused(user: str, password: str) -> None:
    with pytest.raises(InvalidSetting, match="ASCII") as refused:
        Security((Door("SASL_SSL"),), users={user: SecretStr(password)})
    assert password not in str(refused.value)


def test_doors_through_which_nobody_could_come_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="users or jwks"):
        Security((Door("SASL_PLAINTEXT"),))
    with pytest.raises(InvalidSetting, match="got 'TLS'"):
        Door("TLS")


def test_passwords_are_not_shown() -> None:
    assert "ann-alone-knows" not in repr(Security((Door("SASL_SSL"),), users=USERS))


def test_certificates_are_signed_by_the_authority_and_kept(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    server = authority.server("SSL", ["localhost", "127.0.0.1"])
    certificate, key = authority.client("bob")
    files = {file: file.read_bytes() for file in (authority.certificate_file, server, key)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server)
    context.load_cert_chain(certificate, key)
    issuer = x509.load_pem_x509_certificate(authority.certificate_file.read_bytes())
    for file in (server, certificate):
        found = x509.load_pem_x509_certificates(file.read_bytes())[0]
        found.verify_directly_issued_by(issuer)
    assert all(file.stat().st_mode & 0o77 == 0 for file in (tmp_path / "certificates").iterdir())
    again = Authority(tmp_path / "certificates")
    assert again.server("SSL", ["localhost"]) == server
    assert {file: file.read_bytes() for file in files} == files
