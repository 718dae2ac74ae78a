"""A worker's end of what ties it to its host.

Settings and secrets come by stdin, where no list of processes shows them; what the worker says of
itself goes out by stdout, an object of JSON a line. stdin stays open for as long as the host lives:
when it closes, the host is gone, however it went, and the worker ends at once. A pipe does that on
every system, and does not care which thread of the host has started the worker.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from duolog.errors import InvalidSetting

NOT_RUNNABLE: Final = 78
"""The exit code that asks not to be started again: only other settings can help."""

HOST_GONE: Final = 75
MAX_LINE_BYTES: Final = 1 << 16

_READ_BYTES: Final = 1 << 16
_speaking = threading.Lock()


def settings_from_host(stdin: int = 0) -> dict[str, Any]:
    """What the host hands over. From here on, this process ends with its host."""
    # By the descriptor: a thread that waits inside sys.stdin would hold its lock at the end.
    read = bytearray()
    while b"\n" not in read:
        more = os.read(stdin, _READ_BYTES)
        if not more:
            break
        read += more
    try:
        settings = json.loads(read)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise InvalidSetting(
            "This process is a worker of `duolog serve`, which gives it its settings as a line of "
            "JSON. Start it through the host."
        )
    threading.Thread(target=_end_with_host, args=(stdin,), name="duolog-leash", daemon=True).start()
    return settings


def tell_host(status: Mapping[str, Any], stdout: int = 1) -> None:
    """Say how it goes. The first time it means: at work. Each replaces the one before."""
    line = json.dumps(status, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a status of {len(line)} bytes; at most {MAX_LINE_BYTES} are read")
    with _speaking:
        try:
            while line:
                line = line[os.write(stdout, line) :]
        except BrokenPipeError:
            os._exit(HOST_GONE)


def _end_with_host(stdin: int) -> None:
    while os.read(stdin, _READ_BYTES):
        pass
    os._exit(HOST_GONE)
