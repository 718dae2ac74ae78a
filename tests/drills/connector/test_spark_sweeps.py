"""A batch that is in the log already is run again, and another process opens the log meanwhile.

Whoever opens a log removes what is staged for epochs that are through. A driver that repeats its
last epoch, since it was never told that it had been committed, must not miss anything of it.

Mutant: opening sweeps the last epoch too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duolog.log import staging
from duolog.log.embedded import open_log
from tests.drills.connector.checker import staged_files, violations
from tests.drills.connector.driver import GO, Driver, Report
from tests.drills.connector.streams import add_files, streams_of

_BATCHES = 2


def repeated_beside_others(driver: Driver, folder: Path, place: str, name: str) -> list[str]:
    """Lose the answer to a commit, repeat the batch, and open the log at this place of it."""
    (stream,) = streams_of(folder, name)
    add_files(folder / "files", _BATCHES)
    driver.run([stream], lambda report: "fail" if report.place == "committed" else GO)
    openings = 0

    def decide(report: Report) -> str:
        nonlocal openings
        if report.place == "task" and place == "row":
            return "ask 5"
        if report.place == place:
            open_log(stream.log, create=False).close()
            openings += 1
        return GO

    error = driver.run([stream], decide)[name]
    wrong = [] if error is None else [error]
    if not openings:
        wrong.append("the log was not opened: this shows nothing")
    return wrong + staged_files(stream.log) + violations(stream, _BATCHES)


@pytest.mark.parametrize("place", ["row", "before_commit"])
@pytest.mark.parametrize("door", ["source", "function"])
def test_a_repeated_batch_keeps_what_it_has_staged(
    driver: Driver, tmp_path: Path, door: str, place: str
) -> None:
    assert repeated_beside_others(driver, tmp_path, place, door) == []


def test_repeated_batches_find_the_mutant_that_sweeps_the_last_epoch(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep_all(folder: Path, committed: Any, *_: Any) -> int:
        return sum(staging.sweep(folder, writer, epoch) for writer, epoch in committed.items())

    monkeypatch.setattr("duolog.log.embedded.sweep_all", sweep_all)
    wrong = repeated_beside_others(driver, tmp_path, "before_commit", "function")
    assert any("DamagedPart" in one for one in wrong)
