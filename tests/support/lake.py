"""Spark with Delta and Iceberg: their jars, fetched once, and the settings that they need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from duolog.jars import fetch_jars

DELTA_VERSION = "4.1.0"
ICEBERG_VERSION = "1.11.0"


def delta_configuration() -> Mapping[str, str]:
    """For a session whose own catalogue knows Delta's tables."""
    jars = [
        *fetch_jars("io.delta", "delta-spark_4.1_2.13", DELTA_VERSION, transitive=False),
        *fetch_jars("io.delta", "delta-storage", DELTA_VERSION, transitive=False),
    ]
    return {
        "spark.jars": _joined(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Fewer tasks where Delta reads its own log: these tables have a few files.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def iceberg_configuration(warehouse: Path) -> Mapping[str, str]:
    """For a session with a catalogue `lake` of Iceberg's tables in a folder."""
    jars = fetch_jars(
        "org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", ICEBERG_VERSION, transitive=False
    )
    return {
        "spark.jars": _joined(jars),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }


def _joined(jars: list[Path]) -> str:
    return ",".join(str(jar) for jar in jars)
