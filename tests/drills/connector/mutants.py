"""Changes to the connector that a drill must notice. Each would be a line or two in the product.

They are made while something is done for a stream whose name ends in `+` and the mutant's name, and
taken back afterwards: one Spark serves the product and all its mutants.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from duolog.connector import sink
from duolog.log import appends, epochs, part, staging

Mutant = Callable[[], AbstractContextManager[Any]]
MUTANTS: dict[str, Mutant] = {}


def mutated(stream: str) -> AbstractContextManager[Any]:
    """The product as it is for this stream."""
    _, _, mutant = stream.partition("+")
    return MUTANTS[mutant]() if mutant else nullcontext()


def _mutant(make: Callable[[], Iterator[None]]) -> Mutant:
    MUTANTS[make.__name__] = contextmanager(make)
    return MUTANTS[make.__name__]


@_mutant
def epochs_unchecked() -> Iterator[None]:
    """An epoch is appended, whatever was before."""
    with patch.object(appends, "is_repeat", lambda *_, **__: False):
        yield


@_mutant
def content_ignored() -> Iterator[None]:
    """The same epoch is a repeat, whatever it holds."""
    is_repeat = epochs.is_repeat

    def any_repeat(writer: Any, epoch: int, content: Any, last: Any, **options: Any) -> bool:
        same = content if last is None else last.fingerprints
        return is_repeat(writer, epoch, same, last, **options)

    with patch.object(appends, "is_repeat", any_repeat):
        yield


@_mutant
def one_name_a_task() -> Iterator[None]:
    """Both attempts of a task give their parts the same name."""
    from pyspark import TaskContext

    task: Any = TaskContext.get()
    if task is None:
        yield
        return
    name = SimpleNamespace(hex=f"{task.partitionId():032x}")
    with patch("uuid.uuid4", lambda: name):
        yield


@_mutant
def all_that_is_staged_counts() -> Iterator[None]:
    """A commit takes all parts in the epoch's folder, not those of the tasks that Spark names."""
    message, append = part.Part.message, appends.Appender.append

    def kept(told: part.Part) -> bytes:
        if told.path is not None:
            Path(told.path).with_suffix(".said").write_bytes(message(told))
        return message(told)

    def append_all(self: Any, writer: Any, epoch: int, parts: Any, **more: Any) -> Any:
        folder = staging.staging_folder(self._state.folder, writer, epoch)
        staged = [part.Part.from_message(said.read_bytes()) for said in folder.glob("*.said")]
        inline = [told for told in parts if told.path is None]
        return append(self, writer, epoch, [*inline, *staged], **more)

    with (
        patch.object(part.Part, "message", kept),
        patch.object(appends.Appender, "append", append_all),
    ):
        yield


@_mutant
def abort_clears_the_epoch() -> Iterator[None]:
    """An abort removes all that is staged for its epoch, whoever staged it."""
    with patch.object(sink.abort, "plain", _clear):
        yield


def _clear(planned: sink.Planned, epoch: int, _messages: Any) -> None:
    path = planned.options.place.path
    assert path is not None
    shutil.rmtree(
        staging.staging_folder(Path(path), planned.stage.writer, epoch), ignore_errors=True
    )


@_mutant
def commit_answers_first() -> Iterator[None]:
    """A commit answers Spark, and then appends."""
    commit = sink.commit.plain  # type: ignore[attr-defined]

    def answered(*arguments: Any, **more: Any) -> None:
        Thread(target=commit, args=arguments, kwargs=more).start()

    with patch.object(sink.commit, "plain", answered):
        yield
