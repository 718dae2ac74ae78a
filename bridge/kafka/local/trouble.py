"""What a broker's log says about its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_READ_BYTES = 1 << 16
_SHOWN_LINES = 12
_TAKEN_PORT = "Address already in use"
_KNOWN = {
    "Failed to acquire lock on file": "Another broker uses this folder: stop it, or name another.",
    "java.lang.OutOfMemoryError": "Its heap was too small: give it more.",
    "No space left on device": "The disk is full: make room.",
    "Permission denied": "It may not write there: name another folder, or change who owns it.",
}


def last_lines(log_file: Path, start: int = 0) -> list[str]:
    """The end of the log, with nothing from before the byte `start`."""
    try:
        with log_file.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(start, size - _READ_BYTES))
            return log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def is_taken_port(lines: Sequence[str]) -> bool:
    """Whether the broker could not listen."""
    return any(_TAKEN_PORT in line for line in lines)


def told(lines: Sequence[str]) -> str:
    """What to do, if the reason is a known one, and the last lines."""
    advice = [known for sign, known in _KNOWN.items() if any(sign in line for line in lines)]
    telling = [line.rstrip() for line in lines if not line.startswith(("\tat ", "\t..."))]
    shown = [f"  {line}" for line in telling[-_SHOWN_LINES:] if line]
    said = "It said nothing." if not shown else "It last said:\n" + "\n".join(shown)
    return " ".join([*advice, said])
