from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli import checkup, checkup_disk
from duolog.cli.checkup import Status
from duolog.cli.program import app
from duolog.log.model import Record

Duolog = Callable[..., Result]


@pytest.fixture
def duolog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUOLOG_LOG", raising=False)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def _findings(result: Result) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(line.keys() == {"check", "status", "found", "advice"} for line in lines)
    return {line["check"]: line for line in lines}


def _log(folder: Path) -> str:
    with open_log(folder) as opened:
        opened.create_topic("t")
        opened.publish("t", [Record(b"x")] * 3)
        return opened.log_id


def test_a_machine_that_runs_this_is_fit(duolog: Duolog) -> None:
    result = duolog("doctor", "--json")
    findings = _findings(result)
    assert result.exit_code == 0
    for name in ("python", "numpy", "pyarrow", "rocksdict"):
        assert findings[name]["status"] == "ok"
    assert {"java", "files", "space", "sync", "clock", "port", "registry"} <= findings.keys()
    assert "of its tables open" in findings["open files"]["found"]
    assert findings["extras"]["found"] == "avro, registry, bridge, client, kafka, sql, spark"
    assert findings["pyspark"]["status"] == "ok"
    assert "log" not in findings


def test_findings_are_lines_for_people_too(duolog: Duolog) -> None:
    lines = duolog("doctor").stdout.splitlines()
    assert lines[0].split()[:2] == ["ok", "python"]
    assert lines[-1] == "All is well." or "warning" in lines[-1]


def test_a_log_is_opened_and_looked_at(duolog: Duolog, tmp_path: Path) -> None:
    log_id = _log(tmp_path / "log")
    findings = _findings(duolog("doctor", "--log", "log", "--json"))
    assert findings["log"]["status"] == "ok"
    assert findings["identity"]["found"] == log_id
    assert findings["records"]["status"] == "ok"
    assert findings["records"]["found"].startswith("3 records in 1 topic,")


def test_looking_at_a_log_changes_nothing_in_it(duolog: Duolog, tmp_path: Path) -> None:
    log_id = _log(tmp_path / "log")
    duolog("doctor", "--log", "log")
    with open_log(tmp_path / "log") as opened:
        assert opened.log_id == log_id
        assert opened.offsets("t")[0].next_offset == 3
        assert not list(opened.folder.glob("*tmp*"))


def test_a_log_that_is_not_there_yet_is_a_warning(duolog: Duolog, tmp_path: Path) -> None:
    result = duolog("doctor", "--log", "a/b", "--json")
    assert result.exit_code == 0
    assert _findings(result)["log"]["status"] == "warning"
    assert not (tmp_path / "a").exists()


def test_a_log_in_use_is_a_warning_that_names_its_owner(
    duolog: Duolog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUOLOG_LOCK_WAIT_SECONDS", "0")
    with open_log(tmp_path / "log"):
        result = duolog("doctor", "--log", "log", "--json")
    assert result.exit_code == 0
    finding = _findings(result)["log"]
    assert finding["status"] == "warning"
    assert "is held by process" in finding["found"]


def test_a_damaged_log_is_an_error(duolog: Duolog, tmp_path: Path) -> None:
    _log(tmp_path / "log")
    (tmp_path / "log" / "mark").unlink()
    result = duolog("doctor", "--log", "log", "--json")
    assert result.exit_code == 1
    finding = _findings(result)["log"]
    assert finding["status"] == "error"
    assert finding["found"].startswith("DamagedLog: ")


def test_a_log_of_a_newer_format_is_an_error(duolog: Duolog, tmp_path: Path) -> None:
    _log(tmp_path / "log")
    (tmp_path / "log" / "FORMAT").write_text("duolog log format 999\n")
    result = duolog("doctor", "--log", "log", "--json")
    assert result.exit_code == 1
    assert "UnsupportedFormat" in _findings(result)["log"]["found"]


def test_an_address_is_refused_by_name(duolog: Duolog) -> None:
    result = duolog("doctor", "--log", "s3://bucket/log", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "UnsupportedLocation"


def test_a_library_that_does_not_fit_is_an_error_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = metadata.version

    def installed(name: str) -> str:
        if name == "numpy":
            raise metadata.PackageNotFoundError(name)
        return "0.1" if name == "rocksdict" else real(name)

    monkeypatch.setattr(metadata, "version", installed)
    findings = {finding.check: finding for finding in checkup.libraries()}
    assert findings["numpy"].found == "not installed"
    assert findings["rocksdict"].status is Status.ERROR
    assert "pip install 'rocksdict" in (findings["rocksdict"].advice or "")
    assert findings["rich"].status is Status.OK


@pytest.fixture(autouse=True)
def no_java_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_without_java_there_is_a_warning_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert checkup.java()[0].status is Status.WARNING


@pytest.mark.parametrize(
    ("version", "status"), [("17.0.9", Status.OK), ("1.8.0_392", Status.WARNING)]
)
def test_an_old_java_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, status: Status
) -> None:
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkup.java()[0].status is status


def test_a_java_that_does_not_run_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "does not run" in checkup.java()[0].found


def test_too_little_space_for_writes_is_an_error(tmp_path: Path) -> None:
    assert checkup_disk.free_space(tmp_path, 1 << 60).status is Status.ERROR
    assert checkup_disk.free_space(tmp_path, 0).status is Status.OK


@pytest.mark.parametrize(
    ("kind", "status"),
    [("ext4", Status.OK), ("nfs4", Status.ERROR), ("tmpfs", Status.WARNING), ("", Status.WARNING)],
)
def test_file_systems_are_judged_by_their_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, status: Status
) -> None:
    monkeypatch.setattr(checkup_disk, "file_system_of", lambda _: (kind, "/mnt"))
    assert checkup_disk.file_system(tmp_path).status is status


@pytest.mark.parametrize(
    ("times_ms", "status"),
    [
        ([1.0] * 50, Status.OK),
        ([1.0] * 49 + [100.0], Status.WARNING),  # slow
        ([0.001] * 50, Status.WARNING),  # not believable
    ],
)
def test_the_disk_is_judged_by_what_a_sync_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times_ms: list[float], status: Status
) -> None:
    monkeypatch.setattr(checkup_disk, "_sync_times_ms", lambda _: times_ms)
    finding = checkup_disk.sync_speed(tmp_path)
    assert finding.status is status
    assert "p50" in finding.found


def test_a_folder_that_cannot_be_written_is_an_error() -> None:
    assert checkup_disk.sync_speed(Path("/proc")).status is Status.ERROR
