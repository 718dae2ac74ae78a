"""What a release gives to those who install it: each extra does what it is for, and what is not
installed is named together with what brings it."""

from __future__ import annotations

import json
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.distributions import ROOT, Distributions, Installed, install
from tests.support.kafka import Kafka

DEADLINE_SECONDS = 120
RECORDS = 5

AVRO = """
import json
import pyarrow as pa
from duolog.avro.encode.encoder import encoder_of
from duolog.avro.parse import parse_schema

enums = [{"type": "enum", "name": name, "symbols": [name.upper()]} for name in ("Red", "Disc")]
row = {"type": "record", "name": "Row", "fields": [{"name": "x", "type": ["null", *enums]}]}
rows = pa.array([{"x": "DISC"}, {"x": "RED"}, {"x": None}])
print(encoder_of(rows.type, parse_schema(json.dumps(row))).encode(rows).to_pylist())
"""

REGISTRY = """
import sys
from duolog.avro.registry.connection import RegistryConnection
from duolog.avro.registry.options import RegistryOptions

options = RegistryOptions.of({"schema.registry.url": sys.argv[1]})
registry = RegistryConnection(options.connection)
said = registry.ask("POST", "subjects/x-value/versions", "register", body={"schema": '"long"'})
print(said.status, registry.ask("GET", "subjects", "list subjects").content.decode())
"""

CLIENT = """
import sys
from duolog import Consumer, Publisher

with Publisher(url=sys.argv[1]) as publisher:
    publisher.publish_many("orders", [{"n": n} for n in range(5)])
with Consumer("orders", url=sys.argv[1], group="billing", start="earliest") as consumer:
    for record in consumer:
        print(record.value["n"], flush=True)
        if record.value["n"] == 4:
            break
"""

SPARK = """
import sys
from pyspark.sql import SparkSession

settings = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}
builder = SparkSession.builder.master("local[1]")
for setting in settings.items():
    builder = builder.config(*setting)
spark = builder.getOrCreate()
rows = spark.range(5).selectExpr("CAST(id AS STRING) AS value")
log = {"path": sys.argv[1]}
rows.write.format("duolog").mode("append").options(**log, topic="orders").save()
read = spark.read.format("duolog").options(**log).option("subscribe", "orders").load()
print(sorted(row.value.decode() for row in read.collect()))
"""


@pytest.fixture(scope="module")
def bare(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("bare") / "env", distributions.wheel)


@pytest.fixture(scope="module")
def bridge(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("bridge") / "env", distributions.wheel, "bridge")


@pytest.fixture(scope="module")
def url(bridge: Installed) -> Iterator[str]:
    """A host, as an installation serves it, with an empty topic."""
    bridge.said_by("topic", "create", "orders", "--log", "log")
    with bridge.serving("serve", "--log", "log", "--listen", "127.0.0.1:0") as told:
        yield told["url"]


