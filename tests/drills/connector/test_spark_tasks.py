"""Python workers are killed in the middle of their tasks, and tasks fail, before and after staging.

In each batch one task is struck, once or twice: its worker kills itself at a row, or when the part
is staged and nobody knows of it; or the task fails there. Spark runs the task again. In the end
each event is there once and in order, and nothing is left in the staging folder.

Mutants: one_name_a_task, all_that_is_staged_counts.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.drills.connector.checker import staged_files, violations
from tests.drills.connector.driver import GO, Driver, Report
from tests.drills.connector.streams import add_files, streams_of

_WAYS = ("die at a row", "fail when staged", "die when staged", "fail at a row")
_LAST_ROW = 60


class _Strikes:
    """What happens to tasks: one task of each batch, in turns of all ways."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._targets: dict[tuple[str, int], int] = {}  # the task, for stream and epoch
        self.done: Counter[str] = Counter()

    def __call__(self, report: Report) -> str:
        if report.place not in {"task", "staged"}:
            return GO
        turn = self._targets.setdefault((report.stream, report.epoch), report.turn)
        if report.turn != turn or report.attempt > report.epoch % 2:
            return GO
        way = _WAYS[(report.epoch + report.attempt) % len(_WAYS)]
        word, _, where = way.partition(" ")
        if (report.place == "staged") != where.endswith("staged"):
            return GO
        self.done[way] += 1
        return word if report.place == "staged" else f"{word} {self._chance.randrange(_LAST_ROW)}"


def struck(
    driver: Driver, folder: Path, batches: int, chance: random.Random, *names: str
) -> tuple[Counter[str], dict[str, list[str]]]:
    """Strike tasks in so many batches; how often in which way, and what is wrong by stream."""
    streams = streams_of(folder, *names)
    add_files(folder / "files", batches)
    strikes = _Strikes(chance)
    ends = driver.run(streams, strikes)
    return strikes.done, {
        stream.name: [error for error in [ends[stream.name]] if error]
        + staged_files(stream.log)
        + violations(stream, batches)
        for stream in streams
    }


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("batches", [4, pytest.param(24, marks=pytest.mark.full)])
def test_struck_tasks_lose_and_double_nothing(
    driver: Driver, tmp_path: Path, chance: random.Random, batches: int
) -> None:
    done, wrong = struck(driver, tmp_path, batches, chance, "source", "function")
    assert wrong == {"source": [], "function": []}
    assert set(done) == set(_WAYS)
    deaths = sum(count for way, count in done.items() if way.startswith("die"))
    assert deaths >= batches  # of two streams


@pytest.mark.parametrize("mutant", ["one_name_a_task", "all_that_is_staged_counts"])
def test_struck_tasks_find_the_mutant(
    driver: Driver, tmp_path: Path, chance: random.Random, mutant: str
) -> None:
    name = f"source+{mutant}"
    _, wrong = struck(driver, tmp_path, 2, chance, name)
    assert wrong[name]
