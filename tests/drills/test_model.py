"""A random walk over the whole public interface, against a simple model, through every kind of end.

Topics come and go, publishers with sequences repeat themselves, in order or not, epochs come twice,
with other content or at the same moment, groups begin and move, retention and CLEAR remove, writers
expire, callers make mistakes. After kill -9, after a power loss, and after syncs, writes, reads and
opens that fail, disks that are full and writes that are short, the log is what the model says, with
what was in flight or without it, and nothing else.

Mutants: sequences_forgotten, failures_settled, sync_without_flush.
"""

from __future__ import annotations

import errno
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.drills.model.comparing import may_be_done, refused_by_disk, world_after
from tests.drills.model.steps import Step
from tests.drills.model.together import Wrong
from tests.drills.model.walking import Walk, ask
from tests.drills.model.world import World
from tests.drills.test_power_loss import moments
from tests.support.children import Child, ChildFailed
from tests.support.disk import Disk, Names, Unsynced
from tests.support.journal import Event, read_journal
from tests.support.shim import preloaded

_FULL_SECONDS = 3600.0
_MOMENTS = (
    "any", "publish.written", "any", "publish.synced", "append.records_written", "any",
    "append.committed", "append.files_made", "append.verified",
)  # fmt: skip
_CALLS = ("write", "write", "short", "short", "read", "open", "rename", "link")
_FILES = ("", ".log", ".sst", "MANIFEST", "mark", "staging")
_CALM = {"restart", "backup"}  # where a failing disk is another drill's


def walk_until(walk: Callable[[Path, int], None], folder: Path, least: int, seconds: float) -> None:
    """Walk at least so often, and for so long."""
    end = time.monotonic() + seconds
    number = 0
    while number < least or time.monotonic() < end:
        here = folder / f"walk{number}"
        here.mkdir()
        walk(here, number)
        shutil.rmtree(here)
        number += 1


def named(walk: Walk, wrong: Exception) -> Wrong:
    return Wrong(f"{wrong}\nafter these steps:\n{walk.last_steps()}")


# -- kill -9


def killed(
    folder: Path, chance: random.Random, lives: int, steps: int, mutant: str | None = None
) -> None:
    """Each life ends by a kill: at a named point, or at any moment."""
    walk = Walk(folder / "log", chance)
    try:
        in_flight: Step | None = None
        for life in range(lives):
            moment = _MOMENTS[life % len(_MOMENTS)]
            die_at = None if moment == "any" else (moment, chance.randint(1, 5))
            with walk.open(
                die_at=die_at, small_buffers=chance.random() < 0.5, mutant=mutant
            ) as child:
                in_flight = _live(walk, child, in_flight, steps, dies_alone=die_at is not None)
        with walk.open(mutant=mutant) as child:
            child.said()
            walk.look(child, in_flight)
    except Wrong as wrong:
        raise named(walk, wrong) from wrong


def _live(
    walk: Walk, child: Child, in_flight: Step | None, steps: int, *, dies_alone: bool
) -> Step | None:
    """What was in flight when the process ended."""
    try:
        child.said()
        walk.look(child, in_flight)
    except ChildFailed:
        if not dies_alone or "Traceback" in child.errors():
            raise
        return in_flight
    for _ in range(walk.chance.randint(1, steps)):
        step = walk.next()
        try:
            answer = ask(child, step)
        except ChildFailed:
            if not dies_alone or "Traceback" in child.errors():
                raise
            return step
        walk.world = world_after(walk.world, step, answer)
    walk.look(child)
    last = walk.next()
    child.tell(last)
    answers = list(child.until_silent(walk.chance.random() * 0.01))
    child.kill()
    answers += list(child.rest())
    if not answers:
        return last
    walk.world = world_after(walk.world, last, answers[0])
    return None


@pytest.mark.timeout(4500)
@pytest.mark.parametrize(
    ("lives", "steps", "seconds"), [(14, 25, 0.0), pytest.param(60, 60, _FULL_SECONDS,
                                                                marks=pytest.mark.full)]
)  # fmt: skip
def test_a_log_that_is_killed_is_what_the_model_says(
    tmp_path: Path, chance: random.Random, lives: int, steps: int, seconds: float
) -> None:
    walk_until(lambda here, _: killed(here, chance, lives, steps), tmp_path, 1, seconds)


# -- power loss


@dataclass(frozen=True, slots=True)
class Followed:
    """A walk under the shim: the world before each step and at the end, and the steps."""

    watched: Path
    events: list[Event]
    worlds: list[World]
    steps: list[Step]


def followed(
    folder: Path, chance: random.Random, steps: int, mutant: str | None = None
) -> Followed:
    watched, journal = folder / "disk", folder / "journal"
    watched.mkdir()
    walk = Walk(watched / "log", chance)
    worlds = [walk.world]
    done: list[Step] = []
    with walk.open(
        environment=preloaded(),
        journal=(str(watched), str(journal)),
        small_buffers=chance.random() < 0.5,
        mutant=mutant,
    ) as child:
        child.said()
        while len(done) < steps:
            step = walk.next()
            if step["do"] == "backup":
                continue  # its copies are not followed
            try:
                walk.world = world_after(walk.world, step, ask(child, step))
            except Wrong as wrong:
                raise named(walk, wrong) from wrong
            done.append(step)
            worlds.append(walk.world)
    return Followed(watched, read_journal(journal), worlds, done)


