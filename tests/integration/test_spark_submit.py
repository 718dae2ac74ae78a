"""What users run: the examples, by spark-submit, where only PySpark and duolog.zip are."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

import duolog
from duolog.log.model import Format, Op, Route, TopicSettings
from tests.support.bare_python import bare_python, spark_submit
from tests.support.host_server import TOKEN, Host
from tests.support.lake import lake_jars
from tests.support.spark_doors import values_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def zip_file() -> Path:
    """As `make dist` makes it."""
    subprocess.run(["make", "dist"], cwd=ROOT, check=True, capture_output=True)
    return ROOT / "dist" / "duolog.zip"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has what the driver needs for a log on its own disk; tasks need none of it."""
    return bare_python(tmp_path_factory.mktemp("python") / "bare", more=["rocksdict"])


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a log and orders."""
    with duolog.open_log(tmp_path / "shop.log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
    (tmp_path / "orders").mkdir()
    return tmp_path


def add_orders(shop: Path, ids: range) -> list[str]:
    """A file of orders, and the values that come of it."""
    rows: list[dict[str, Any]] = [
        {"id": number, "customer": f"c{number % 3}", "amount": number / 2} for number in ids
    ]
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    (shop / "orders" / f"{ids.start}.json").write_text("\n".join(lines))
    return lines


def ran(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, _said(done)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """Its output without Java's traces."""
    lines = f"{done.stdout}\n{done.stderr}".splitlines()
    return "\n".join(line for line in lines if not line.startswith("\tat "))


def test_the_zip_has_every_module(zip_file: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.py", "duolog/py.typed"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    beside = {"tests", "bench", "examples"}
    wanted = {
        file if file.startswith(("duolog/", "pyspark_")) else f"duolog/{file}"
        for file in tracked
        if file.split("/")[0] not in beside
    }
    assert wanted <= set(zipfile.ZipFile(zip_file).namelist())


def test_a_job_with_kafkas_columns_and_one_that_reads_it_back(
    zip_file: Path, python: Path, shop: Path
) -> None:
    expected: list[str] = []
    for ids in (range(10), range(10, 15)):
        expected += add_orders(shop, ids)
        ran(submit(python, zip_file, shop, "orders_to_log.py"))
        assert values_in(str(shop / "shop.log"), "orders") == sorted(expected)
        ran(submit(python, zip_file, shop, "orders_to_parquet.py"))
        files = parquet.read_table(shop / "orders.parquet").to_pylist()
        assert sorted(row["value"] for row in files) == sorted(expected)
        assert len({(row["partition"], row["offset"]) for row in files}) == len(expected)
    with duolog.open_log(shop / "shop.log") as log:
        acked = sum(position.position for position in log.group_positions("parquet", "orders"))
    assert acked == len(expected)


def test_a_delta_table_and_its_changes(
    spark: SparkSession, zip_file: Path, python: Path, shop: Path
) -> None:
    with duolog.open_log(shop / "shop.log") as log:
        log.create_topic("items")
        log.add_route("items", Route("shop.items", frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})))
    jars = ("--jars", ",".join(map(str, lake_jars())), *_delta_settings())
    table = f"delta.`{shop / 'items'}`"
    for statements in (
        (
            f"CREATE TABLE {table} (id INT, name STRING) USING delta "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
            f"INSERT INTO {table} VALUES (1, 'tea'), (2, 'cups')",
        ),
        (
            f"UPDATE {table} SET name = 'pot' WHERE id = 2",
            f"DELETE FROM {table} WHERE id = 1",
        ),
    ):
        for statement in statements:
            spark.sql(statement)
        ran(submit(python, zip_file, shop, "delta_to_log.py", *jars))
    with duolog.open_log(shop / "shop.log") as log:
        ops = [record.op for record in log.fetch("items", 0, 0)]
    assert ops[:2] == [Op.READ, Op.READ]
    assert sorted(ops[2:]) == sorted([Op.UPDATE, Op.DELETE])


def test_a_cluster_without_a_shared_disk_needs_pyspark_alone(
    zip_file: Path, tmp_path: Path
) -> None:
    python = bare_python(tmp_path / "bare")
    with Host(tmp_path / "log") as host:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.create_topic("items", TopicSettings(value_format=Format.AVRO))
        host.log.add_route("items", Route("shop.items", frozenset({Op.INSERT})))
        job = ("--py-files", str(zip_file), str(ROOT / "tests" / "support" / "remote_job.py"))
        done = spark_submit(python, *job, host.url, TOKEN, folder=tmp_path, python_path=zip_file)
        ran(done)
        (found,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
        assert json.loads(found.removeprefix("found ")) == {
            "orders": 20_000,
            "names": ["item 0", "item 1"],
            "items": 100,
        }
    assert list((tmp_path / "log" / "staging").rglob("*.part")) == []


def submit(
    python: Path, zip_file: Path, shop: Path, example: str, *more: str
) -> subprocess.CompletedProcess[str]:
    job = (*more, "--py-files", str(zip_file), str(EXAMPLES / example), str(shop))
    return spark_submit(python, *job, folder=shop, python_path=zip_file)


def _delta_settings() -> list[str]:
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
