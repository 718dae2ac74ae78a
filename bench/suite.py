"""All benchmarks, in the order in which they run."""

from __future__ import annotations

from typing import ClassVar, Protocol

from bench.append import AppendBenchmark
from bench.avro_decode import AvroDecodeBenchmark
from bench.avro_encode import AvroEncodeBenchmark
from bench.fetch import FetchBenchmark
from bench.figures import Report
from bench.flat import FlatBenchmark
from bench.hashes import HashBenchmark
from bench.joint import JointBenchmark
from bench.memory import MemoryBenchmark
from bench.mirror import MirrorBenchmark
from bench.mirror_groups import MirrorGroupsBenchmark
from bench.publish import PublishBenchmark
from bench.routing import RoutingBenchmark
from bench.scratch import Scratch
from bench.serve_bulk import ServeBulkBenchmark
from bench.serve_consume import ServeConsumeBenchmark
from bench.serve_idle import ServeIdleBenchmark
from bench.serve_polls import ServePollsBenchmark
from bench.serve_publish import ServePublishBenchmark
from bench.slices import SlicesBenchmark
from bench.spark_sink import SparkSinkBenchmark
from bench.spark_source import SparkSourceBenchmark


class Benchmark(Protocol):
    """One benchmark with its sizes."""

    name: ClassVar[str]
    by_itself: ClassVar[bool]  # True: takes minutes and much disk, so only when asked for

    @property
    def disk_bytes(self) -> int:
        """About how much room it takes while it runs."""

    def run(self, scratch: Scratch) -> Report: ...


def all_benchmarks(flat_records: int) -> dict[str, Benchmark]:
    """Every benchmark in its full size, by name."""
    benchmarks: tuple[Benchmark, ...] = (
        AppendBenchmark(),
        MemoryBenchmark(),
        PublishBenchmark(),
        FetchBenchmark(),
        SlicesBenchmark(),
        RoutingBenchmark(),
        HashBenchmark(),
        AvroEncodeBenchmark(),
        AvroDecodeBenchmark(),
        ServePublishBenchmark(),
        ServeBulkBenchmark(),
        ServeConsumeBenchmark(),
        ServePollsBenchmark(),
        ServeIdleBenchmark(),
        SparkSinkBenchmark(),
        SparkSourceBenchmark(),
        MirrorBenchmark(),
        MirrorGroupsBenchmark(),
        JointBenchmark(),
        FlatBenchmark(records=flat_records),
    )
    return {benchmark.name: benchmark for benchmark in benchmarks}
