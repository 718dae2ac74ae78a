"""Walks a log and its model side by side, and says what differs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.drills import worker
from tests.drills.model.comparing import fitting, world_after
from tests.drills.model.steps import Step, Steps
from tests.drills.model.together import Wrong
from tests.drills.model.world import World
from tests.support.children import Child, ChildFailed

OBSERVE: Step = {"do": "observe"}
_START_MS = 1_700_000_000_000
_MOST_TRIES = 50


class Walk:
    """One log's life, over any number of processes."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.world = World(_START_MS)
        self.steps = Steps(chance)
        self.done: list[Step] = []

    def open(self, *, environment: Mapping[str, str] | None = None, **arguments: Any) -> Child:
        """A process that has the log open, or may be ending already."""
        asked = {"role": "act", "folder": str(self.folder), "now_ms": self.world.now_ms}
        return Child(worker.__name__, {**asked, **arguments}, environment=environment)

    def next(self) -> Step:
        """A step that fits, kept for those who look for what went wrong."""
        step = self.steps.next(self.world)
        self.done.append(step)
        return step

    def step(self, child: Child) -> None:
        """One step, on a disk that works."""
        step = self.next()
        self.world = world_after(self.world, step, ask(child, step))

    def look(self, child: Child, in_flight: Step | None = None) -> None:
        """All of the log is as the model says, with what was in flight or without."""
        found = ask(child, OBSERVE)
        if "ok" not in found:
            raise Wrong(f"the log cannot be read: {found}")
        self.world = fitting(self.world, in_flight, found["ok"])

    def look_when_it_works_again(self, child: Child, in_flight: Step | None) -> None:
        """After failures, all of the log is as it was before the step, or after it."""
        for _ in range(_MOST_TRIES):
            found = ask(child, OBSERVE)
            if "ok" in found:
                self.world = fitting(self.world, in_flight, found["ok"])
                return
        raise Wrong(f"the log does not come back: {found}")

    def last_steps(self) -> str:
        """The end of what was done, for a message."""
        return "\n".join(str(step)[:300] for step in self.done[-6:])


def ask(child: Child, step: Step) -> dict[str, Any]:
    """What the process answers. Raises ChildFailed where it ends instead."""
    try:
        child.tell(step)
    except BrokenPipeError:
        child.said()
        raise ChildFailed("The child takes no more steps.") from None
    answer: dict[str, Any] = child.said()
    return answer
