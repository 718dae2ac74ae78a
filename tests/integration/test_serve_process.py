"""`duolog serve` and `duolog token` as real processes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import psutil
import pytest

from duolog import open_log
from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token, hash_of
from duolog.errors import HostRefused
from duolog.log.model import Record
from duolog.reach import reach
from tests.integration.serve_host import until
from tests.support.registry_server import make_certificate

DUOLOG = [sys.executable, "-m", "duolog.cli"]
DEADLINE_SECONDS = 60
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs, and ends those that are left over."""
    running: list[subprocess.Popen[bytes]] = []
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("DUOLOG_")}

    def run(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*DUOLOG, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**inherited, **variables},
        )
        running.append(process)
        return process

    yield run
    for process in running:
        with contextlib.suppress(BrokenPipeError), process:
            process.kill()


@pytest.fixture
def serve(start: Start) -> Start:
    def run(*arguments: str, listen: str = "127.0.0.1:0", **variables: str) -> Any:
        return start("serve", "--log", "log", "--listen", listen, "--json", *arguments, **variables)

    return run


def url_of(process: subprocess.Popen[bytes]) -> str:
    line = cast("IO[bytes]", process.stdout).readline()
    assert line, process.communicate(timeout=DEADLINE_SECONDS)
    return str(json.loads(line)["url"])


def ask(
    url: str, content: Any = None, *, token: str = "", tls: ssl.SSLContext | None = None
) -> tuple[int, Any]:
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS, context=tls) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def refused(process: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any]]:
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, json.loads(err.splitlines()[-1])


def token_of(start: Start, *arguments: str) -> str:
    out, err = start("token", "create", *arguments).communicate(timeout=DEADLINE_SECONDS)
    assert out, err
    return out.decode().rstrip("\n")


