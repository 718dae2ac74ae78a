"""Results on stdout: JSON lines for programs, tables for people. Notes on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from duolog.errors import OutputFailed

if TYPE_CHECKING:
    from rich.console import Console

RIGHT = ">"
"""Before a column's heading: its cells are numbers."""

_WIDE = 10_000  # for pipes and files: nothing is to be cut off


def json_line(fields: dict[str, Any]) -> None:
    """One object on a line of its own."""
    write((json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n").encode())


def write(lines: bytes) -> None:
    """Whole lines, as they are, whatever the locale."""
    with _named():
        sys.stdout.buffer.write(lines)


def flush() -> None:
    """Hand over to whoever reads stdout."""
    with _named():
        sys.stdout.flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The output cannot be written ({error.strerror}). What was done before stays done: "
            "records that were published are in the log, also those whose places were not printed."
        ) from error


def note(text: str) -> None:
    """Something that people should know."""
    sys.stderr.write(text + "\n")


def blank() -> None:
    """An empty line between tables."""
    sys.stdout.write("\n")


def console() -> Console:
    """A Rich console on stdout that cuts nothing off where nobody looks at the width."""
    from rich.console import Console

    on_terminal = sys.stdout.isatty()
    width = None if on_terminal else _WIDE
    stdout: Any = _NamedStdout()
    return Console(file=stdout, width=width, highlight=False, markup=False, emoji=False)


class _NamedStdout:
    """stdout for Rich, whose failures are named too."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)

    def write(self, text: str) -> int:
        with _named():
            return sys.stdout.write(text)

    def flush(self) -> None:
        flush()


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """A table as narrow as its cells. Headings with a leading `>` are right-aligned."""
    from rich import box
    from rich.table import Table

    shown = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    for heading in headings:
        is_number = heading.startswith(RIGHT)
        shown.add_column(
            heading.removeprefix(RIGHT),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        shown.add_row(*row)
    console().print(shown)


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values below one another, without those that have no value."""
    from rich.table import Table

    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            shown.add_row(name, value)
    console().print(shown)
