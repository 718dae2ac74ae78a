"""Runs the demo and keeps two pictures of it: in the middle, and at its end."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from tests.recordings.picture import END, LIVE, plain, svg
from tests.recordings.terminal import Frame, Terminal, run_at_terminal

_KILLED = "kill -9 of kafka-2"
_IDLE = re.compile(r" +(kafka|native)-\d +0\b")
_AFTERWARDS = "Nothing is left running"  # names the machine's folders from there on


def record() -> None:
    last_killed: Frame = []

    def look(frame: Frame) -> None:
        if any(_KILLED in line for line in plain(frame)):
            last_killed[:] = frame

    terminal = Terminal(look)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "duolog.cli", "demo", "--folder", str(Path(folder, "new"))]
        code = run_at_terminal(command, terminal)
    end = terminal.frame
    if code:
        raise SystemExit("\n".join(plain(end)))
    afterwards = next(at for at, line in enumerate(plain(end)) if line.startswith(_AFTERWARDS))
    for path, frame in ((LIVE, last_killed), (END, end[:afterwards])):
        if idle := [line for line in plain(frame) if _IDLE.match(line)]:
            raise SystemExit(f"Not all had something to do; run it on a quieter machine: {idle}")
        path.write_text(svg(frame, "duolog demo", path.stem), encoding="utf-8")
        print(path, f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    record()