def publish(url: str, value: str, **more: Any) -> tuple[int, Any]:
    wanted = {"topic": "orders", "messages": [{"value": value}]}
    return ask(f"{url}/v1/api/topics/publish", wanted, **more)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_everything_kept_and_the_log_free(
    serve: Start, tmp_path: Path, number: signal.Signals
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    served = serve()
    url = url_of(served)
    assert publish(url, "kept")[0] == 200
    hint = json.loads((tmp_path / "log" / "host.json").read_text())
    assert hint["address"] == url
    assert (tmp_path / "log" / "secret").stat().st_mode & 0o777 == 0o600
    served.send_signal(number)
    out, err = served.communicate(timeout=DEADLINE_SECONDS)
    assert (served.returncode, out) == (0, b"")
    assert [line.split()[2] for line in err.decode().splitlines()] == [
        "host.started",
        "host.stopping",
        "host.stopped",
    ]
    assert not (tmp_path / "log" / "host.json").exists()
    with open_log(tmp_path / "log", create=False) as log:
        assert log.offsets("orders")[0].next_offset == 1


def test_for_people_it_prints_the_address_alone_on_stdout(start: Start, tmp_path: Path) -> None:
    served = start("serve", "--log", "log", "--listen", "127.0.0.1:0")
    url = cast("IO[bytes]", served.stdout).readline().decode().strip()
    assert ask(f"{url}/readyz") == (200, {"status": "ready", "writes": "ok"})
    served.terminate()
    _, err = served.communicate(timeout=DEADLINE_SECONDS)
    assert f"Serves {tmp_path / 'log'}. Ctrl-C ends it." in err.decode()


def test_the_address_that_it_took_is_told_beside_the_one_that_is_advertised(
    serve: Start, tmp_path: Path
) -> None:
    served = serve("--advertise", "http://log.example:80", "--log-json")
    started = json.loads(cast("IO[bytes]", served.stdout).readline())
    assert started["url"] == "http://log.example:80"
    assert ask(f"http://{started['listen']}/healthz") == (200, {"status": "ok"})
    served.terminate()
    _, err = served.communicate(timeout=DEADLINE_SECONDS)
    (told,) = [
        each for each in map(json.loads, err.splitlines()) if each["event"] == "host.started"
    ]
    assert told["listen"] == started["listen"]


def test_a_poll_that_waits_is_answered_when_the_host_is_told_to_stop(
    serve: Start, tmp_path: Path
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    served = serve()
    url = url_of(served)
    body = b'{"topic":"orders","timeout_seconds":200}'
    port = int(url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as client:
        client.sendall(
            b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        until(lambda: "\nduolog_polls_waiting 1\n" in metrics(url))
        served.terminate()
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"messages":[]' in answer
    assert served.wait(DEADLINE_SECONDS) == 0


def metrics(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=DEADLINE_SECONDS) as response:
        return str(response.read().decode())


def test_others_with_the_directory_work_through_the_host(serve: Start, tmp_path: Path) -> None:
    served = serve()
    url_of(served)
    with reach(tmp_path / "log") as log:
        log.create_topic("orders")
        assert log.publish("orders", [Record(b"a")])[0].offset == 0
    served.terminate()
    assert served.wait(DEADLINE_SECONDS) == 0
    with reach(tmp_path / "log") as log:
        assert log.offsets("orders")[0].next_offset == 1


def test_a_host_that_was_killed_leaves_a_log_that_the_next_one_takes(
    serve: Start, tmp_path: Path
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    first = serve()
    url = url_of(first)
    assert publish(url, "durable")[0] == 200
    first.kill()
    first.wait(DEADLINE_SECONDS)
    second = url_of(serve())
    wanted = {"topic": "orders", "start": "Earliest", "timeout_seconds": 0}
    assert len(ask(f"{second}/v1/api/topics/consume", wanted)[1]["messages"]) == 1
    assert ask(f"{second}/readyz")[0] == 200


def test_a_second_host_is_told_of_the_first(serve: Start, tmp_path: Path) -> None:
    url = url_of(serve())
    code, error = refused(serve(DUOLOG_LOCK_WAIT_SECONDS="0.1"))
    assert (code, error["code"]) == (1, "LogBusy")
    assert url in error["error"]


def test_a_token_that_is_made_while_it_runs_counts_until_it_is_taken_back(
    start: Start, serve: Start, tmp_path: Path
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    first = token_of(start, "--role", "service", "--name", "a", "--file", "tokens")
    url = url_of(serve("--tokens", "tokens"))
    assert publish(url, "v")[0] == 401
    assert publish(url, "v", token=first)[0] == 200
    later = token_of(
        start, "--role", "service", "--name", "b", "--file", "tokens", "--topics", "other, o?"
    )
    assert publish(url, "v", token=later)[0] == 403
    lines = (tmp_path / "tokens").read_text().splitlines()
    assert json.loads(lines[1])["topics"] == ["other", "o?"]
    (tmp_path / "tokens").write_text(lines[1] + "\n")
    assert publish(url, "v", token=first)[0] == 401


def test_secrets_are_in_no_log_no_answer_and_no_process_list(
    start: Start, serve: Start, tmp_path: Path
) -> None:
    token = token_of(start, "--role", "system", "--name", "a", "--file", "tokens")
    served = serve("--tokens", "tokens", "--log-level", "debug", "--log-json")
    url = url_of(served)
    secret = (tmp_path / "log" / "secret").read_text().strip()
    answers = [
        ask(f"{url}/v1/api/topics/publish?token={token}", {}, token=token),
        ask(f"{url}/none", token=token),
        ask(f"{url}/none", token=token[:-1]),
        ask(f"{url}/v1/internal/hello", token=token),
    ]
    told = "".join(map(str, answers))
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as response:
        told += response.read().decode()
    told += " ".join(psutil.Process(served.pid).cmdline())
    served.terminate()
    out, err = served.communicate(timeout=DEADLINE_SECONDS)
    told += out.decode() + err.decode()
    told += (tmp_path / "tokens").read_text()
    for hidden in (token, token[8:30], secret, secret[:20]):
        assert hidden not in told
    events = [json.loads(line) for line in err.decode().splitlines()]
    assert {"host.started", "request", "host.stopped"} <= {each["event"] for each in events}


def test_another_process_may_do_what_its_tokens_role_may(
    start: Start, serve: Start, tmp_path: Path
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    tokens = {
        role: token_of(start, "--role", role, "--name", role, "--file", "tokens")
        for role in ("user", "service", "dba")
    }
    served = serve("--tokens", "tokens", "--log-level", "debug", "--log-json")
    url = url_of(served)
    with reach(url=url, token=tokens["service"]) as log:
        assert log.publish("orders", [Record(b"a")])[0].offset == 0
        with pytest.raises(HostRefused):
            log.drop_topic("orders")
    with reach(url=url, token=tokens["dba"]) as log:
        log.drop_topic("orders")
        assert log.topics() == ()
    limited = token_of(
        start, *("--role", "service", "--name", "pub", "--file", "tokens", "--topics", "orders")
    )
    for token, said in (
        (tokens["user"], "'user' has the role user"),
        (limited, r"'pub' is limited \(--topics\).* Use HTTP, Consumer or Publisher"),
        ("unknown", "does not take this token for 'hello'. Check that it is whole"),
        (None, "needs a token for 'hello'"),
    ):
        with pytest.raises(HostRefused, match=said), reach(url=url, token=token) as log:
            log.topics()
    served.send_signal(signal.SIGTERM)
    lines = [
        json.loads(line) for line in served.communicate(timeout=DEADLINE_SECONDS)[1].splitlines()
    ]
    refusals = {(e["caller"], e["call"]) for e in lines if e["event"] == "call.refused"}
    assert refusals == {("service", "drop_topic"), ("user", "hello"), ("pub", "hello")}
    requests = {
        (e["path"].rpartition("/")[2], e.get("caller")) for e in lines if e["event"] == "request"
    }
    assert {("publish", "service"), ("drop_topic", "dba"), ("hello", None)} < requests


def test_with_log_json_all_of_stderr_is_json(start: Start) -> None:
    served = start("serve", "--log", "log", "--listen", "127.0.0.1:0", "--log-json",
                   DUOLOG_TOPICS__POLL_INTERVAL_MS="5")  # fmt: skip
    assert cast("IO[bytes]", served.stdout).readline()
    served.send_signal(signal.SIGTERM)
    _, err = served.communicate(timeout=DEADLINE_SECONDS)
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events == [
        "settings.without_effect", "host.started", "host.stopping", "host.stopped",
    ]  # fmt: skip


def test_a_host_that_is_open_or_closed_to_all_says_so_as_it_starts(
    serve: Start, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "none").touch()
    expired = Caller("old", Role.DBA)
    add_token(tmp_path / "expired", expired, 1)
    add_token(tmp_path / "tokens", Caller("ops", Role.DBA))
    certificate = make_certificate(tmp_path, "host")
    tls = ("--tls-certificate", str(certificate.certificate), "--tls-key", str(certificate.key))
    beyond, here = "0.0.0.0:0", "127.0.0.1:0"
    for listen, tokens, more, warned in (
        (beyond, "tokens", (), {"host.without_tls": "--tls-certificate"}),
        (beyond, "tokens", tls, {}),
        (beyond, "tokens", ("--advertise", "https://log.example"), {}),
        (here, "tokens", (), {}),
        (here, "none", (), {"host.without_any_token": "duolog token create"}),
        (here, "expired", (), {"host.without_any_token": "--file expired"}),
    ):
        served = serve("--tokens", tokens, "--log-json", *more, listen=listen)
        url_of(served)
        served.send_signal(signal.SIGTERM)
        _, err = served.communicate(timeout=DEADLINE_SECONDS)
        lines = [json.loads(line) for line in err.splitlines()]
        said = {each["event"]: each["said"] for each in lines if each["level"] == "warning"}
        assert said.keys() == warned.keys(), (listen, tokens, more)
        assert all(warned[event] in said[event] for event in warned)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_beyond_this_machine_it_does_not_start_without_tokens(
    serve: Start, tmp_path: Path, listen: str
) -> None:
    code, error = refused(serve(listen=listen))
    assert (code, error["code"]) == (1, "InvalidSetting")
    assert "duolog token create --role service" in error["error"]
    assert not (tmp_path / "log").exists()


def test_beyond_this_machine_it_starts_with_tokens(
    start: Start, serve: Start, tmp_path: Path
) -> None:
    token = token_of(start, "--role", "service", "--name", "a", "--file", "tokens")
    url = url_of(serve("--tokens", "tokens", listen="0.0.0.0:0"))
    assert url.startswith("http://127.0.0.1:")
    assert ask(f"{url}/registry/subjects", token=token) == (200, [])
    assert ask(f"{url}/registry/subjects")[0] == 401
    with reach(tmp_path / "log") as log:  # the directory's secret does instead of a token
        assert log.topics() == ()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--tokens", "none"), "InvalidSetting", "There is no token file none"),
        (("--tokens", "plain"), "InvalidSetting", "holds hashes, not tokens"),
        (("--config", "none.toml"), "InvalidSetting", "no settings file none.toml"),
        (("--config", "bad.toml"), "InvalidSetting", "'lisen'"),
        (("--tls-key", "key.pem"), "InvalidSetting", "TLS takes a certificate"),
        (("--tls-certificate", "none.pem"), "InvalidSetting", "none.pem"),
    ],
)
def test_what_cannot_be_right_is_refused_before_the_log_is_opened(
    serve: Start, tmp_path: Path, arguments: tuple[str, ...], code: str, said: str
) -> None:
    (tmp_path / "plain").write_text("hunter2-hunter2-hunter2\n")
    (tmp_path / "bad.toml").write_text("[serve]\nlisen = 'a'\n")
    exit_code, error = refused(serve(*arguments))
    assert (exit_code, error["code"]) == (1, code)
    assert said in error["error"]
    assert "hunter2" not in error["error"]
    assert not (tmp_path / "log").exists()


def test_a_port_that_is_taken_is_named(serve: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, error = refused(serve(listen=f"127.0.0.1:{port}"))
    assert (code, error["code"]) == (1, "PortTaken")
    assert f"port {port}" in error["error"]
    assert not (tmp_path / "log").exists()


def test_settings_come_from_a_file(start: Start, tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(
        'log = "elsewhere"\n[serve]\nlisten = "127.0.0.1:0"\nmax_body_bytes = 100\n'
        'advertise = "http://log-host:7070"\n'
    )
    served = start("serve", "--config", "host.toml", "--json")
    assert url_of(served) == "http://log-host:7070"
    hint = json.loads((tmp_path / "elsewhere" / "host.json").read_text())
    assert hint["address"] == "http://log-host:7070"


def test_tls_with_and_without_certificates_of_clients(serve: Start, tmp_path: Path) -> None:
    own = make_certificate(tmp_path, "own")
    client = make_certificate(tmp_path, "client")
    arguments = ("--tls-certificate", str(own.certificate), "--tls-key", str(own.key))
    trusting = ssl.create_default_context(cafile=str(own.certificate))
    url = url_of(serve(*arguments, "--tls-client-ca", str(client.certificate)))
    assert url.startswith("https://127.0.0.1:")
    with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
        ask(f"{url}/healthz", tls=trusting)
    trusting.load_cert_chain(client.certificate, client.key)
    assert ask(f"{url}/healthz", tls=trusting) == (200, {"status": "ok"})


def test_retention_runs_by_itself(serve: Start, tmp_path: Path) -> None:
    from duolog.log.model import Retention, TopicSettings

    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(retention=Retention(max_bytes=1)))
        log.publish("orders", [Record(b"x" * 1000)])
        log.publish("orders", [Record(b"y" * 1000)])
    (tmp_path / "duolog.toml").write_text("[serve]\nretention_every_seconds = 0.05\n")
    url = url_of(serve())
    offsets = f"{url}/v1/api/topics/latest-offsets"
    until(lambda: ask(offsets, {"topic": "orders"})[1]["offsets"][0]["start_offset"] == 2)
    until(lambda: "\nduolog_retention_last_done_time_seconds 0\n" not in metrics(url))
    assert 'duolog_retention_deleted_records_total{topic="orders"} 2' in metrics(url)


def test_the_lock_is_held_for_as_long_as_it_serves(serve: Start, tmp_path: Path) -> None:
    served = serve()
    url_of(served)
    with (tmp_path / "log" / "owner.lock").open() as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        served.terminate()
        assert served.wait(DEADLINE_SECONDS) == 0
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--role", "root", "--name", "a", "--file", "f"), "'root' is no role"),
        (("--role", "user", "--name", "a b", "--file", "f"), "cannot name a token"),
        (("--role", "user", "--name", "a", "--file", "f", "--topics", " , "), "at least one"),
        (("--role", "user", "--name", "a", "--file", "none/f"), "cannot be written"),
        (("--role", "user", "--name", "a", "--file", "f", "--topics", "o*,["), "'[' opens"),
        (("--role", "user", "--name", "a", "--file", "f", "--groups", "[!]"), "'[!]' opens"),
    ],
)
def test_tokens_that_cannot_be_made_are_refused(
    start: Start, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    process = start("token", "create", *arguments, "--json")
    code, error = refused(process)
    assert code in {1, 2}
    assert said in error["error"]
    assert not (tmp_path / "f").exists()


def test_a_token_is_alone_on_its_line(start: Start, tmp_path: Path) -> None:
    wanted = ("--role", "dba", "--name", "ops", "--file", "tokens")
    made = start("token", "create", *wanted)
    out, err = made.communicate(timeout=DEADLINE_SECONDS)
    assert made.returncode == 0
    assert out.count(b"\n") == 1
    assert out.decode().strip() not in (tmp_path / "tokens").read_text()
    assert b"only time" in err
    code, error = refused(start("token", "create", *wanted, "--json"))
    assert (code, error["code"]) == (1, "NameTaken")


def test_tokens_are_listed_replaced_and_taken_back(start: Start, tmp_path: Path) -> None:
    def run(*arguments: str) -> bytes:
        process = start("token", *arguments, "--file", "tokens")
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, err
        return out

    limits = ("--topics", "orders*", "--groups", "billing-*")
    first = run("create", "--role", "dba", "--name", "billing", *limits).strip()
    run("create", "--role", "user", "--name", "eyes", "--expires-seconds", "3600")
    billing, eyes = [json.loads(line) for line in run("list", "--json").splitlines()]
    assert billing == {
        "name": "billing", "role": "dba", "topics": ["orders*"], "groups": ["billing-*"],
        "tables": None,
        "subjects": None,
        "where": None, "expires_at": None, "expired": False, "former_until": None,
    }  # fmt: skip
    assert 3000 < eyes["expires_at"] - time.time() <= 3600
    second = run("rotate", "billing", "--overlap-seconds", "3600").strip()
    written = (tmp_path / "tokens").read_text()
    assert all(hash_of(each.decode()) in written for each in (first, second))
    rotated = json.loads(run("list", "--json").splitlines()[0])
    assert 3000 < rotated["former_until"] - time.time() <= 3600
    assert " until 20" in run("list").decode()
    third = run("rotate", "billing", "--overlap-seconds", "3600").strip()
    written = (tmp_path / "tokens").read_text()
    assert [hash_of(each.decode()) in written for each in (first, second, third)] == [
        False, True, True,
    ]  # fmt: skip
    run("rotate", "billing")
    assert "former" not in run("list").decode()
    run("revoke", "eyes")
    shown = run("list").decode()
    assert "billing-*" in shown
    assert "eyes" not in shown
    assert first.decode() not in shown
    code, error = refused(start("token", "revoke", "eyes", "--file", "tokens", "--json"))
    assert (code, error["code"]) == (1, "InvalidSetting")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), "127.0.0.1:"),
        (("--trust-proxy", "10.0.0.1"), "127.0.0.1:"),
        (("--trust-proxy", "10.0.0.1, 127.0.0.0/8"), "203.0.113.9:"),
    ],
)
def test_only_a_proxy_that_is_trusted_says_who_asks(
    serve: Start, arguments: tuple[str, ...], shown: str
) -> None:
    process = serve(*arguments, "--log-json", "--log-level", "debug", FORWARDED_ALLOW_IPS="*")
    said = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    urllib.request.urlopen(
        urllib.request.Request(f"{url_of(process)}/healthz", headers=said)
    ).close()
    process.terminate()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    told = [json.loads(line) for line in err.splitlines()]
    (request,) = [each for each in told if each["event"] == "request"]
    assert request["client"].startswith(shown)


def test_all_that_a_host_writes_is_its_owners_alone(serve: Start, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir(mode=0o755)
    process = serve()
    with reach(url=url_of(process)) as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"private"))
        log.checkpoint()
    found = [tmp_path / "log", *(tmp_path / "log").rglob("*")]
    assert len(found) > 10
    open_to_others = [path for path in found if path.stat().st_mode & 0o077]
    assert open_to_others == []


