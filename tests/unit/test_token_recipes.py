"""The recipes and patterns of docs/security.md are what `duolog token create` takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog.bridge.http.tokens import read_tokens
from duolog.cli.token import app

SECURITY = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^\| [^|]+ \| `(--role [^`]+)` \|", SECURITY, re.MULTILINE)


@pytest.mark.parametrize("options", RECIPES)
def test_each_recipe_makes_a_token(options: str, tmp_path: Path) -> None:
    file = str(tmp_path / "tokens")
    made = CliRunner().invoke(app, ["create", "--name", "a", "--file", file, *shlex.split(options)])
    assert made.exit_code == 0, made.output
    assert len(read_tokens(tmp_path / "tokens")) == 1


def test_there_are_recipes() -> None:
    assert len(RECIPES) == 8
