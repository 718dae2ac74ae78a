"""`--full` runs the long form of the drills too. Fixtures for all are in tests/support."""

from __future__ import annotations

import os
import random
from importlib.metadata import version

import hypothesis
import pytest

pytest_plugins = [
    "tests.support.distributions",
    "tests.support.kafka",
    "tests.support.secured",
    "tests.support.workers",
]

_SEED = "DUOLOG_DRILL_SEED"

hypothesis.settings.register_profile("duolog", deadline=None)  # timings are never assertions
hypothesis.settings.load_profile("duolog")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the long form of every drill")


def pytest_configure() -> None:
    # In the environment, so that all processes of a run have the same one.
    os.environ.setdefault(_SEED, str(random.SystemRandom().randrange(10**9)))


def pytest_report_header() -> list[str]:
    return [f"pyspark {version('pyspark')}", f"drills: {_SEED}={os.environ[_SEED]}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    long_forms = [item for item in items if item.get_closest_marker("full")]
    if long_forms:
        config.hook.pytest_deselected(items=long_forms)
        items[:] = [item for item in items if item not in long_forms]
