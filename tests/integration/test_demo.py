from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog.cli import demo_crash
from duolog.cli.program import app
from duolog.cli.story import Story
from duolog.log.model import GroupPosition, Side

DEADLINE_SECONDS = 120
DUOLOG = [sys.executable, "-m", "duolog.cli"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "demo"


@pytest.fixture(scope="module")
def told() -> Iterator[str]:
    """What the demo prints when it is left alone."""
    done = subprocess.run(
        [*DUOLOG, "demo"], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    yield done.stdout
    _, _, log = _commands(done.stdout)[0].rpartition("--log ")
    shutil.rmtree(log)


def _commands(told: str) -> list[str]:
    _, _, end = told.partition("The log is still there to try:")
    return [line.strip() for line in end.splitlines() if line.strip()]


def test_it_claims_only_what_holds(told: str) -> None:
    assert told.count("✓") == 16
    assert "✗" not in told
    assert "\x1b" not in told


def test_its_lines_fit_80_columns_but_for_the_commands(told: str) -> None:
    before, _, _ = told.partition("The log is still there to try:")
    assert max(len(line) for line in before.splitlines()) <= 80


def test_it_says_how_many_were_acknowledged_before_the_kill(told: str) -> None:
    line = next(line for line in told.splitlines() if "was killed with" in line)
    acknowledged = int(line.split("with ")[1].split(" of ")[0].replace(",", ""))
    assert f"All {acknowledged:,} acknowledged records are there" in told


def test_what_it_ends_with_works(told: str) -> None:
    commands = _commands(told)
    assert len(commands) == 2
    listed, consumed = (
        subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for command in commands
    )
    assert "orders" in listed
    assert "readings" in listed
    assert {json.loads(line)["topic"] for line in consumed.splitlines()} == {"orders"}


def test_with_json_each_claim_is_an_object(folder: Path) -> None:
    done = subprocess.run(
        [*DUOLOG, "demo", "--json", "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    claims = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(claims) == 16
    assert all(claim["holds"] for claim in claims)
    assert (folder / "db").is_dir()


def test_a_claim_that_does_not_hold_fails_the_demo(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_one(story: Story, _: Path, __: tuple[GroupPosition, ...]) -> None:
        story.check("All acknowledged records are there", holds=False)

    monkeypatch.setattr(demo_crash, "kill_a_publisher", lose_one)
    result = CliRunner().invoke(app, ["demo", "--folder", str(folder)])
    assert result.exit_code == 1
    assert "✗ NOT SO: All acknowledged records are there" in result.stdout
    assert "All of it checked" not in result.stdout


def test_a_lost_record_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = demo_crash.publish_until_killed

    def pretend_one_more(where: Path) -> demo_crash.Killed:
        killed = real(where)
        return killed._replace(places=[*killed.places, (0, 10**9)], sent=killed.sent + 10**9)

    monkeypatch.setattr(demo_crash, "publish_until_killed", pretend_one_more)
    result = CliRunner().invoke(app, ["demo", "--json", "--folder", str(folder)])
    assert result.exit_code == 1
    lost = [json.loads(line) for line in result.stdout.splitlines()]
    assert [claim["claim"].split()[0] for claim in lost if not claim["holds"]] == ["All"]


def test_a_group_that_moved_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = (GroupPosition("billing", "orders", 0, 99, 1, 0, Side.NATIVE),)
    monkeypatch.setattr("duolog.cli.demo_routes.read_and_acknowledge", lambda *_: moved)
    result = CliRunner().invoke(app, ["demo", "--json", "--folder", str(folder)])
    assert result.exit_code == 1
    claims = [json.loads(line) for line in result.stdout.splitlines()]
    (wrong,) = [claim for claim in claims if not claim["holds"]]
    assert wrong["claim"] == "Group billing is where it was"


def test_a_folder_that_is_in_use_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "mine").write_text("precious")
    result = CliRunner().invoke(app, ["demo", "--folder", str(folder)])
    assert result.exit_code == 2
    assert [entry.name for entry in folder.iterdir()] == ["mine"]
