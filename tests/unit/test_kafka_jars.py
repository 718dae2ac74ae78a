"""Fetching jars: real Ivy, against a small repository on loopback."""

from __future__ import annotations

import base64
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from duolog.errors import (
    DownloadFailed,
    InvalidSetting,
    JavaNotFound,
    JavaTooOld,
    PySparkNotFound,
)
from duolog.jars import cache, cache_folder, fetch_jars, find_java, ivy
from duolog.jars.cache import cached
from duolog.jars.java import java_version
from duolog.jars.mirrors import ivy_settings, proxy_options
from duolog.jars.module import Module

NOWHERE = "http://127.0.0.1:9/nothing/listens/here"
DEADLINE_SECONDS = 60


class Repository:
    """Libraries of organisation org.x, as a Maven repository has them, and who asked for what."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked: list[str] = []
        self.wants_password = ""
        self.release = threading.Event()
        self.release.set()
        repository = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                if repository.admits(self):
                    super().do_GET()

            def do_HEAD(self) -> None:
                if repository.admits(self):
                    super().do_HEAD()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        handler: Any = partial(Handler, directory=str(folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="repository")
        self._thread.start()

    def admits(self, request: SimpleHTTPRequestHandler) -> bool:
        self.release.wait(60)
        given = request.headers.get("Proxy-Authorization", "")
        if self.wants_password and given != self.wants_password:
            request.send_response(407)
            request.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            request.send_header("Content-Length", "0")
            request.end_headers()
            return False
        request.path = urlsplit(request.path).path  # a proxy is asked with whole addresses
        self.asked.append(f"{request.command} {request.path}")
        return True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, module: str, *, needs: str | None = None, content: bytes | None = None) -> None:
        folder = self._folder / "org" / "x" / module / "1.0"
        folder.mkdir(parents=True)
        dependency = f"<groupId>org.x</groupId><artifactId>{needs}</artifactId>"
        dependencies = f"<dependency>{dependency}<version>1.0</version></dependency>"
        (folder / f"{module}-1.0.pom").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>org.x</groupId>"
            f"<artifactId>{module}</artifactId><version>1.0</version>"
            f"<dependencies>{dependencies if needs else ''}</dependencies></project>"
        )
        jar = folder / f"{module}-1.0.jar"
        if content is not None:
            jar.write_bytes(content)
            return
        with zipfile.ZipFile(jar, "w") as opened:
            opened.writestr(f"{module}.class", bytes(1000))

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    for name in ("DUOLOG_IVY_SETTINGS", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DUOLOG_CACHE", str(tmp_path / "cache"))
    repository = Repository(tmp_path / "repository")
    monkeypatch.setenv("DUOLOG_MAVEN_URL", repository.address)
    repository.add("b")
    repository.add("a", needs="b")
    yield repository
    repository.close()


def _names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


def _kept() -> list[str]:
    """What is in the cache, without locks."""
    found = (path for path in cache_folder().rglob("*") if path.is_file())
    return sorted(path.name for path in found if path.suffix != ".lock")


@pytest.mark.usefixtures("repository")
def test_a_library_comes_with_what_it_needs_or_alone() -> None:
    said: list[str] = []
    assert _names(fetch_jars("org.x", "a", "1.0", progress=said.append)) == [
        "a-1.0.jar",
        "b-1.0.jar",
    ]
    assert said[0] == "Fetching a 1.0: 1 library"
    assert said[-1].startswith("Fetching a 1.0: 2 libraries, 2 fetched, ")
    assert _names(fetch_jars("org.x", "a", "1.0", transitive=False)) == ["a-1.0.jar"]


def test_the_second_time_needs_no_network_and_no_java(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch_jars("org.x", "a", "1.0")
    asked = len(repository.asked)
    monkeypatch.setenv("DUOLOG_MAVEN_URL", NOWHERE)
    monkeypatch.setenv("PATH", "")
    assert fetch_jars("org.x", "a", "1.0") == first
    assert len(repository.asked) == asked


@pytest.mark.usefixtures("repository")
def test_an_unreachable_mirror_is_named_and_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUOLOG_MAVEN_URL", NOWHERE)
    with pytest.raises(DownloadFailed) as failure:
        fetch_jars("org.x", "a", "1.0")
    told = str(failure.value)
    assert told.startswith("Could not fetch a 1.0. ")
    assert "DUOLOG_MAVEN_URL" in told
    assert f"{NOWHERE}/org/x/a/1.0/a-1.0.pom (java.net.ConnectException" in told
    assert _kept() == []


@pytest.mark.usefixtures("repository")
def test_what_the_repository_does_not_have_is_named() -> None:
    with pytest.raises(DownloadFailed, match=r"module not found: org\.x#a;2\.0"):
        fetch_jars("org.x", "a", "2.0")


def test_a_page_in_place_of_a_jar_is_not_kept(repository: Repository) -> None:
    repository.add("c", content=b"<html>Please log in to the hotel's network</html>")
    with pytest.raises(DownloadFailed, match=r"c-1\.0\.jar is damaged or is no jar"):
        fetch_jars("org.x", "c", "1.0")
    assert _kept() == []


def test_a_repository_that_says_nothing_is_an_end(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivy, "_SILENCE_SECONDS", 1.5)
    repository.release.clear()
    with pytest.raises(DownloadFailed, match=r"nothing came for 1\.5 s"):
        fetch_jars("org.x", "a", "1.0")


def _fill(unfinished: Path) -> None:
    for name in ("a.jar", "b.jar"):
        with zipfile.ZipFile(unfinished / "jars" / name, "w") as jar:
            jar.writestr("x", bytes(1000))


def test_a_damaged_cache_is_filled_anew(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    a, b = cached(folder, _fill)
    b.unlink()
    assert cached(folder, _fill) == [a, b]
    a.write_bytes(a.read_bytes()[:-1])
    assert cached(folder, _fill) == [a, b]
    (folder / "jars.json").write_text("{")
    assert cached(folder, _fill) == [a, b]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "f.lock"]


def test_what_a_killed_fetch_left_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / ".f-killed"
    leftover.mkdir()
    (leftover / "half.jar").write_bytes(b"half")
    cached(tmp_path / "f", _fill)
    assert not leftover.exists()


def test_a_jar_of_a_download_that_was_cut_off_is_fetched_again(repository: Repository) -> None:
    first, _ = fetch_jars("org.x", "a", "1.0")
    whole = first.read_bytes()
    for broken in (whole[: len(whole) // 2], bytes(len(whole)), b""):
        first.write_bytes(broken)
        asked = len(repository.asked)
        fetch_jars("org.x", "a", "1.0")
        assert first.read_bytes() == whole
        assert "GET /org/x/a/1.0/a-1.0.jar" in repository.asked[asked:]


def test_a_fetch_that_was_killed_leaves_nothing_that_counts(repository: Repository) -> None:
    repository.release.clear()
    code = "from duolog.jars import fetch_jars; fetch_jars('org.x', 'a', '1.0')"
    with subprocess.Popen([sys.executable, "-c", code]) as fetching:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not list(cache_folder().rglob("ivy.xml")):
            assert time.monotonic() < deadline
            assert fetching.poll() is None
        fetching.kill()
    repository.release.set()
    assert _names(fetch_jars("org.x", "a", "1.0")) == ["a-1.0.jar", "b-1.0.jar"]
    assert _kept() == ["a-1.0.jar", "b-1.0.jar", "jars.json"]


def test_a_fetch_without_jars_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="no jars"):
        cached(tmp_path / "f", lambda _: None)
    assert not (tmp_path / "f").exists()


def test_two_at_once_fetch_once(repository: Repository) -> None:
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: fetch_jars("org.x", "a", "1.0"), range(2))
    assert first == second
    assert repository.asked.count("GET /org/x/a/1.0/a-1.0.jar") == 1


@pytest.mark.usefixtures("repository")
def test_waiting_for_a_fetch_of_others_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LOCK_SECONDS", 0)
    folder = cache_folder() / "f"
    folder.parent.mkdir()
    with (
        cache._locked(folder),
        pytest.raises(DownloadFailed, match=r"holds .*f\.lock"),
        cache._locked(folder),
    ):
        pass


def test_an_ivy_settings_file_of_ones_own_goes_over_the_url(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.xml"
    settings.write_text(ivy_settings(repository.address))
    monkeypatch.setenv("DUOLOG_MAVEN_URL", NOWHERE)
    monkeypatch.setenv("DUOLOG_IVY_SETTINGS", str(settings))
    assert len(fetch_jars("org.x", "a", "1.0")) == 2
    monkeypatch.setenv("DUOLOG_IVY_SETTINGS", str(tmp_path / "none.xml"))
    with pytest.raises(InvalidSetting, match=r"none\.xml, which is not there"):
        fetch_jars("org.x", "b", "1.0")


def test_a_proxy_with_a_password_is_gone_through(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.wants_password = "Basic " + base64.b64encode(b'me:p@ss\\"word').decode()
    monkeypatch.setenv("http_proxy", repository.address.replace("//", "//me:p%40ss%5C%22word@"))
    monkeypatch.setenv("DUOLOG_MAVEN_URL", "http://repository.invalid")
    assert _names(fetch_jars("org.x", "b", "1.0")) == ["b-1.0.jar"]


@pytest.mark.parametrize(
    ("proxies", "options"),
    [
        ({}, []),
        ({"no": "localhost"}, []),
        (
            {"https": "http://proxy:3128", "no": "localhost, .inside.example"},
            [
                "-Dhttps.proxyHost=proxy",
                "-Dhttps.proxyPort=3128",
                "-Dhttp.nonProxyHosts=localhost|*.inside.example",
            ],
        ),
        ({"http": "proxy"}, ["-Dhttp.proxyHost=proxy", "-Dhttp.proxyPort=80"]),
    ],
)
def test_proxies_are_told_to_java(proxies: dict[str, str], options: list[str]) -> None:
    assert proxy_options(proxies) == options


@pytest.mark.parametrize("url", ["ftp://mirror", "mirror.example", "https://me:secret@mirror/"])
def test_an_address_that_ivy_cannot_use_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match="DUOLOG_MAVEN_URL"):
        ivy_settings(url)


def test_a_proxy_without_a_host_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="no address"):
        proxy_options({"http": "http://"})


@pytest.mark.parametrize("word", ["", "a/b", "../x", "a b", '"'])
def test_words_that_are_no_coordinates_are_refused(word: str) -> None:
    with pytest.raises(InvalidSetting, match="coordinates"):
        Module("org.x", word, "1.0")


def test_without_pyspark_it_says_what_to_install(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spark = ivy._ivy().parents[1]
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(PySparkNotFound, match="pip install 'pyspark"):
        fetch_jars("org.x", "a", "1.0")
    monkeypatch.setenv("SPARK_HOME", str(spark))
    assert len(fetch_jars("org.x", "a", "1.0")) == 2


def test_a_cache_that_cannot_be_written_is_named(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("DUOLOG_CACHE", str(file))
    with pytest.raises(InvalidSetting, match="Name another with DUOLOG_CACHE"):
        fetch_jars("org.x", "a", "1.0")


def test_neither_jars_nor_the_local_broker_load_anything_heavy() -> None:
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'confluent_kafka', 'pydantic', 'rocksdict', 'typer'}"
    code = f"import sys, duolog.jars, duolog.bridge.kafka.local; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_cache_is_in_the_usual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUOLOG_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "duolog"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/duolog")


def _java(folder: Path, script: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_no_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaNotFound, match=r"no java in PATH.* Install Java 17 or newer"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME is .*, which has no bin/java"):
        find_java()


def test_a_java_that_does_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFound, match=r"does not run: Unable to locate a Java Runtime\. Inst"):
        find_java()


@pytest.mark.parametrize(
    ("said", "told"),
    [('java version "1.8.0_392"', "is Java 8"), ("Hello", "of an unknown version")],
)
def test_an_old_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    _java(tmp_path, f"echo '{said}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaTooOld, match=rf"{told}\. Install Java 17"):
        find_java()


def test_options_from_the_environment_do_not_hide_javas_version() -> None:
    assert java_version('Picked up JAVA_TOOL_OPTIONS: -X\nopenjdk version "17.0.15" 2025') == 17
