"""How tests are shared out among processes (`pytest -n 2`, as `make test` runs them).

A file's tests stay in one process, since they share fixtures. So do all that share a Spark, which
takes seconds to start. What takes longest comes first, so that no process is left alone with it at
the end.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

SHARING_ONE_SPARK = ("tests/integration/test_spark_", "tests/drills/connector/")
_LONGEST_FIRST = (*SHARING_ONE_SPARK, "tests/drills/", "tests/integration/", "")


def group_of(nodeid: str) -> str:
    """The tests that one process runs, all of them."""
    file = nodeid.partition("::")[0]
    return next((group for group in SHARING_ONE_SPARK if file.startswith(group)), file)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = Counter(item.nodeid for item in items)
    if len(names) < len(items):  # pytest-xdist would run only one of them, and say nothing
        (name, count), *_ = names.most_common(1)
        raise pytest.UsageError(f"{count} tests are called {name}: give each a name of its own.")
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    return next(turn for turn, start in enumerate(_LONGEST_FIRST) if item.nodeid.startswith(start))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False  # by number, which says little of how long they take
    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = group_of
    return scheduling