def test_a_token_that_cannot_be_shown_is_not_made(start: Start, tmp_path: Path) -> None:
    first = start("token", "create", "--role", "dba", "--name", "a", "--file", "tokens")
    assert first.wait(DEADLINE_SECONDS) == 0
    before = (tmp_path / "tokens").read_text()
    for arguments in (("create", "--role", "user", "--name", "b"), ("rotate", "a")):
        with Path("/dev/full").open("wb") as full:
            process = subprocess.run(
                [*DUOLOG, "token", *arguments, "--file", "tokens"],
                cwd=tmp_path,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=DEADLINE_SECONDS,
                check=False,
            )
        assert process.returncode == 1
        assert (tmp_path / "tokens").read_text() == before


@pytest.mark.parametrize(
    "wrong",
    [("--expires-seconds", "inf"), ("--expires-seconds", "1e300"), ("--topics", "a\x07")],
)
def test_limits_that_make_no_sense_are_refused(
    start: Start, tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    wanted = ("--role", "user", "--name", "a", "--file", "tokens")
    code, error = refused(start("token", "create", *wanted, *wrong, "--json"))
    assert (code, error["code"]) == (2, "UsageError")
    assert not (tmp_path / "tokens").exists()


def test_poll_interval_ms_is_taken_and_said_once_to_have_no_effect(serve: Start) -> None:
    process = serve(DUOLOG_TOPICS='{"poll_interval_ms": 50}')
    assert ask(f"{url_of(process)}/healthz")[0] == 200
    process.terminate()
    _, said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert said.decode().count("poll_interval_ms has no effect") == 1
