"""Every benchmark runs, in a tiny form, and says what it promises. No figure is judged here."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench import results
from bench.append import AppendBenchmark
from bench.avro_decode import AvroDecodeBenchmark
from bench.avro_encode import AvroEncodeBenchmark
from bench.fetch import FetchBenchmark
from bench.figures import Figure, Report, at_least, at_least_of_reference, at_most
from bench.flat import FlatBenchmark
from bench.hashes import HashBenchmark
from bench.joint import JointBenchmark
from bench.machine import machine
from bench.memory import MemoryBenchmark
from bench.mirror import MirrorBenchmark
from bench.mirror_groups import MirrorGroupsBenchmark
from bench.orders import RECORD_BYTES, orders
from bench.publish import PublishBenchmark
from bench.rounds import percentile, take_turns
from bench.routing import RoutingBenchmark
from bench.scratch import Scratch, TooLittleDisk, scratch_in
from bench.serve_bulk import ServeBulkBenchmark
from bench.serve_consume import ServeConsumeBenchmark
from bench.serve_idle import ServeIdleBenchmark
from bench.serve_polls import ServePollsBenchmark
from bench.serve_publish import ServePublishBenchmark
from bench.shown import markdown, print_report
from bench.slices import SlicesBenchmark
from bench.spark_sink import SparkSinkBenchmark
from bench.spark_source import SparkSourceBenchmark
from bench.suite import Benchmark, all_benchmarks

TINY: dict[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        AppendBenchmark(records=400, partitions=(1, 2), rounds=1),
        MemoryBenchmark(epoch_bytes=100_000, records_per_part=500),
        PublishBenchmark(
            publishers=3, paced_per_second=300, seconds=0.1, rounds=1, beside_records=400
        ),
        FetchBenchmark(records=2000, point_fetches=5, rounds=1),
        SlicesBenchmark(records=2000, partitions=2, many_tasks=20, published=100, rounds=1),
        RoutingBenchmark(rows=200, rounds=1),
        HashBenchmark(records=200, scalar_records=50, rounds=1),
        AvroEncodeBenchmark(rows=200, batches=1, fastavro_rows=50, rounds=1, with_spark=False),
        AvroDecodeBenchmark(rows=50, rounds=1, memory_batches=2),
        ServePublishBenchmark(
            publishers=3, paced_per_second=200, seconds=0.2, rounds=1, drained_records=400
        ),
        ServeBulkBenchmark(publishers=2, records=5, seconds=0.2, rounds=1, calls=2),
        ServeConsumeBenchmark(records=3000, json_records=200, rounds=1, with_kafka=False),
        ServePollsBenchmark(wakes=3, rounds=1, polls=20, seconds=0.1),
        ServeIdleBenchmark(topics=3, partitions=2, seconds=0.1),
        SparkSinkBenchmark(
            rows=400, small_rows=20, large_rows=1000, rounds=1, trigger_rounds=1, triggers=1
        ),
        SparkSourceBenchmark(rows=400, rounds=1),
        MirrorGroupsBenchmark(groups=5, idle_seconds=0.5),
        MirrorBenchmark(records=8000, rounds=1, paced_per_second=200, paced_records=40, acks=5),
        JointBenchmark(handovers=1, members=3, idle_seconds=0.1, records=2000, rounds=1),
        FlatBenchmark(
            records=3000,
            small_records=200,
            small_logs=2,
            epoch_records=1000,
            point_fetches=3,
            rounds=1,
        ),
    )
}

TARGETS = {
    "append": {"≥ 0.7 x"},
    "memory": {"≤ 300 MiB"},
    "publish": {"≤ 1 ms", "≤ 5 ms", "≥ 20,000 /s"},
    "fetch": {"≥ 1 GB/s", "≤ 2 ms"},
    "slices": {"≤ 1.5 x"},
    "spark-sink": {"≥ 1.5 x", "≤ 1.5 x", "≤ 1.2 x"},
    "spark-source": {"≥ 3 x"},
    "mirror": {"≥ 2 x", "≥ 4 x", "≥ 8 x", "≥ 1.3 x", "≤ 300 MiB", "≤ 100 ms", "≤ 200 ms"},
    "mirror-groups": {"≤ 1 % of a core"},
    "joint": {"≤ 3 s", "≤ 1 s", "≤ 300 MiB", "≤ 10 % of a core", "≥ 0.9 x"},
    "serve-publish": {"≤ 5 ms"},
    "serve-bulk": {"≥ 60,000 /s"},
    "serve-consume": {"≥ 50,000 /s"},
    "serve-idle": {"≤ 1 % of a core", "≤ 0 syncs"},
    "serve-polls": {"≤ 10 ms", "≤ 5 % of a core", "≤ 150 MiB"},
    "flat": {"≤ 1.2 x", "≤ 1 s"},
    "routing": set(),
    "hash": set(),
    "avro-encode": {"≥ 8 x", "≤ 3 x"},
    "avro-decode": {"≥ 5 x", "≤ 3 x"},
}


_MAY_BE_NOTHING = {"MiB", "% of a core", "syncs", "runs"}  # in so short a time

# A broker for each of them, and Spark: more than a minute, which `make drills` has.
_BY_BROKER = {"spark-sink", "spark-source", "mirror", "mirror-groups", "joint"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name in _BY_BROKER else name for name in TINY],
)
def test_benchmark_measures_and_cleans_up(name: str, tmp_path: Path) -> None:
    report = TINY[name].run(Scratch(tmp_path))

    assert report.benchmark == name
    assert all(figure.value > 0 for figure in report.figures if figure.unit not in _MAY_BE_NOTHING)
    assert {figure.target_text for figure in report.figures} - {""} == TARGETS[name]
    assert len({figure.name for figure in report.figures}) == len(report.figures)
    assert list(tmp_path.iterdir()) == []


def test_every_benchmark_has_a_tiny_form_here() -> None:
    assert set(all_benchmarks(100)) == set(TINY)
    assert [name for name, b in all_benchmarks(100).items() if b.by_itself] == [
        "spark-sink",
        "spark-source",
        "mirror",
        "mirror-groups",
        "joint",
        "flat",
    ]


def test_records_have_the_size_that_is_said() -> None:
    records = orders(10)
    sizes = [
        len(key) + len(value)
        for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True)
    ]
    assert sizes == [RECORD_BYTES] * 10


REPORT = Report(
    "sample",
    "What was measured.",
    "what it is measured against.",
    (
        Figure(
            "a long name that has to be broken somewhere", 1234.5, "MB/s", 2000, None, 1000, 1500
        ),
        Figure("reached", 0.71, "MB/s", 1.0, at_least_of_reference(0.7)),
        Figure("missed", 2.4, "ms", target=at_most(2)),
    ),
)


def test_targets_are_judged_by_value_or_by_ratio() -> None:
    assert [figure.reached for figure in REPORT.figures] == [None, True, False]
    assert not Figure("", 0.69, "MB/s", 1.0, at_least_of_reference(0.7)).reached
    assert Figure("", 20_000, "/s", target=at_least(20_000)).reached


def test_tables_fit_into_80_columns() -> None:
    console = Console(width=80, record=True, file=StringIO())
    print_report(console, REPORT)
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert "1,234 MB/s" in shown
    assert "≤ 2 ms" in shown


def test_results_are_kept_and_shown_as_markdown(tmp_path: Path) -> None:
    kept = tmp_path / "deep" / "bench.json"
    results.save(kept, machine(), "then", REPORT)
    results.save(kept, machine(), "now", REPORT)

    assert results.load(kept) == (machine(), [("now", REPORT)])
    page = markdown(*results.load(kept))
    assert "| reached | 0.71 MB/s | 1.00 MB/s | 0.71 | ≥ 0.7 x | yes |" in page
    assert "Measured now." in page


def test_results_of_another_machine_are_dropped(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    results.save(kept, {"cpu": "another"}, "then", Report("old", "", "", ()))
    results.save(kept, machine(), "now", REPORT)
    assert [report.benchmark for _, report in results.load(kept)[1]] == ["sample"]


def test_json_has_one_object_a_figure() -> None:
    lines = [json.loads(line) for line in results.lines_of(machine(), "now", REPORT)]
    assert [line["measured"] for line in lines] == [1234.5, 0.71, 2.4]
    assert {"name", "reference", "ratio", "target", "reached", "machine", "at"} <= lines[0].keys()


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def run(name: str) -> float:
        order.append(name)
        return 1.0

    assert take_turns(2, {"a": lambda: run("a"), "b": lambda: run("b")}) == {
        "a": [1, 1],
        "b": [1, 1],
    }
    assert order == ["a", "b", "b", "a"]


def test_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([5, 1, 4, 2, 3], 0.5) == 3
    assert percentile([1, 2], 0.99) == 2


def test_too_little_disk_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with scratch_in(tmp_path) as scratch, pytest.raises(TooLittleDisk, match="--dir"):
        scratch.check_room(1 << 60)
    assert list(tmp_path.iterdir()) == []
