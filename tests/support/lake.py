"""Spark with Delta's and Iceberg's tables: their jars, fetched once, and the settings they need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from duolog.jars import fetch_jars

_JARS = (
    ("io.delta", "delta-spark_4.1_2.13", "4.1.0"),
    ("io.delta", "delta-storage", "4.1.0"),
    ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),
)


def lake_jars() -> list[Path]:
    """The jars of both."""
    return [jar for named in _JARS for jar in fetch_jars(*named, transitive=False)]


def lake_configuration(folder: Path) -> Mapping[str, str]:
    """Delta's tables in Spark's own catalogue, Iceberg's in a catalogue `lake`."""
    return {
        "spark.sql.extensions": (
            "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        # Delta reads its own log in 50 tasks otherwise; these tables have a few files.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
