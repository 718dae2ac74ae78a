"""A Spark driver is killed with -9 and its JVM with it, again and again, while streams are read.

Killed at any place, between tasks, in them, in commits and starts; and at the exact one between the
log's commit and the checkpoint's, of all streams together. The next driver goes on from the same
checkpoints. After each kill the log has whole batches and nothing twice; at the end it has all.

Mutant: epochs_unchecked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.drills.connector.checker import batches_in, staged_files, violations
from tests.drills.connector.driver import GO, HOLD, KILL, Driver, Ends, Report
from tests.drills.connector.streams import Stream, add_files, streams_of

_AHEAD = 3  # batches that each driver finds to do
_FAR_AHEAD = 5
_SMALL_BATCH_ROWS = 180  # some batches are, some are not
_MOST_REPORTS = 40
_LONGEST_WAIT_SECONDS = 0.3

Moment = Callable[[Driver, Sequence[Stream], random.Random], Ends]


def killed_again_and_again(
    folder: Path,
    moments: Sequence[Moment],
    chance: random.Random,
    mutants: Sequence[str] = (),
    *,
    ahead: int,
) -> dict[str, list[str]]:
    """Kill at these moments, until something of the product is wrong; what it is, by stream."""
    names = ["source", "function", *(f"source+{mutant}" for mutant in mutants)]
    streams = streams_of(folder, *names, small_batch_rows=_SMALL_BATCH_ROWS)
    wrong: dict[str, list[str]] = {stream.name: [] for stream in streams}
    for number, moment in enumerate([*moments, _none]):
        batches = ahead + max(batches_in(stream) for stream in streams)
        add_files(folder / "files", batches)
        with Driver(folder / f"driver{number}") as driver:
            ends = moment(driver, streams, chance)
        for stream in streams:
            found = [error for name, error in ends.items() if error and name == stream.name]
            if moment is _none:
                found += staged_files(stream.log)
            found += violations(stream, batches if moment is _none else None)
            wrong[stream.name] += [f"after kill {number}: {one}" for one in found]
        if wrong["source"] or wrong["function"]:
            break
    return wrong


def anywhere(driver: Driver, streams: Sequence[Stream], chance: random.Random) -> Ends:
    """After so many places of one stream, or at its end, and a little while."""
    counted = chance.choice(streams).name
    left = chance.randint(1, _MOST_REPORTS)

    def decide(report: Report) -> str:
        nonlocal left
        left -= report.stream == counted
        if left and not (report.stream == counted and report.place == "ended"):
            return GO
        driver.answer_until_silent(chance.random() * _LONGEST_WAIT_SECONDS)
        return KILL

    return driver.run(streams, decide)


def between_commits(driver: Driver, streams: Sequence[Stream], chance: random.Random) -> Ends:
    """When each stream has a batch in the log of which its checkpoint knows nothing."""
    place = chance.choice(("appended", "committed"))
    waiting = {stream.name for stream in streams}

    def decide(report: Report) -> str:
        if report.place != place or report.repeated:
            return GO
        waiting.discard(report.stream)
        return HOLD if waiting else KILL

    ends = driver.run(streams, decide)
    assert not waiting, f"the streams ended before they could be killed: {ends}"
    return ends


def _none(driver: Driver, streams: Sequence[Stream], chance: random.Random) -> Ends:
    """Let all be read."""
    return driver.run(streams)


@pytest.mark.timeout(900)
def test_kills_lose_and_double_nothing_but_for_the_mutant(
    tmp_path: Path, chance: random.Random
) -> None:
    moments = (between_commits, anywhere)
    wrong = killed_again_and_again(tmp_path, moments, chance, ["epochs_unchecked"], ahead=_AHEAD)
    assert wrong["source"] == []
    assert wrong["function"] == []
    assert wrong["source+epochs_unchecked"]


@pytest.mark.full
@pytest.mark.timeout(4 * 3600)
def test_nothing_is_lost_or_doubled_by_many_kills(tmp_path: Path, chance: random.Random) -> None:
    moments = [anywhere] * 50 + [between_commits] * 10
    chance.shuffle(moments)
    wrong = killed_again_and_again(tmp_path, moments, chance, ahead=_FAR_AHEAD)
    assert wrong == {"source": [], "function": []}