def lose_power(
    folder: Path, run: Followed, losses: int, chance: random.Random, mutant: str | None = None
) -> None:
    disk, image = Disk(), folder / "image"
    ways = [(names, unsynced) for unsynced in Unsynced for names in Names]
    at = 0
    for number, moment in enumerate(moments(run.events, losses, chance)):
        names, unsynced = ways[number % len(ways)]
        disk.follow(run.events[at:moment])
        at = moment
        told = len(disk.notes)
        disk.write_after_loss(image, names, unsynced, chance)
        if (image / "log" / "db").is_dir() or told:
            in_flight = run.steps[told] if told < len(run.steps) else None
            try:
                _look_after_loss(image / "log", run.worlds[told], in_flight, chance, mutant)
            except (Wrong, ChildFailed) as wrong:
                before = [str(step)[:300] for step in run.steps[max(0, told - 4) : told]]
                raise Wrong(
                    f"power lost at event {moment} ({names.value} names, {unsynced.value}), "
                    f"{told} steps done, in flight {in_flight}: {wrong}\n" + "\n".join(before)
                ) from wrong
        shutil.rmtree(image)


def _look_after_loss(
    log: Path, world: World, in_flight: Step | None, chance: random.Random, mutant: str | None
) -> None:
    """The log opens, is what it should be, and goes on."""
    walk = Walk(log, chance)
    walk.world = world
    walk.steps._values = 10_000  # values that no other step has written
    with walk.open(mutant=mutant) as child:
        child.said()
        walk.look(child, in_flight)
        for _ in range(3):
            walk.step(child)
        walk.look(child)


@pytest.mark.timeout(4500)
@pytest.mark.parametrize(
    ("steps", "losses", "seconds"), [(60, 12, 0.0), pytest.param(150, 60, _FULL_SECONDS,
                                                                 marks=pytest.mark.full)]
)  # fmt: skip
def test_a_log_that_lost_power_is_what_the_model_says(
    tmp_path: Path, chance: random.Random, steps: int, losses: int, seconds: float
) -> None:
    def once(here: Path, _: int) -> None:
        lose_power(here, followed(here, chance, steps), losses, chance)

    walk_until(once, tmp_path, 1, seconds)


# -- syncs and writes that fail


def on_a_failing_disk(
    folder: Path, chance: random.Random, steps: int, mutant: str | None = None
) -> int:
    """How many steps were not simply done."""
    log = folder / "log"
    walk = Walk(log, chance)
    troubles = 0
    with walk.open(
        environment=preloaded(), failing=True, small_buffers=chance.random() < 0.5, mutant=mutant
    ) as child:
        child.said()
        failing = False
        for _ in range(steps):
            step = walk.next()
            if failing and (step["do"] in _CALM or chance.random() < 0.2):
                _mend(child)
                failing = False
            elif not failing and step["do"] not in _CALM and chance.random() < 0.2:
                _break(child, chance, log)
                failing = True
            answer = ask(child, step)
            try:
                if refused_by_disk(answer, cannot_be_read=failing):
                    troubles += 1
                    _mend(child)
                    failing = False
                    walk.look_when_it_works_again(
                        child, step if may_be_done(step, answer) else None
                    )
                else:
                    walk.world = world_after(walk.world, step, answer)
            except Wrong as wrong:
                answered = str(answer)[:500]
                raise named(walk, Wrong(f"{wrong}, after the answer {answered}")) from wrong
        _mend(child)
        try:
            walk.look_when_it_works_again(child, None)
        except Wrong as wrong:
            raise named(walk, wrong) from wrong
    return troubles


def _break(child: Child, chance: random.Random, log: Path) -> None:
    first, count = chance.randint(1, 4), chance.randint(1, 3)
    match chance.choice(("syncs", "syncs", "full", "calls", "calls")):
        case "syncs":
            ask(child, {"do": "fail syncs", "first": first, "count": count})
        case "full":
            size = sum(path.stat().st_size for path in log.rglob("*") if path.is_file())
            ask(child, {"do": "limit disk", "bytes": size + chance.randint(0, 20_000)})
        case _:
            ask(child, {"do": "fail calls", "call": chance.choice(_CALLS),
                        "text": chance.choice(_FILES), "first": first, "count": count,
                        "error": chance.choice((errno.EIO, errno.ENOSPC))})  # fmt: skip


def _mend(child: Child) -> None:
    ask(child, {"do": "heal"})


@pytest.mark.timeout(4500)
@pytest.mark.parametrize(
    ("steps", "seconds"), [(250, 0.0), pytest.param(800, _FULL_SECONDS, marks=pytest.mark.full)]
)
def test_a_log_on_a_failing_disk_is_what_the_model_says(
    tmp_path: Path, chance: random.Random, steps: int, seconds: float
) -> None:
    troubles = 0

    def once(here: Path, _: int) -> None:
        nonlocal troubles
        troubles += on_a_failing_disk(here, chance, steps)

    walk_until(once, tmp_path, 1, seconds)
    for number in range(9):  # a short walk may meet hardly any
        if troubles <= 3:
            once(tmp_path / f"another{number}", number)
    assert troubles > 3


# -- the drill can fail


@pytest.mark.parametrize(
    ("walk", "mutant"),
    [
        (lambda here, chance, mutant: killed(here, chance, 6, 60, mutant), "sequences_forgotten"),
        (lambda here, chance, mutant: on_a_failing_disk(here, chance, 250, mutant),
         "failures_settled"),
        (lambda here, chance, mutant: lose_power(
            here, followed(here, chance, 60, mutant), 30, chance), "sync_without_flush"),
    ],
    ids=["sequences_forgotten", "failures_settled", "sync_without_flush"],
)  # fmt: skip
def test_walks_find_the_mutant(
    tmp_path: Path, chance: random.Random, walk: Callable[..., Any], mutant: str
) -> None:
    def walks() -> None:
        for number in range(8):  # one may not come to where it matters
            here = tmp_path / f"walk{number}"
            here.mkdir()
            walk(here, chance, mutant)

    with pytest.raises((Wrong, ChildFailed)):
        walks()
