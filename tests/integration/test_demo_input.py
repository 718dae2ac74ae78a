"""The demo on machines and with words that it cannot work with: it says what, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog.cli.demo_ready import check_spark
from duolog.cli.program import app
from duolog.demo import acts
from duolog.demo.acts import Stage
from duolog.demo.children import Children, held
from duolog.demo.places import Places
from duolog.errors import DemoFailed, ToolMissing

DEADLINE_SECONDS = 120
DUOLOG = [sys.executable, "-m", "duolog.cli"]
NOBODY_LISTENS = "127.0.0.1:1"
# Root writes wherever it likes; without these powers it is as anybody else.
_POWERS = "-dac_override,-dac_read_search"
AS_ANYBODY = ["setpriv", f"--bounding-set={_POWERS}", f"--inh-caps={_POWERS}"]


def refused(*arguments: object, before: tuple[str, ...] = (), **environment: str) -> str:
    """What a demo says that does not begin."""
    done = subprocess.run(
        [*before, *DUOLOG, "demo", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode in {1, 2}, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.replace("│", " ").split())


def test_no_java() -> None:
    said = refused(JAVA_HOME="", PATH="/nowhere")
    assert "There is no java in PATH" in said
    assert "Install Java 17 or newer, or let JAVA_HOME name one." in said


def test_an_old_java(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    said = refused(JAVA_HOME=str(tmp_path))
    assert f"{java} is Java 11. Install Java 17 or newer" in said


@pytest.mark.parametrize("version", ["3.5.7", "4.0.2", "4.3.0", "41.1.0"])
def test_a_pyspark_that_the_demos_delta_is_not_made_for(version: str) -> None:
    with pytest.raises(ToolMissing, match=rf"PySpark {version} is .* pip install 'pyspark==4\.1"):
        check_spark(version)


def test_any_pyspark_of_the_right_line_is_taken() -> None:
    check_spark("4.1.9")


def test_no_network_before_the_first_download(tmp_path: Path) -> None:
    nowhere = f"http://{NOBODY_LISTENS}"
    cache, folder = tmp_path / "cache", tmp_path / "demo"
    said = refused("--folder", folder, DUOLOG_CACHE=str(cache), DUOLOG_MAVEN_URL=nowhere)
    assert "Could not fetch kafka_2.13 4.1.1." in said
    assert f"copy {cache} from a machine that has the jars: `duolog demo --fetch`" in said
    assert nowhere in said
    assert [path.name for path in folder.iterdir()] == ["demo.lock"]


def test_fetching_is_all_that_fetch_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = CliRunner().invoke(app, ["demo", "--fetch"])
    assert done.exit_code == 0
    assert "All that the demo needs is in" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    before = AS_ANYBODY if os.geteuid() == 0 else []
    said = refused("--folder", folder, before=tuple(before))
    assert f"cannot write into {folder}: Permission denied. Name another folder." in said
    said = refused("--folder", folder / "inside", before=tuple(before))
    assert "cannot be made: Permission denied. Name another one." in said


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    assert "Not a directory. Name another one." in refused("--folder", file / "demo")


def test_a_folder_in_which_another_demo_works(tmp_path: Path) -> None:
    with held(tmp_path):
        said = refused("--folder", tmp_path)
    assert f"Another demo works in {tmp_path}. Name another folder, or end it." in said


def test_what_a_demo_has_left_is_not_written_over(tmp_path: Path) -> None:
    with held(tmp_path):
        pass
    (tmp_path / "said").mkdir()
    assert "is not an empty directory. Name a new one" in refused("--folder", tmp_path)


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        (NOBODY_LISTENS, "Kafka did not answer within 1 s"),
        ("broker", "Bootstrap servers are host:port"),
    ],
)
def test_a_kafka_that_is_none(
    servers: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(acts, "_REACH_SECONDS", 1.0)
    arguments = ["demo", "--bootstrap-servers", servers, "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert told in done.stderr


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    with held(tmp_path) as lock, Children(Places(tmp_path), lock) as children:
        yield children


def test_what_a_process_of_the_demo_ended_with_is_told(tmp_path: Path, children: Children) -> None:
    with pytest.raises(DemoFailed, match=r"'host' ended with 1(?s:.*)Bootstrap servers are host"):
        Stage(Places(tmp_path), children, "broker").open_log()
