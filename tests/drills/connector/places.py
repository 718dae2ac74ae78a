"""Places in the connector at which a drill may let something happen.

Every Python process of a drill's Spark (the driver, its daemon, the workers forked from it) is
armed: when it comes to a place it tells the drill, waits for its word and does what it says.

| place         | where                                                |
|---------------|------------------------------------------------------|
| task          | a task begins to stage                               |
| row           | a task that was told "ask" has come to that row      |
| staged        | a task has staged its part                           |
| unstaged      | a task has failed, and thrown away what it had       |
| before_commit | all tasks have staged, and the driver knows it       |
| before_append | the driver has opened the log and is about to append |
| appended      | the epoch is in the log, which is still open         |
| committed     | the log is closed; Spark has not been told           |
| before_abort  | Spark says that the batch came to nothing            |
| aborted       | the sink has cleaned up                              |
| ended         | a query of the driver has ended; tells its error     |

The words are "go", "die" and "fail"; to a task also "die 9", "fail 9" and "ask 9": what it does
when it comes to its row 9, or to its end. A process whose drill has gone kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterable, Iterator
from typing import Any

from tests.drills.connector.mutants import mutated

ADDRESS = "DUOLOG_DRILL_ADDRESS"
_INLINE_BYTES = 500  # so that most of what is staged are files


class OnOrder(Exception):
    """The drill wanted this to fail."""


def reached(place: str, stream: str, **more: Any) -> str:
    """Tell the drill, and do as it says."""
    host, port = os.environ[ADDRESS].split(":")
    try:
        with socket.create_connection((host, int(port))) as line:
            line.sendall(json.dumps({"place": place, "stream": stream, **more}).encode() + b"\n")
            with line.makefile("rb") as answers:
                word = answers.readline().decode().strip()
    except OSError:
        word = ""
    if word in {"", "die"}:
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "fail":
        raise OnOrder(f"{place} of {stream}")
    return word


def arm() -> None:
    """Put the places into this process's connector."""
    from duolog.connector import sink, stage, staged_part
    from duolog.connector.feeds import left_over
    from duolog.log import embedded

    left_over.MESSAGE_BYTES = _INLINE_BYTES
    _default(staged_part.StagedPart.__init__, "inline_bytes", _INLINE_BYTES)
    for holder, name, with_places in (
        (embedded.EmbeddedLog, "append", _append),
        (stage.StagePlan, "stage", _stage),
        (sink, "commit", _commit),
        (sink, "abort", _abort),
    ):
        setattr(holder, name, with_places(getattr(holder, name)))


def _default(function: Any, name: str, value: int) -> None:
    function.__kwdefaults__[name] = value


def _append(plain: Any) -> Any:
    def append(self: Any, writer: Any, epoch: int, parts: Any, **more: Any) -> Any:
        reached("before_append", writer.name, epoch=epoch)
        appended = plain(self, writer, epoch, parts, **more)
        reached("appended", writer.name, epoch=epoch, repeated=appended.repeated)
        return appended

    return append


def _stage(plain: Any) -> Any:
    def stage(self: Any, batches: Iterable[Any], *, epoch: int, **more: Any) -> Any:
        def at(place: str) -> str:
            return reached(place, self.writer.name, epoch=epoch, **_task())

        with mutated(self.writer.name):
            word, _, row = at("task").partition(" ")
            rows = batches if word == "go" else _interrupted(batches, word, int(row), at)
            try:
                told = plain(self, rows, epoch=epoch, **more)
            except BaseException:
                at("unstaged")
                raise
            at("staged")
            return told

    return stage


def _commit(plain: Any) -> Any:
    def commit(planned: Any, epoch: int, staged: Any, **more: Any) -> Any:
        name = planned.stage.writer.name
        reached("before_commit", name, epoch=epoch)
        with mutated(name):
            appended = commit.plain(planned, epoch, staged, **more)  # type: ignore[attr-defined]
        reached("committed", name, epoch=epoch)
        return appended

    commit.plain = plain  # type: ignore[attr-defined]
    return commit


def _abort(plain: Any) -> Any:
    def abort(planned: Any, epoch: int, staged: Any) -> None:
        name = planned.stage.writer.name
        reached("before_abort", name, epoch=epoch)
        with mutated(name):
            abort.plain(planned, epoch, staged)  # type: ignore[attr-defined]
        reached("aborted", name, epoch=epoch)

    abort.plain = plain  # type: ignore[attr-defined]
    return abort


def _task() -> dict[str, Any]:
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:  # a small batch, encoded on the driver
        return {"turn": 0, "attempt": 0}
    return {"turn": task.partitionId(), "attempt": task.attemptNumber()}


def _interrupted(batches: Iterable[Any], word: str, row: int, at: Any) -> Iterator[Any]:
    """The batches up to a row, or to the last one, where the process does as it was told."""
    left = row
    for batch in batches:
        if 0 <= left < len(batch):
            yield batch.slice(0, left)
            _stop(word, row, at)
            yield batch.slice(left)
        else:
            yield batch
        left -= len(batch)
    if left >= 0:
        _stop(word, row, at)


def _stop(word: str, row: int, at: Any) -> None:
    if word == "ask":
        at("row")
    elif word == "fail":
        raise OnOrder(f"row {row}")
    else:
        os.kill(os.getpid(), signal.SIGKILL)
