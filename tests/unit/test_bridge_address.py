"""Where services listen, and what a host refuses to start with."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.rules import BodyLimits, TopicRules
from duolog.bridge.serve.options import HostOptions, TlsFiles
from duolog.errors import InvalidSetting, PortTaken
from duolog.server.address import Address
from duolog.server.listener import listen, taken
from duolog.server.run import check_installed
from duolog.settings import load_settings
from tests.support.registry_server import make_certificate

LOOPBACK = Address("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("text", "host", "port", "is_loopback", "url"),
    [
        ("127.0.0.1:7070", "127.0.0.1", 7070, True, "http://127.0.0.1:7070"),
        ("127.9.9.9:1", "127.9.9.9", 1, True, "http://127.9.9.9:1"),
        ("localhost:0", "localhost", 0, True, "http://localhost:0"),
        ("LocalHost:0", "LocalHost", 0, True, "http://LocalHost:0"),
        ("localhost.:0", "localhost.", 0, True, "http://localhost.:0"),
        ("localhost..:0", "localhost..", 0, False, "http://localhost..:0"),
        ("localhost.evil:0", "localhost.evil", 0, False, "http://localhost.evil:0"),
        ("[::1]:80", "::1", 80, True, "http://[::1]:80"),
        ("0.0.0.0:80", "0.0.0.0", 80, False, "http://0.0.0.0:80"),
        ("[::]:80", "::", 80, False, "http://[::]:80"),
        ("10.0.0.1:65535", "10.0.0.1", 65535, False, "http://10.0.0.1:65535"),
        ("log-host:80", "log-host", 80, False, "http://log-host:80"),
    ],
)
def test_addresses(text: str, host: str, port: int, is_loopback: bool, url: str) -> None:
    address = Address.of(text)
    assert address == Address(host, port)
    assert address.is_loopback is is_loopback
    assert address.url() == url
    assert address.url(tls=True) == url.replace("http:", "https:")


@pytest.mark.parametrize(
    "text", ["", "7070", ":7070", "127.0.0.1", "127.0.0.1:", "::1:80", "a:65536", "a:-1", "a:٣"]
)
def test_what_is_no_address_says_what_is(text: str) -> None:
    with pytest.raises(InvalidSetting, match="Write HOST:PORT"):
        Address.of(text)


def test_a_socket_is_set_so_that_small_answers_and_dead_clients_do_not_wait() -> None:
    with listen(LOOPBACK) as listener:
        address = taken(listener)
        with socket.create_connection((address.host, address.port)):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert address.port > 0


def test_a_name_becomes_the_numbers_that_were_taken() -> None:
    with listen(Address("localhost", 0)) as listener:
        assert taken(listener).host == "127.0.0.1"


def test_a_port_that_is_taken_and_a_host_that_is_not_here_are_named() -> None:
    with listen(LOOPBACK) as listener:
        address = taken(listener)
        with pytest.raises(PortTaken, match=rf"127.0.0.1 port {address.port}: .*port 0"):
            listen(address)
    with pytest.raises(InvalidSetting, match=r"Cannot listen on 'no.such.host.invalid'"):
        listen(Address("no.such.host.invalid", 0))
    with pytest.raises(PortTaken, match=r"192\.0\.2\.1"):
        listen(Address("192.0.2.1", 0))


@pytest.mark.parametrize("text", ["0.0.0.0:0", "[::]:0", "10.0.0.1:1", "log-host:80"])
def test_beyond_this_machine_a_host_wants_tokens_and_says_how_to_make_one(text: str) -> None:
    options = HostOptions(Address.of(text))
    with pytest.raises(InvalidSetting, match="duolog token create --role service"):
        options.check()
    HostOptions(Address.of(text), tokens=Path("tokens")).check()


@pytest.mark.parametrize(
    ("listened", "advertised", "tls", "url"),
    [
        ("127.0.0.1:0", None, False, "http://127.0.0.1:9"),
        ("localhost:0", None, False, "http://127.0.0.1:9"),
        ("localhost:0", None, True, "https://127.0.0.1:9"),
        ("log-host:0", None, True, "https://log-host:9"),
        ("log-host:0", None, False, "http://10.0.0.1:9"),
        ("0.0.0.0:0", None, False, "http://127.0.0.1:9"),
        ("[::]:0", None, False, "http://[::1]:9"),
        ("10.0.0.1:0", None, True, "https://10.0.0.1:9"),
        ("0.0.0.0:0", "http://log-host:7070", False, "http://log-host:7070"),
    ],
)
def test_the_url_is_one_that_can_be_asked(
    listened: str, advertised: str | None, tls: bool, url: str
) -> None:
    address = Address.of(listened)
    files = TlsFiles(Path("cert.pem")) if tls else None
    options = HostOptions(address, advertised, tls=files)
    numbers = {"localhost": "127.0.0.1", "log-host": "10.0.0.1"}
    assert options.url(Address(numbers.get(address.host, address.host), 9)) == url


def test_tls_files_are_tried_before_anything_is_opened(tmp_path: Path) -> None:
    good = make_certificate(tmp_path, "good")
    other = make_certificate(tmp_path, "other")
    locked = make_certificate(tmp_path, "locked", password="secret words")
    TlsFiles(good.certificate, good.key, other.certificate).check()
    (tmp_path / "not.pem").write_text("no PEM")
    wrong = [
        (TlsFiles(tmp_path / "none.pem", good.key), "No such file"),
        (TlsFiles(good.certificate, tmp_path / "none.pem"), "No such file"),
        (TlsFiles(tmp_path / "not.pem", good.key), "cannot be used"),
        (TlsFiles(good.certificate, other.key), "key values mismatch"),
        (TlsFiles(locked.certificate, locked.key), "must have no password"),
        (TlsFiles(good.certificate, good.key, tmp_path / "not.pem"), "authorities"),
        (TlsFiles(good.certificate, good.key, tmp_path / "none.pem"), "authorities"),
    ]
    for files, said in wrong:
        with pytest.raises(InvalidSetting, match=said) as caught:
            files.check()
        assert "secret words" not in str(caught.value)


@pytest.mark.parametrize(
    "advertised", ["log-host:7070", "http://", "ftp://a", "", "http://a:99999", "http://[::1"]
)
def test_what_is_advertised_is_a_url(advertised: str) -> None:
    with pytest.raises(InvalidSetting, match="advertise is a url"):
        HostOptions(LOOPBACK, advertised)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_intervals_that_no_host_runs_with_are_refused(seconds: float) -> None:
    with pytest.raises(InvalidSetting, match="retention_every_seconds"):
        HostOptions(LOOPBACK, retention_every_seconds=seconds)


def test_how_long_a_poll_waits() -> None:
    rules = TopicRules()
    assert rules.wait_seconds(None) == 30
    assert rules.wait_seconds(0) == 0
    assert rules.wait_seconds(1.5) == 1.5
    assert rules.wait_seconds(1e9) == 300
    assert TopicRules(default_consume_timeout=500).wait_seconds(None) == 300
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidSetting, match="max_consume_timeout"):
            TopicRules(max_consume_timeout=seconds)
    with pytest.raises(InvalidSetting, match="max_body_bytes"):
        BodyLimits(0)


def test_a_library_that_is_missing_is_named_with_what_to_install() -> None:
    check_installed(("json",), "The host", "bridge")
    with pytest.raises(InvalidSetting, match=r"needs no_such_one: pip install 'duolog\[bridge\]'"):
        check_installed(("json", "no_such_one"), "The host", "bridge")


def settings_in(folder: Path, text: str, flags: dict[str, Any] | None = None) -> HostOptions:
    file = folder / "host.toml"
    file.write_text(text)
    return load_settings({"serve": flags or {}}, file=file).host_options()


def test_settings_come_from_the_named_file_and_flags_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUOLOG_SERVE", raising=False)
    (tmp_path / "duolog.toml").write_text("[serve]\nlisten = 'not read'\n")
    text = (
        "[serve]\nlisten = '127.0.0.1:1'\ntokens = 'tokens'\nmax_body_bytes = '1 MiB'\n"
        "[topics]\nmax_consume_timeout = 5\nallow_user_role_consume = true\n"
    )
    options = settings_in(tmp_path, text)
    assert options.listen == Address("127.0.0.1", 1)
    assert options.tokens == Path("tokens")
    assert options.body_limits.max_body_bytes == 1 << 20
    assert options.topic_rules == TopicRules(30, 5, True)
    flagged = settings_in(tmp_path, text, {"listen": "127.0.0.1:2", "tokens": None})
    assert (flagged.listen.port, flagged.tokens) == (2, Path("tokens"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[serve]\nlisen = 'a:1'\n",
            r"\[serve\] in .*host.toml has an unknown key 'lisen'.*'liste",
        ),
        ("[topics]\nmax_timeout = 1\n", r"\[topics\].*'max_consume_timeout'"),
        ("[serve]\nlisten = 7\n", r"'serve.listen' in .*host.toml cannot be 7"),
        ("[topics]\nmax_consume_timeout = 'x'\n", "'topics.max_consume_timeout' in"),
        ("serve = 1\n", "'serve' in .*host.toml cannot be 1"),
        ("[serve]\nlisten = 'a'\n", "Write HOST:PORT"),
        ("[serve]\ntls_key = 'a'\n", "TLS takes a certificate"),
    ],
)
def test_a_wrong_setting_of_the_host_is_named_with_where_it_stands(
    tmp_path: Path, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUOLOG_SERVE", raising=False)
    with pytest.raises(InvalidSetting, match=said):
        settings_in(tmp_path, text)


def test_a_wrong_variable_and_a_wrong_flag_are_named_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_SERVE", '{"max_body_bytes": "much"}')
    with pytest.raises(InvalidSetting, match=r"'serve.max_body_bytes' in DUOLOG_SERVE cannot be"):
        load_settings()
    monkeypatch.delenv("DUOLOG_SERVE")
    with pytest.raises(InvalidSetting, match="--max-body-bytes cannot be 'most'"):
        load_settings({"serve": {"max_body_bytes": "most"}})
    with pytest.raises(InvalidSetting, match=r"There is no settings file none\.toml"):
        load_settings(file=Path("none.toml"))


@pytest.mark.parametrize("proxy", ["*", "my-proxy", "10.0.0.1:80", "10.0.0.300"])
def test_proxies_are_addresses(proxy: str) -> None:
    with pytest.raises(InvalidSetting, match="trust_proxy"):
        HostOptions(LOOPBACK, trusted_proxies=(proxy,))
