"""`duolog bench`: its bars, and each measurement in a tiny form. No figure is judged."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog.cli.measure import disk
from duolog.cli.measure.bars import Measured, Measurement, bar, lines, show
from duolog.cli.program import app

VALUES = (Measured("a", 200.0), Measured("b", 50.0), Measured("c", 0.0, is_ours=False))


@pytest.mark.parametrize(
    ("share", "drawn", "plain"),
    [
        (0.0, "", ""),
        (0.001, "▏", "#"),
        (0.5, "████", "####"),
        (0.56, "████▌", "####"),
        (1.0, "████████", "########"),
        (7.0, "████████", "########"),
    ],
)
def test_a_bar_fills_its_share(share: float, drawn: str, plain: str) -> None:
    assert bar(share, 8) == drawn
    assert bar(share, 8, plain=True) == plain


def test_bars_are_to_the_highest_value_and_figures_are_short() -> None:
    (a, b, c) = lines(VALUES, "/s", plain=True)
    assert (len(a[1]), a[2]) == (26, "200 /s")
    assert (len(b[1]), b[2]) == (6, "50.0 /s")
    assert c == ("c", "", "0.00 /s")
    assert list(lines((), "/s", plain=True)) == []


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_measurement_fits_80_columns(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = TextIOWrapper(BytesIO(), encoding, "replace")
    monkeypatch.setattr(sys, "stdout", out)
    measured = Measurement(
        "append",
        "500,000 records as one epoch (31 MB packed), durable",
        "MB/s",
        (Measured("x" * 34, 123_456_789.0), Measured("y", 1.0)),
    )
    show(measured)
    out.seek(0)
    shown = out.read()
    assert max(map(len, shown.splitlines())) <= 80
    assert ("█" in shown) == (encoding == "utf-8")
    assert "123,456,789 MB/s" in shown


def test_each_measurement_runs_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(disk, "_SECONDS", 0.05)
    result = CliRunner().invoke(app, ["bench", "--records", "3000", "--json"])
    assert result.exit_code == 0, result.output
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert {each["benchmark"] for each in told} == {"append", "publish", "fetch", "consume"}
    assert all(each["value"] > 0 and each["unit"] in {"/s", "MB/s"} for each in told)
    assert not list(tmp_path.iterdir())


def test_some_are_measured_by_name_with_bars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bench", "fetch", "--records", "2000"])
    assert result.exit_code == 0, result.output
    assert "as Arrow columns" in result.stdout
    assert "append" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "none of append"),
        (["mirror"], "--bootstrap-servers"),
        (["append", "--records", "0"], "--records"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert said in result.stderr


def test_too_little_disk_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bench", "append", "--records", str(10**15)])
    assert result.exit_code == 1
    assert "--dir" in result.stderr
    assert not list(tmp_path.iterdir())
