"""A real `duolog serve` is attacked in every way that docs/security.md lists.

The table of the document and the functions that attack are the same, row by row. After each attack
the host still answers, and its journal tells of no failure.

Mutants: tokens_never_end, roles_are_not_looked_at, unknown_paths_go_to_the_framework,
connections_have_no_limit, topics_have_no_owners, writers_have_no_owners, parts_have_any_name,
conditions_are_left_out, requests_take_any_memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drills.edge.hosting import ROOT, Edge, Keys
from tests.drills.edge.requests import GUARDED, INTERNAL, OPEN_PATHS
from tests.drills.edge.table import CLASSES, HEADING, load, tables

ATTACKS = load()
DOCUMENT = ROOT / "docs" / "security.md"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[Edge]:
    with Edge(tmp_path_factory.mktemp("edge"), keys) as attacked:
        yield attacked


@pytest.mark.parametrize("name", ATTACKS)
def test_the_host_withstands(edge: Edge, name: str) -> None:
    ATTACKS[name].run(edge)
    assert edge.wrong_after() == []


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("roles_are_not_looked_at", "role too low"),
        ("connections_have_no_limit", "too many connections"),
        ("topics_have_no_owners", "topics of others in statements"),
        ("parts_have_any_name", "paths in names of parts"),
        ("conditions_are_left_out", "records of others"),
        pytest.param("requests_take_any_memory", "many values at once", marks=pytest.mark.full),
        pytest.param("tokens_never_end", "expired token", marks=pytest.mark.full),
        pytest.param(
            "unknown_paths_go_to_the_framework", "path with an ending", marks=pytest.mark.full
        ),
        pytest.param("writers_have_no_owners", "writers of others", marks=pytest.mark.full),
    ],
)
def test_an_attack_finds_the_mutant(tmp_path: Path, keys: Keys, mutant: str, name: str) -> None:
    with Edge(tmp_path / "edge", keys, mutant=mutant) as mutated, pytest.raises(AssertionError):
        ATTACKS[name].run(mutated)


def test_the_document_lists_these_attacks_and_no_others() -> None:
    appendix = DOCUMENT.read_text().partition(f"\n{HEADING}\n")[2]
    rows = [line for line in appendix.splitlines() if line.startswith("|")]
    assert rows == [line for line in tables().splitlines() if line.startswith("|")]
    assert {each.kind for each in ATTACKS.values()} == set(CLASSES)


def test_every_path_of_the_description_is_attacked(edge: Edge) -> None:
    described = json.loads(edge.host.ask("GET", "/openapi.json").body)["paths"]
    attacked = {each.path for each in GUARDED} | set(OPEN_PATHS)
    assert set(described) - attacked == set()
    assert any(path.startswith(INTERNAL) for path in attacked)
