"""What integration tests share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from duolog.jars import fetch_jars
from tests.support.lake import lake_configuration, lake_jars
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_WITH_JARS = "4.1.1"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for the whole run: starting it takes seconds. It has Avro, Delta and Iceberg."""
    folder = tmp_path_factory.mktemp("spark")
    if version("pyspark") != _WITH_JARS:  # the oldest one, for what needs no jars
        with spark_session(folder) as session:
            yield session
        return
    avro = fetch_jars("org.apache.spark", "spark-avro_2.13", _WITH_JARS, transitive=False)
    jars = {"spark.jars": ",".join(map(str, [*avro, *lake_jars()]))}
    with spark_session(folder, {**lake_configuration(folder), **jars}) as session:
        yield session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves the sockets that it collected rows over to Python's garbage collector."""
    for item in items:
        if {"spark", "lake"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
