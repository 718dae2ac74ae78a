"""A bar on stderr for what takes a while, at a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from duolog import output

Advance = Callable[[int], None]
Begin = Callable[[str, int], Advance]
"""What is done, and of how much; what is answered is told of each step."""


class OneBar:
    """A bar for those who begin once, and say how many records there are."""

    def __init__(self, begin: Begin, words: str) -> None:
        self._begin = begin
        self._words = words

    def begins(self, records: int) -> Advance:
        return self._begin(self._words, records)


@contextmanager
def bars(*, silent: bool, of_bytes: bool = False) -> Iterator[Begin]:
    """Bars for one step after the other."""
    if silent or not sys.stderr.isatty():
        yield _nothing
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    amount: ProgressColumn = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns: tuple[Any, ...] = ("{task.description}", BarColumn(), amount, TimeRemainingColumn())
    with Bars(*columns, console=output.console(on_stderr=True), transient=True) as progress:

        def begin(words: str, total: int) -> Advance:
            task = progress.add_task(words, total=total)
            return lambda more: progress.advance(task, more)

        yield begin


def _nothing(_words: str, _total: int) -> Advance:
    return lambda _more: None
