"""Spark into a log against Spark into Kafka: the same rows, the same run, a real broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench.children import Child, asked, child
from bench.figures import Figure, Report, Target, at_least_of_reference, at_most_of_reference
from bench.rounds import Samples, figure, take_turns
from bench.scratch import Scratch
from bench.spark_session import broker, kafka_jars
from bench.spark_writes import spark_writes

_WAYS = ("drained", "function", "data source", "kafka")
_SHOWN = {"strings": "strings", "columns": "5 columns to Avro"}


@dataclass(frozen=True, slots=True)
class SparkSinkBenchmark:
    """Rates of large batches and triggers of small ones, through each of the sink's doors."""

    name: ClassVar[str] = "spark-sink"
    by_itself: ClassVar[bool] = True

    rows: int = 3_000_000
    small_rows: int = 1000
    large_rows: int = 5_000_000
    rounds: int = 5
    trigger_rounds: int = 2
    triggers: int = 12

    @property
    def disk_bytes(self) -> int:
        return self.rows * 200 * (self.rounds + 1) * 4

    def run(self, scratch: Scratch) -> Report:
        with (
            scratch.folder("spark") as folder,
            broker(folder) as kafka,
            child(
                spark_writes,
                folder,
                kafka_jars(),
                kafka,
                self.rows,
                self.small_rows,
                self.triggers,
            ) as spark,
        ):
            spark.hear()
            rates = take_turns(
                self.rounds,
                {
                    f"{kind} {way}": asked(spark, f"{kind} {way}")
                    for kind in _SHOWN
                    for way in _WAYS
                },
            )
            ways = ("noop", *_WAYS[1:])
            peaks = [
                _peak_mebibytes(spark, rows) for rows in (self.large_rows // 100, self.large_rows)
            ]
            triggers = take_turns(
                self.trigger_rounds, {way: asked(spark, f"trigger {way}") for way in ways}
            )
        return Report(
            self.name,
            f"{self.rows:,} rows of Parquet files, two strings of together 100 B or 5 typed "
            f"columns, in batch writes; and triggers of a stream with {self.small_rows:,} rows "
            "each. Two cores for Spark, its Python processes, the log and the broker. Rows go to "
            "Python in Arrow batches of 65,536 rows, however many bytes.",
            "Spark's Kafka sink (linger.ms 5, batch.size 262144, lz4; behind to_avro for the "
            "columns) into one real broker. Drained: rows handed to Python and dropped there, "
            "which is the most that a sink in Python could reach. Memory: a hundredth of the rows.",
            (
                *_rate_figures(rates),
                *_trigger_figures(triggers),
                Figure(
                    f"driver's Python, a batch of {self.large_rows // 10_000:,} MB",
                    peaks[1],
                    "MiB",
                    peaks[0],
                    at_most_of_reference(1.2),
                ),
            ),
        )


def _peak_mebibytes(spark: Child, rows: int) -> float:
    spark.tell(rows)
    peak = spark.peak_rss_bytes() / (1 << 20)
    spark.hear()
    return peak


def _rate_figures(samples: Samples) -> list[Figure]:
    figures = []
    for kind, shown in _SHOWN.items():
        for way, name, target in (
            ("function", "write_batch", at_least_of_reference(1.5)),
            ("data source", 'format("duolog")', at_least_of_reference(1.5)),
            ("drained", "drained", None),
        ):
            figures.append(
                figure(
                    f"{shown}, {name}",
                    "/s",
                    samples[f"{kind} {way}"],
                    samples[f"{kind} kafka"],
                    target,
                )
            )
    return figures


def _trigger_figures(samples: Samples) -> list[Figure]:
    fast: Target = at_most_of_reference(1.5)
    return [
        figure("trigger, write_stream", "ms", samples["function"], samples["kafka"], fast),
        figure('trigger, format("duolog")', "ms", samples["data source"], samples["kafka"]),
        figure("trigger, noop sink", "ms", samples["noop"], samples["kafka"]),
    ]
