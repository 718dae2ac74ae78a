"""A commit raises, before or after its append, and Spark aborts the batch.

What was appended stays, what was not is written by the next run, and nothing is there twice. Nor
does it matter when the abort comes so late that another driver runs the same batch already.

Mutants: commit_answers_first, abort_clears_the_epoch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.drills.connector.checker import staged_files, violations
from tests.drills.connector.driver import GO, HOLD, Driver, Report
from tests.drills.connector.streams import add_files, streams_of

_BATCHES = 2
_ON_ORDER = "OnOrder"


def failing_commits(driver: Driver, folder: Path, place: str, *names: str) -> dict[str, list[str]]:
    """Let the first commit of each batch fail at this place; what is wrong by stream."""
    streams = streams_of(folder, *names)
    add_files(folder / "files", _BATCHES)
    failed: set[tuple[str, int]] = set()
    wrong: dict[str, list[str]] = {name: [] for name in names}

    def decide(report: Report) -> str:
        commit = (report.stream, report.epoch)
        if report.place != place or commit in failed:
            return GO
        failed.add(commit)
        return "fail"

    for number in range(_BATCHES + 1):
        for name, error in driver.run(streams, decide).items():
            if number < _BATCHES and _ON_ORDER not in (error or ""):
                wrong[name].append(f"run {number}: the commit did not fail: {error}")
            if number == _BATCHES and error is not None:
                wrong[name].append(error)
    for stream in streams:
        wrong[stream.name] += staged_files(stream.log) + violations(stream, _BATCHES)
    return wrong


def late_abort(driver: Driver, folder: Path, name: str) -> list[str]:
    """A driver's commit fails; while it hesitates to abort, another one commits the same batch."""
    (first,) = streams_of(folder, name)
    second = replace(first, checkpoint=first.checkpoint.with_suffix(".second"))
    add_files(folder / "files", _BATCHES)
    wrong: list[str] = []
    aborting: list[Report] = []
    committing: list[Report] = []
    ended: dict[str, str | None] = {}

    def decide(report: Report) -> str:
        if report.place == "before_append" and not aborting:
            return "fail"
        if report.place == "before_abort" and not aborting:
            aborting.append(report)
            driver.start(second)
            return HOLD
        if report.place == "before_append" and not committing:
            committing.append(report)
            if not staged_files(first.log):
                wrong.append("nothing was staged: the drill shows nothing")
            aborting[0].answer(GO)
            return HOLD
        if report.place == "aborted" and committing:
            committing[0].answer(GO)
        return GO

    driver.start(first)
    while len(ended) < 2:
        report = driver.next_report()
        assert report is not None, driver
        driver.obey(report, decide(report))
        if report.place == "ended":
            ended[report.checkpoint] = report.error
    if _ON_ORDER not in (ended[str(first.checkpoint)] or ""):
        wrong.append(f"the first one ended with {ended[str(first.checkpoint)]}")
    if (error := ended[str(second.checkpoint)]) is not None:
        wrong.append(f"the second one ended with {error}")
    return wrong + staged_files(first.log) + violations(first, _BATCHES)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "place", ["before_append", "appended", pytest.param("committed", marks=pytest.mark.full)]
)
def test_commits_that_fail_lose_and_double_nothing(
    driver: Driver, tmp_path: Path, place: str
) -> None:
    wrong = failing_commits(driver, tmp_path, place, "source", "function")
    assert wrong == {"source": [], "function": []}


def test_failing_commits_find_the_mutant_commit_answers_first(
    driver: Driver, tmp_path: Path
) -> None:
    name = "source+commit_answers_first"
    assert failing_commits(driver, tmp_path, "before_append", name)[name]


@pytest.mark.parametrize("door", ["source", "function"])
def test_an_abort_that_comes_late_harms_nobody(driver: Driver, tmp_path: Path, door: str) -> None:
    assert late_abort(driver, tmp_path, door) == []


def test_late_aborts_find_the_mutant_abort_clears_the_epoch(driver: Driver, tmp_path: Path) -> None:
    wrong = late_abort(driver, tmp_path, "source+abort_clears_the_epoch")
    assert any("DamagedPart" in one for one in wrong)
