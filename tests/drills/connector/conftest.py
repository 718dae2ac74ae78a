"""One Spark driver for all drills in which the driver lives on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drills.connector.driver import Driver


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver on two cores, in which a task may fail three times."""
    folder = tmp_path_factory.mktemp("spark") / "driver"
    with Driver(folder, {"spark.master": "local[2,4]"}) as driver:
        yield driver
