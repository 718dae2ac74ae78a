"""A real `duolog serve` is sent requests that nobody thought of, with tokens of every role.

Half are made by schemathesis from the host's and the registry's own descriptions; half are requests
of real clients, broken at random and sent as bytes. None is answered by a 500 or not at all, the
host lives, and takes no more memory than it should.

Mutants: some_requests_raise, some_requests_keep_memory, some_requests_are_never_answered.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.drills.edge.fuzzing import ANSWER_WITHIN_SECONDS, SETTINGS, fuzz
from tests.drills.edge.hosting import Edge, Keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys.make(tmp_path_factory.mktemp("keys"))


@pytest.mark.parametrize(
    "seconds",
    [6, pytest.param(600, marks=[pytest.mark.full, pytest.mark.timeout(1200)])],
    ids=["short", "ten-minutes"],
)
def test_the_host_withstands_requests_that_nobody_thought_of(
    tmp_path: Path, keys: Keys, chance: random.Random, seconds: float
) -> None:
    with Edge(tmp_path / "edge", keys, settings=SETTINGS) as edge:
        wrong = fuzz(edge, chance, seconds, answer_within_seconds=ANSWER_WITHIN_SECONDS)
        assert wrong == []


@pytest.mark.parametrize(
    ("mutant", "shows"),
    [
        ("some_requests_raise", "500"),
        pytest.param("some_requests_keep_memory", "memory", marks=pytest.mark.full),
        pytest.param("some_requests_are_never_answered", "kept", marks=pytest.mark.full),
    ],
)
def test_the_fuzzer_finds_the_mutant(
    tmp_path: Path, keys: Keys, chance: random.Random, mutant: str, shows: str
) -> None:
    with Edge(tmp_path / "edge", keys, settings=SETTINGS, mutant=mutant) as edge:
        wrong = fuzz(edge, chance, 120, answer_within_seconds=10.0)
        assert any(shows in each for each in wrong), wrong
