"""Two attempts of one task run at once, and both stage their parts.

A task of each batch is held in the middle of its rows until Spark starts a second attempt on
another host and that has staged its part; then the first one goes on and stages its own. Whichever
Spark takes, each event is there once, and nothing is left in the staging folder.

Mutant: all_that_is_staged_counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drills.connector.checker import staged_files, violations
from tests.drills.connector.driver import GO, HOLD, Driver, Report
from tests.drills.connector.streams import add_files, streams_of
from tests.support.spark_drill_cluster import spark_cluster

_BATCHES = 2
_HELD_AT_ROW = 3
_EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.files.maxPartitionBytes": "6k",  # a batch has several tasks
}


@pytest.fixture
def speculating(tmp_path: Path) -> Iterator[Driver]:
    with (
        spark_cluster(tmp_path / "cluster") as master,
        Driver(tmp_path / "driver", {**_EAGER, "spark.master": master}) as driver,
    ):
        yield driver


def doubled_tasks(driver: Driver, folder: Path, name: str) -> list[str]:
    """Let both attempts of a task in each batch stage; what is wrong."""
    folder.mkdir()
    (stream,) = streams_of(folder, name)
    add_files(folder / "files", _BATCHES)
    held: dict[tuple[int, int], Report] = {}  # by batch and attempt
    staged: dict[int, set[int]] = defaultdict(set)

    def decide(report: Report) -> str:
        if report.turn != 0 or report.attempt > 1:
            return GO
        which = (report.epoch, report.attempt)
        match report.place, report.attempt:
            case "task", 0:
                return f"ask {_HELD_AT_ROW}"
            case "row", 0:
                held[which] = report
                return HOLD
            case "staged", 1:
                staged[report.epoch].add(1)
                held[which] = report
                held[report.epoch, 0].answer(GO)
                return HOLD
            case "staged", 0:
                staged[report.epoch].add(0)
                if (second := held.get((report.epoch, 1))) is not None:
                    second.answer(GO)
        return GO

    error = driver.run([stream], decide)[name]
    wrong = [] if error is None else [error]
    if dict(staged) != {epoch: {0, 1} for epoch in range(_BATCHES)}:
        wrong.append(f"not every batch had two attempts that staged: {dict(staged)}")
    return wrong + staged_files(stream.log) + violations(stream, _BATCHES)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_two_attempts_of_a_task_double_nothing_but_for_the_mutant(
    speculating: Driver, tmp_path: Path
) -> None:
    assert doubled_tasks(speculating, tmp_path / "source", "source") == []
    assert doubled_tasks(speculating, tmp_path / "function", "function") == []
    mutant = "source+all_that_is_staged_counts"
    wrong = doubled_tasks(speculating, tmp_path / "mutant", mutant)
    assert any(" events, not " in one for one in wrong)
