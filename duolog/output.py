"""Results on stdout: JSON lines for programs, tables for people. Notes and errors on stderr.

The command line and the demo print by these functions alone, and a test holds that: a terminal
obeys nothing of the text (`printable.py`), brackets are brackets, and JSON keeps values exactly.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from duolog.errors import OutputFailed
from duolog.printable import one_line, printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

RIGHT = ">"
"""Before a column's heading: its cells are numbers."""

_WIDE = 10_000  # for pipes and files: nothing is to be cut off


def json_line(fields: dict[str, Any]) -> None:
    """One object on a line of its own."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    _write(printable_json(text + "\n").encode())


def json_lines(lines: bytes) -> None:
    """Whole lines of JSON, in UTF-8, as others have made them."""
    if not lines.isascii() or b"\x7f" in lines:
        lines = printable_json(lines.decode()).encode()
    _write(lines)


def line(*lines: str) -> None:
    """Lines of a result for people, or of one value for programs."""
    _write("".join(f"{one_line(each)}\n" for each in lines).encode())


def blank() -> None:
    """An empty line between tables."""
    _write(b"\n")


def _write(lines: bytes) -> None:
    """Whatever the locale."""
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
    """Something that people should know. Where it cannot be written, the work goes on."""
    _tell(printable(text) + "\n")


def error(message: str, code: str, *, as_json: bool) -> None:
    """Say what went wrong."""
    if as_json:
        text = json.dumps({"error": message, "code": code})
    elif sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        text = f"\x1b[1;31mError:\x1b[0m {printable(message)}"
    else:
        text = f"Error: {printable(message)}"
    _tell(text + "\n")


def line_anew(text: str) -> None:
    """Write the last line of a terminal anew, on stderr."""
    _tell(f"\r\x1b[2K{one_line(text)}")


def _tell(text: str) -> None:
    """On stderr, whose disk may be full and whose reader may have left."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def leave_stderr() -> None:
    """At the end: what could not be written there is no reason for Python to exit with 120."""
    try:
        sys.stderr.flush()
    except OSError:
        _send_nowhere(sys.stderr)


def forget_stdout() -> None:
    """Nobody reads it any more: what Python still wants to flush at exit goes nowhere."""
    _send_nowhere(sys.stdout)


def _send_nowhere(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def confirm(question: str) -> None:
    """Ask at the terminal; the command ends unless the answer is yes."""
    import typer

    typer.confirm(printable(question), abort=True, err=True)


def escape_what_stdout_cannot_encode() -> None:
    """Also in what Typer prints, as --help. JSON and lines are written in UTF-8 besides."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_tracebacks_safely() -> None:
    """What nobody has foreseen is printed with a traceback, and may repeat what came from afar."""

    def print_it(
        kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not issubclass(kind, SystemExit):
            lines = traceback.format_exception(kind, error, trace)
            _tell(printable("".join(lines)))

    sys.excepthook = print_it
    threading.excepthook = lambda told: print_it(told.exc_type, told.exc_value, told.exc_traceback)


def is_terminal() -> bool:
    """Whether somebody looks at stdout as it comes."""
    return sys.stdout.isatty()


def console(*, on_stderr: bool = False) -> Console:
    """A Rich console that shows all text as it is, and cuts nothing off where nobody looks at the
    width.
    """
    from duolog.printable_console import PrintableConsole

    out: Any = sys.stderr if on_stderr else _NamedStdout()
    width = None if out.isatty() else _WIDE
    return PrintableConsole(file=out, width=width, highlight=False, markup=False, emoji=False)


def show(shown: RenderableType, *, wrapped: bool = True) -> None:
    """Something of Rich's, on stdout."""
    console().print(shown, soft_wrap=not wrapped)


def styled(text: str, style: str = "") -> Text:
    """Text for something of Rich's, which would leave some control characters out in silence."""
    from rich.text import Text

    return Text(printable(text), style)


class _NamedStdout:
    """stdout for Rich, whose failures are named too. Rich puts itself in its place at times."""

    def __init__(self) -> None:
        self._out = sys.stdout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        with _named():
            return self._out.write(text)

    def flush(self) -> None:
        with _named():
            self._out.flush()


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """A table as narrow as its cells. Headings with a leading `>` are right-aligned."""
    from rich import box
    from rich.table import Table

    shown = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=one_line(title) or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    for heading in headings:
        is_number = heading.startswith(RIGHT)
        shown.add_column(
            one_line(heading.removeprefix(RIGHT)),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    for row in rows:
        shown.add_row(*map(one_line, row))
    show(shown)


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values below one another, without those that have no value."""
    from rich.table import Table

    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            shown.add_row(one_line(name), one_line(value))
    show(shown)
