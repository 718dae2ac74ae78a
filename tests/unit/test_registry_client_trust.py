"""Whom the client of a schema registry tells what: redirects, credentials, TLS, proxies."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from duolog.errors import InvalidSetting, RegistryRefused, RegistryUnreachable
from tests.support.registry_server import Certificate, make_certificate, serving
from tests.unit.registry_door import REGISTERED, SCHEMA, VERSION, Door, Scripted, client_of


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    made = Door()
    with serving(made) as made.url:
        yield made


def test_a_redirect_that_stays_is_followed(door: Door) -> None:
    script = Scripted([(307, b""), (200, VERSION)], extra=[(b"location", b"moved")])
    with client_of(door.behind(script), basic_auth_user_info="a:b") as client:
        assert client.lookup("s", SCHEMA) == REGISTERED
    assert [seen.path for seen in script.seen] == ["/subjects/s", "/subjects/moved"]
    assert script.seen[1].body == script.seen[0].body
    assert script.seen[1].headers["authorization"] == script.seen[0].headers["authorization"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_nobody_else_gets_the_credentials_by_a_redirect(status: int) -> None:
    other = Scripted([(200, VERSION)])
    with serving(other) as other_url:
        script = Scripted([(status, b"")], extra=[(b"location", f"{other_url}/x".encode())])
        with (
            serving(script) as url,
            client_of(url, bearer_auth_token="s3cret") as client,
            pytest.raises(RegistryRefused, match="which is not followed") as refusal,
        ):
            client.latest("s")
    assert refusal.value.status == status
    assert other.seen == []


def test_redirects_in_circles_end(door: Door) -> None:
    script = Scripted([(302, b"")], extra=[(b"location", b"latest")])
    with (
        client_of(door.behind(script), max_retries="0") as client,
        pytest.raises(RegistryUnreachable, match="in circles"),
    ):
        client.latest("s")
    assert len(script.seen) == 4


# Credentials and TLS


def basic(user_info: str) -> str:
    return "Basic " + base64.b64encode(user_info.encode()).decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"basic.auth.user.info": "ann:pä:ss"}, {"authorization": basic("ann:pä:ss")}),
        ({"bearer.auth.token": "abc"}, {"authorization": "Bearer abc"}),
        ({"request.header.Authorization": "Custom x"}, {"authorization": "Custom x"}),
        (
            {"bearer.auth.token": "abc", "bearer.auth.logical.cluster": "lsrc-1"},
            {"authorization": "Bearer abc", "target-sr-cluster": "lsrc-1"},
        ),
    ],
    ids=str,
)
def test_credentials_are_sent(door: Door, given: dict[str, str], expected: dict[str, str]) -> None:
    script = Scripted([(200, VERSION)])
    with client_of(door.behind(script), **given) as client:
        client.latest("s")
    assert script.seen[0].headers.items() >= expected.items()


def test_credentials_in_the_address_are_sent_and_never_shown(door: Door) -> None:
    script = Scripted([(401, {"error_code": 401, "message": "Unauthorized"})])
    with client_of(door.behind(script).replace("//", "//ann:s3cret@")) as client:
        with pytest.raises(RegistryRefused) as refusal:
            client.latest("s")
        assert script.seen[0].headers["authorization"] == basic("ann:s3cret")
        assert "s3cret" not in f"{refusal.value!r} {client!r} {vars(client)}"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Certificate]:
    folder = tmp_path_factory.mktemp("certificates")
    made = {name: make_certificate(folder, name) for name in ("registry", "stranger")}
    return made | {"client": make_certificate(folder, "client", password="hush")}


def test_a_registry_behind_tls_is_trusted_by_its_authority(
    certificates: dict[str, Certificate],
) -> None:
    ours = certificates["registry"]
    script = Scripted([(200, VERSION)])
    with (
        serving(script, tls=ours) as url,
        client_of(url, ssl_ca_location=str(ours.certificate)) as client,
    ):
        assert client.latest("s") == REGISTERED


def test_a_stranger_is_told_nothing(certificates: dict[str, Certificate]) -> None:
    script = Scripted([(200, VERSION)])
    ca_path = str(certificates["stranger"].certificate)
    with (
        serving(script, tls=certificates["registry"]) as url,
        client_of(url, ssl_ca_location=ca_path, bearer_auth_token="t") as client,
        pytest.raises(RegistryUnreachable, match=r"not trusted .*set ssl\.ca\.location"),
    ):
        client.latest("s")
    assert script.seen == []


def test_a_client_certificate_opens_the_door_and_its_lack_does_not(
    certificates: dict[str, Certificate],
) -> None:
    ours, client_certificate = certificates["registry"], certificates["client"]
    script = Scripted([(200, VERSION)])
    with serving(script, tls=ours, clients=client_certificate) as url:
        given = {"ssl.ca.location": str(ours.certificate), "max.retries": "0"}
        with client_of(url, **given) as client, pytest.raises(RegistryUnreachable):
            client.latest("s")
        given |= {
            "ssl.certificate.location": str(client_certificate.certificate),
            "ssl.key.location": str(client_certificate.key),
            "ssl.key.password": "hush",
        }
        with client_of(url, **given) as client:
            assert client.latest("s") == REGISTERED


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ssl.key.password": "wrong"}, "ssl.key.password"),
        ({"ssl.key.password": None}, "ssl.key.password"),  # and nobody is asked on the terminal
        ({"ssl.key.location": "/none.key"}, "No such file"),
        ({"ssl.ca.location": "/none.pem"}, "ssl.ca.location '/none.pem'"),
        ({"ssl.ca.location": __file__}, "ssl.ca.location"),
    ],
    ids=str,
)
def test_files_that_do_not_serve_are_named(
    certificates: dict[str, Certificate], changed: dict[str, str | None], told: str
) -> None:
    client = certificates["client"]
    given: dict[str, str | None] = {
        "ssl.certificate.location": str(client.certificate),
        "ssl.key.location": str(client.key),
        "ssl.key.password": "hush",
    }
    chosen = {name: value for name, value in (given | changed).items() if value is not None}
    with pytest.raises(InvalidSetting, match=told):
        client_of("https://registry.test", **chosen)


def test_a_proxy_is_used_and_its_password_never_shown() -> None:
    script = Scripted([(200, VERSION)])
    with serving(script) as url:
        proxy = url.replace("//", "//me:s3cret@")
        with client_of("http://registry.invalid:8081", proxy=proxy) as client:
            assert client.latest("s") == REGISTERED
    assert script.seen[0].headers["proxy-authorization"] == basic("me:s3cret")
    assert script.seen[0].headers["host"] == "registry.invalid:8081"
