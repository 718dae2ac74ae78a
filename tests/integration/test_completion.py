"""What the shell offers while a command is typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import Record, TopicSettings
from tests.support.host_server import Host

PROGRAM = Path(sys.executable).with_name("duolog")
HEAVY = "{'rocksdict', 'pyarrow', 'numpy', 'sqlglot', 'pydantic_settings', 'httpx'}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With two topics and a group."""
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(alias="sales"))
        log.create_topic("payments")
        log.publish("orders", [Record(b"x")])
        log.ack("billing", "orders", 0)
    return tmp_path


def offered(folder: Path, line: str) -> list[str]:
    """As bash asks, at the end of the line."""
    words = line.split(" ")
    asked = {
        "_DUOLOG_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        result = CliRunner().invoke(app, [], env=asked, prog_name="duolog")
    assert not result.stderr
    return result.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("duolog bac", ["backup"]),
        ("duolog topic desc", ["describe"]),
        ("duolog topic describe --log log ", ["orders", "payments", "sales"]),
        ("duolog topic describe --log log o", ["orders"]),
        ("duolog consume --log log pay", ["payments"]),
        ("duolog group describe --log log ", ["billing"]),
        ("duolog ack orders --log log --group b", ["billing"]),
        ("duolog consume orders --log log --group x", []),
        ("duolog topic describe --log nothing ", []),
        ("duolog topic describe ", []),
        ("duolog topic describe --url http://127.0.0.1:1 o", []),
    ],
)
def test_names_of_the_log_are_offered_and_nothing_is_said(
    folder: Path, line: str, expected: list[str]
) -> None:
    assert offered(folder, line) == expected
    assert not (folder / "nothing").exists()


def test_a_log_that_is_served_is_asked_through_its_host(tmp_path: Path) -> None:
    with Host(tmp_path / "log") as host:
        host.log.announce(host.url)
        host.log.create_topic("orders")
        assert offered(tmp_path, "duolog topic describe --log log o") == ["orders"]


def test_commands_are_offered_without_loading_anything_heavy() -> None:
    code = (
        "import sys; sys.argv = ['duolog']\n"
        "from duolog.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    assert not {HEAVY} & set(sys.modules), sorted(sys.modules)"
    )
    environment = {
        **os.environ,
        "_DUOLOG_COMPLETE": "complete_bash",
        "COMP_WORDS": "duolog topic cr",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout.split(), done.stderr) == (["create"], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_of_its_own(shell: str) -> None:
    told = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [PROGRAM, "--show-completion", shell], env=told, capture_output=True, text=True, check=True
    )
    assert "_DUOLOG_COMPLETE" in done.stdout
    assert f"complete_{shell}" in done.stdout


def test_a_real_bash_completes_a_topic(folder: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = f"""
        export PATH={PROGRAM.parent}:$PATH
        eval "$(duolog --show-completion bash)"
        COMP_WORDS=(duolog topic describe --log log pa); COMP_CWORD=5
        _duolog_completion duolog
        echo "${{COMPREPLY[*]}}"
    """
    done = subprocess.run(
        [bash, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("payments", "")


def test_install_completion_writes_where_bash_looks(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(  # in bash: the shell is found by whose child the program is
        ["bash", "-c", f"{PROGRAM} --install-completion; exit $?"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "duolog" in (tmp_path / ".bashrc").read_text()
    assert any("duolog" in file.name for file in tmp_path.rglob("*.sh"))
