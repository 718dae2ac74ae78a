"""A log in a folder, or with files, of another user: what is closed, and what is said."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.bridge.journal import Journal
from duolog.bridge.serve.exposure import warn_of_open_folder
from duolog.cli.program import app
from duolog.log import EmbeddedLog
from duolog.log.model import Mode, Record, Writer

DEADLINE_SECONDS = 60
# Root reads whatever it likes; without these powers it is as anybody else.
POWERS = "-dac_override,-dac_read_search"
AS_ANYBODY = ["setpriv", f"--bounding-set={POWERS}", f"--inh-caps={POWERS}"]
NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of another user, and open to all: nobody but that user may close it."""
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(0o777)
    chmod = Path.chmod

    def refuse(path: Path, mode: int) -> None:
        if path == folder:
            raise PermissionError(1, "Operation not permitted", str(path))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", refuse)
    before = os.umask(0)
    yield folder
    os.umask(before)


def fill(log: EmbeddedLog) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"private"))
    log.checkpoint()
    log.announce("http://127.0.0.1:1")
    assert log.secret()


def test_what_lies_in_a_folder_of_another_user_is_closed(folder: Path) -> None:
    with open_log(folder) as log:
        fill(log)
        staged = log.staging(Writer(Mode.BATCH, "loader", "orders"), 0).begin()
        staged.write(b"x")
        staged.finish()
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert {"db", "checkpoints", "staging", "mark", "secret", "FORMAT", "host.json"} <= set(found)
    for name, mode in found.items():
        assert mode == (0o700 if (folder / name).is_dir() else 0o600), name


def test_folders_that_were_open_before_are_closed(folder: Path) -> None:
    with open_log(folder) as log:
        fill(log)
    for name in ("db", "checkpoints"):
        (folder / name).chmod(0o777)
    with open_log(folder):
        pass
    for name in ("db", "checkpoints"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700


def test_doctor_and_host_say_what_others_may_do(folder: Path) -> None:
    with open_log(folder):
        pass
    said = CliRunner().invoke(app, ["doctor", "--json", "--log", str(folder)]).stdout
    findings = {each["check"]: each for each in map(json.loads, said.splitlines())}
    assert findings["folder"]["status"] == "warning"
    assert "they can rename or remove them" in findings["folder"]["found"]
    assert "chmod 700" in findings["folder"]["advice"]
    told = io.StringIO()
    warn_of_open_folder(folder, Journal(told, as_json=True))
    line = json.loads(told.getvalue())
    assert (line["level"], line["event"]) == ("warning", "log.open_to_others")
    assert "can rename or remove them" in line["said"]
    assert "chmod 700" in line["said"]


def test_nothing_is_said_of_a_folder_that_is_closed(tmp_path: Path) -> None:
    with open_log(tmp_path / "log"):
        pass
    said = CliRunner().invoke(app, ["doctor", "--json", "--log", str(tmp_path / "log")]).stdout
    assert "folder" not in {json.loads(line)["check"] for line in said.splitlines()}
    told = io.StringIO()
    warn_of_open_folder(tmp_path / "log", Journal(told))
    assert told.getvalue() == ""


@pytest.mark.parametrize("name", ["db/CURRENT", "mark", "FORMAT", "owner.lock"])
def test_a_file_of_another_user_is_no_damage(tmp_path: Path, name: str) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    file = tmp_path / "log" / name
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(file, NOBODY, -1)
    file.chmod(0o600 if is_root else 0)
    owner = file.owner()
    ended = subprocess.run(
        [*(AS_ANYBODY if is_root else []), sys.executable, "-m", "duolog.cli",
         "topic", "list", "--json", "--log", str(tmp_path / "log")],
        capture_output=True, check=False, timeout=DEADLINE_SECONDS, cwd=tmp_path,
    )  # fmt: skip
    assert ended.returncode == 1
    said = json.loads(ended.stderr.splitlines()[-1])
    assert said["code"] == "UnsupportedLocation"
    assert f"{file} belongs to {owner}" in said["error"]
    assert "Nothing is damaged" in said["error"]
    assert f"chown -R {Path(tmp_path).owner()} {tmp_path / 'log'}" in said["error"]
