"""The lowest versions of libraries that the package declares are ones with which it works."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog.cli.checkup import is_within, requirement

PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def declared() -> Iterator[tuple[str, str]]:
    """Libraries and their versions, of the package itself and of all its extras."""
    project = PROJECT["project"]
    for lines in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(requirement, lines)


@pytest.mark.parametrize(
    ("library", "fails", "works"),
    [
        ("typer", "0.15.3", "0.15.4"),
        ("httptools", "0.6.3", "0.6.4"),
        ("uvicorn", "0.30.6", "0.31.0"),  # no networks in forwarded_allow_ips
    ],
)
def test_a_version_that_does_not_work_is_not_taken(library: str, fails: str, works: str) -> None:
    bounds = [versions for name, versions in declared() if name == library]
    assert bounds
    assert all(is_within(works, each) and not is_within(fails, each) for each in bounds)


def test_development_takes_no_lower_version_of_the_servers_libraries() -> None:
    developing = dict(map(requirement, PROJECT["dependency-groups"]["dev"]))
    for name, versions in declared():
        if name in {"httptools", "uvicorn", "uvloop", "fastapi"}:
            assert developing[name] == versions, name
