"""A program at a terminal, and what stands there: enough of one for what Rich writes, no more.

What it does not know it refuses, so that no picture is wrong in silence.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence

COLUMNS, ROWS = 80, 60
_TOKEN = re.compile(r"\r\n|\r|\n|\x1b\[[?\d;]*[A-Za-z]|[^\x1b\r\n]+")
_MAY_BE_CUT = re.compile(r"(?:\r|\x1b(?:\[[?\d;]*)?)\Z")
_READ_BYTES = 1 << 16

Frame = list[str]
"""The lines of a terminal; colours are still in them."""


class NotUnderstood(Exception):
    """The program has written what this terminal cannot show."""


class Terminal:
    """Lines that are written, erased and written again. `seen` is told of each finished frame."""

    def __init__(self, seen: Callable[[Frame], None] = lambda _: None) -> None:
        self._seen = seen
        self._lines: Frame = [""]
        self._row = 0
        self._rest = ""

    @property
    def frame(self) -> Frame:
        return list(self._lines)

    def write(self, text: str) -> None:
        """More of what the program says, cut wherever it was cut."""
        text = self._rest + text
        cut = _MAY_BE_CUT.search(text)
        self._rest = cut[0] if cut else ""
        text = text.removesuffix(self._rest)
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise NotUnderstood(repr(text[at : at + 20]))
            self._take(token[0])
            at = token.end()

    def _take(self, token: str) -> None:
        if token in {"\n", "\r\n"}:
            self._row += 1
            self._lines += [""] * (self._row - len(self._lines) + 1)
        elif token == "\r":  # Rich goes to a line's beginning only to draw all of it anew
            self._seen(self.frame)
        elif token == "\x1b[2K":
            self._lines[self._row] = ""
        elif not token.startswith("\x1b") or token.endswith("m"):
            self._lines[self._row] += token
        elif token.endswith("A"):
            self._row -= int(token[2:-1] or 1)
        elif token not in {"\x1b[?25l", "\x1b[?25h"}:  # the cursor goes, and comes back
            raise NotUnderstood(repr(token))


def run_at_terminal(command: Sequence[str], terminal: Terminal) -> int:
    """Run a program to its end; its exit code."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    hidden = {"NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    process = subprocess.Popen(
        command,
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(its)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while content := _read(ours):
            terminal.write(decoder.decode(content))
    finally:
        os.close(ours)
        code = process.wait()
    return code


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, _READ_BYTES)
    except OSError:  # Linux's way of saying that nobody is at the other end any more
        return b""
