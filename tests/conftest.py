"""`--full` runs the long form of the drills too. Fixtures for all are in tests/support."""

from __future__ import annotations

from importlib.metadata import version

import pytest

pytest_plugins = ["tests.support.kafka"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run the long form of every drill")


def pytest_report_header() -> str:
    return f"pyspark {version('pyspark')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    long_forms = [item for item in items if item.get_closest_marker("full")]
    if long_forms:
        config.hook.pytest_deselected(items=long_forms)
        items[:] = [item for item in items if item not in long_forms]
