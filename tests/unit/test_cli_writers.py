"""`duolog writer`: how far those have come who publish with sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import Record


def test_the_last_sequence_of_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOG_LOG", str(tmp_path / "log"))
    with open_log(tmp_path / "log") as log:
        log.create_topic("t")
        log.publish("t", [Record(b"a"), Record(b"b")], writer="import", sequence=8)

    def ask(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["writer", "last-sequence", *arguments])
        return result.exit_code, result.stdout, result.stderr

    assert ask("import") == (0, "9\n", "")
    unknown = ask("other")
    assert unknown[:2] == (0, "")
    assert "does not know writer 'other'" in unknown[2]
    assert ask("import", "--json")[1] == '{"writer":"import","last_sequence":9}\n'
    assert ask("other", "--json")[1] == '{"writer":"other","last_sequence":null}\n'
