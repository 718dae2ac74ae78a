"""Spark reading a log against Spark reading Kafka: the same records, a real broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench.children import asked, child
from bench.figures import Report, at_least_of_reference
from bench.rounds import figure, take_turns
from bench.scratch import Scratch
from bench.spark_reads import spark_reads
from bench.spark_session import broker, kafka_jars


@dataclass(frozen=True, slots=True)
class SparkSourceBenchmark:
    """All records of a topic, in a batch read."""

    name: ClassVar[str] = "spark-source"
    by_itself: ClassVar[bool] = True

    rows: int = 3_000_000
    rounds: int = 5

    @property
    def disk_bytes(self) -> int:
        return self.rows * 200 * 2

    def run(self, scratch: Scratch) -> Report:
        with (
            scratch.folder("spark") as folder,
            broker(folder) as kafka,
            child(spark_reads, folder, kafka_jars(), kafka, self.rows) as spark,
        ):
            spark.hear()
            names = ("duolog", "kafka")
            samples = take_turns(self.rounds, {name: asked(spark, name) for name in names})
        return Report(
            self.name,
            f"{self.rows:,} records of 100 B in 4 partitions, read as a batch with all columns "
            "and dropped. Two cores for Spark, its Python processes and the broker.",
            "Spark's Kafka source with its defaults, from one real broker.",
            (
                figure(
                    'format("duolog")',
                    "/s",
                    samples["duolog"],
                    samples["kafka"],
                    at_least_of_reference(3),
                ),
            ),
        )