def test_every_file_of_the_product_is_in_each_of_them(distributions: Distributions) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    with tarfile.open(distributions.sdist) as sdist:
        kept = {name.partition("/")[2] for name in sdist.getnames()}
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())
    parts = folders["tool"]["setuptools"]["package-dir"].values()
    here = {
        str(file.relative_to(ROOT))
        for part in parts
        for file in (ROOT / part).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert here <= kept
    assert {"LICENSE", "README.md", "pyproject.toml", "pyspark_duolog.py"} <= kept
    inner = {name if name.startswith("duolog/") else f"duolog/{name}" for name in here}
    assert inner | {"pyspark_duolog.py"} == inside
    assert distributions.py_files.read_bytes() == distributions.wheel.read_bytes()


def test_the_wheel_alone_makes_a_log_publishes_and_fetches(bare: Installed) -> None:
    check_a_log(bare)


def test_the_sdist_alone_does_the_same(distributions: Distributions, tmp_path: Path) -> None:
    check_a_log(install(tmp_path / "env", distributions.sdist))


def check_a_log(installed: Installed) -> None:
    assert installed.said_by("--version") == f"duolog {version('duolog')}\n"
    at = ("--log", "log")
    installed.said_by("topic", "create", "orders", *at)
    installed.said_by("publish", "orders", *at, said='{"value": {"n": 1}}\n')
    code = "import duolog, sys; log = duolog.open_log('log'); print(log.fetch('orders', 0, 0))"
    assert "n" in installed.ran(code)
    (line,) = installed.said_by("consume", "orders", "--from", "earliest", *at).splitlines()
    assert json.loads(line)["value"] == {"n": 1}
    installed.said_by("sql", "CREATE TOPIC paid", *at)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("serve", "--log", "missing"), "bridge"),
        (("registry", "--log", "missing", "--listen", "127.0.0.1:0"), "registry"),
        (("sql", "SELECT 1", "--log", "missing"), "sql"),
        (("audit", "--log", "missing", "--bootstrap-servers", "127.0.0.1:1"), "kafka"),
        (
            ("restore", "--from-kafka", "--log", "back", "--bootstrap-servers", "127.0.0.1:1"),
            "kafka",
        ),
        (("demo",), "spark,bridge,kafka"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_what_is_not_installed_is_named_with_its_extra(
    bare: Installed, arguments: tuple[str, ...], extra: str
) -> None:
    if not (bare.folder / "missing").exists():
        bare.said_by("topic", "create", "orders", "--log", "missing")
    done = bare.run(bare.duolog, *arguments, code=1)
    assert f"pip install 'duolog[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (bare.folder / "back").exists()


def test_a_client_that_is_not_installed_is_named_too(bare: Installed) -> None:
    done = bare.run(bare.python, "-c", "from duolog import Consumer", code=1)
    assert "pip install 'duolog[client]'" in done.stderr


def test_avro_writes_what_cannot_be_written_by_columns(
    distributions: Distributions, tmp_path: Path
) -> None:
    installed = install(tmp_path / "env", distributions.wheel, "avro")
    assert installed.ran(AVRO) == f"{[bytes([4, 0]), bytes([2, 0]), bytes([0])]}\n"


def test_registry_serves_and_asks_one(distributions: Distributions, tmp_path: Path) -> None:
    installed = install(tmp_path / "env", distributions.wheel, "registry")
    installed.said_by("topic", "create", "orders", "--log", "log")
    with installed.serving("registry", "--log", "log", "--listen", "127.0.0.1:0") as told:
        assert installed.ran(REGISTRY, told["registry"]) == '200 ["x-value"]\n'


def test_bridge_serves_sql_and_names_what_mirrors(bridge: Installed, url: str) -> None:
    assert "orders" in bridge.said_by("sql", "SELECT topic FROM system.topics", "--url", url)
    refused = bridge.run(
        bridge.duolog,
        *("serve", "--log", "other", "--listen", "127.0.0.1:0"),
        *("--bootstrap-servers", "127.0.0.1:1"),
        code=1,
    )
    assert "pip install 'duolog[kafka]'" in refused.stderr


def test_client_publishes_and_consumes(
    distributions: Distributions, tmp_path: Path, url: str
) -> None:
    installed = install(tmp_path / "env", distributions.wheel, "client")
    assert installed.ran(CLIENT, url).split() == ["0", "1", "2", "3", "4"]


def test_sql_selects(distributions: Distributions, tmp_path: Path) -> None:
    installed = install(tmp_path / "env", distributions.wheel, "sql")
    installed.said_by("topic", "create", "orders", "--log", "log")
    installed.said_by("publish", "orders", "--log", "log", said='{"value": {"n": 41}}\n')
    assert "42" in installed.said_by("sql", "SELECT n + 1 FROM orders", "--log", "log")


def test_spark_writes_and_reads(distributions: Distributions, tmp_path: Path) -> None:
    installed = install(tmp_path / "env", distributions.wheel, "spark")
    installed.said_by("topic", "create", "orders", "--log", "log")
    done = installed.run(installed.python, "-c", SPARK, installed.folder / "log")
    assert done.stdout == "['0', '1', '2', '3', '4']\n"
    assert "pandas" not in done.stderr  # Spark warns of versions that it does not fit


def test_all_mirrors_and_kafka_alone_audits(
    distributions: Distributions, tmp_path: Path, kafka: Kafka
) -> None:
    whole = install(tmp_path / "all", distributions.wheel, "all")
    auditor = install(tmp_path / "kafka", distributions.wheel, "kafka")
    topic = f"release-{kafka.new_group()}"
    at = ("--log", tmp_path / "log")
    whole.said_by("topic", "create", topic, *at)
    lines = "".join(f'{{"value": {number}}}\n' for number in range(RECORDS))
    whole.said_by("publish", topic, *at, said=lines)
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    with whole.serving("serve", *at, "--listen", "127.0.0.1:0", *servers):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while mirrored(whole, topic, at) < RECORDS:
            assert time.monotonic() < deadline
        report = json.loads(auditor.said_by("audit", *at, *servers, "--json"))
    assert report["equal"] is True
    assert sum(each["compared"] for each in report["partitions"]) == RECORDS


def mirrored(installed: Installed, topic: str, at: tuple[object, ...]) -> int:
    lines = installed.said_by("mirror", "status", *at, "--json").splitlines()
    told = [json.loads(line) for line in lines]
    return sum(each["mirrored_offset"] for each in told if each["topic"] == topic)
