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
from duolog.log.model import Envelope, Format, Op, Route, TopicSettings
from duolog.reach import reach
from tests.integration.client_host import serving
from tests.support.bare_python import bare_python, spark_submit
from tests.support.delta_stories import told_by_delta, told_in_kafka
from tests.support.distributions import Distributions
from tests.support.host_server import TOKEN, Host
from tests.support.kafka import Kafka
from tests.support.lake import lake_jars
from tests.support.mirror_runner import read_all, until
from tests.support.spark_doors import values_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def zip_file(distributions: Distributions) -> Path:
    """As `make dist` makes it."""
    return distributions.py_files


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
    beside = {"tests", "bench", "examples", "docker", "docs"}
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


@pytest.mark.timeout(600)  # three jobs, each with a Spark of its own
def test_a_delta_table_comes_to_kafka_each_change_once_and_in_order(
    spark: SparkSession, kafka: Kafka, zip_file: Path, python: Path, tmp_path: Path
) -> None:
    """By path, then by url; the host is killed, and a batch that it had is written again."""
    topic = kafka.new_group().replace("group", "items")
    with duolog.open_log(tmp_path / "shop.log") as log:
        log.create_topic(
            topic,
            TopicSettings(partitions=2, envelope=Envelope.DEBEZIUM, tombstones_on_delete=False),
        )
        log.add_route(topic, Route("shop.items", frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})))
    table = f"delta.`{tmp_path / 'items'}`"

    def follow(*url: str) -> None:
        jars = ("--jars", ",".join(map(str, lake_jars())), *_delta_settings())
        ran(submit(python, zip_file, tmp_path, "delta_to_log.py", *jars, arguments=url))

    def change(*statements: str) -> None:
        for statement in statements:
            spark.sql(statement.format(t=table))

    change(
        "CREATE TABLE {t} (id INT, name STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO {t} SELECT id, CONCAT('item ', id) FROM range(20)",
    )
    follow()
    serve = ("--bootstrap-servers", kafka.bootstrap_servers)
    with serving(tmp_path, *serve, log="shop.log") as url:
        change(
            "UPDATE {t} SET name = 'tea' WHERE id < 5",
            "DELETE FROM {t} WHERE id IN (3, 7)",
            "UPDATE {t} SET name = 'pot' WHERE id = 4",
        )
        follow(url)
    commits = tmp_path / "items.checkpoint" / "commits"
    last = max((file for file in commits.iterdir() if file.name.isdecimal()), key=_number)
    for file in commits.glob(f"*{last.name}*"):  # and its checksum
        file.unlink()  # as if Spark had been killed behind our commit and before its own
    with serving(tmp_path, *serve, log="shop.log") as url:
        change("INSERT INTO {t} VALUES (3, 'cups'), (50, 'rice')")
        follow(url)
        assert last.exists()
        until(lambda: _is_mirrored(tmp_path / "shop.log", topic))
    found = [read_all(kafka.bootstrap_servers, topic, partition) for partition in range(2)]
    assert told_in_kafka(found) == told_by_delta(spark, str(tmp_path / "items"), followed_from=1)
    for records in found:
        assert [record.offset for record in records] == list(range(len(records)))


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
    python: Path,
    zip_file: Path,
    shop: Path,
    example: str,
    *more: str,
    arguments: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    job = (*more, "--py-files", str(zip_file), str(EXAMPLES / example), str(shop), *arguments)
    return spark_submit(python, *job, folder=shop, python_path=zip_file)


def _is_mirrored(path: Path, topic: str) -> bool:
    """Whether Kafka has all that the log has."""
    with reach(path) as log:
        heads = {head.partition: head.next_offset for head in log.offsets(topic)}
        return heads == {known.partition: known.next_log_offset for known in log.mirrors(topic)}


def _number(file: Path) -> int:
    return int(file.name)


def _delta_settings() -> list[str]:
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
