"""A worker's end of what ties it to its host.

Settings and secrets come by stdin, where no list of processes shows them; what the worker says of
itself goes out by stdout, an object of JSON a line. stdin stays open for as long as the host lives:
when it closes, the host is gone, however it went, and the worker ends at once. A pipe does that on
every system, and does not care which thread of the host has started the worker. Meanwhile the host
may ask by it (`exchange.py`).
"""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

from duolog.bridge.serve.exchange import MAX_LINE_BYTES
from duolog.errors import InvalidSetting

NOT_RUNNABLE: Final = 78
"""The exit code that asks not to be started again: only other settings can help."""

HOST_GONE: Final = 75

_READ_BYTES: Final = 1 << 16
_speaking = threading.Lock()


def settings_from_host(
    stdin: int = 0, hear: Callable[[bytes], object] = lambda _line: None
) -> dict[str, Any]:
    """What the host hands over. From here on, this process ends with its host.

    `hear` is called with each line that comes after, by a thread that it must not hold up.
    """
    # By the descriptor: a thread that waits inside sys.stdin would hold its lock at the end.
    read = bytearray()
    while b"\n" not in read:
        more = os.read(stdin, _READ_BYTES)
        if not more:
            break
        read += more
    first, _, rest = bytes(read).partition(b"\n")
    try:
        settings = json.loads(first)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise InvalidSetting(
            "This process is a worker of `duolog serve`, which gives it its settings as a line of "
            "JSON. Start it through the host."
        )
    threading.Thread(
        target=_end_with_host, args=(stdin, hear, rest), name="duolog-leash", daemon=True
    ).start()
    return settings


def tell_host(status: Mapping[str, Any], stdout: int = 1) -> None:
    """Say how it goes. The first time it means: at work. Each replaces the one before."""
    line = json.dumps(status, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"a status of {len(line)} bytes; at most {MAX_LINE_BYTES} are read")
    say(line, stdout)


def say(line: bytes, stdout: int = 1) -> None:
    """Write a line to the host. Blocks while it does not listen."""
    with _speaking:
        try:
            while line:
                line = line[os.write(stdout, line) :]
        except BrokenPipeError:
            os._exit(HOST_GONE)


def _end_with_host(stdin: int, hear: Callable[[bytes], object], read: bytes) -> None:
    is_too_long = False
    while True:
        *lines, read = read.split(b"\n")
        for line in lines:
            if not is_too_long:
                try:
                    hear(line)
                except Exception:  # noqa: BLE001 - whatever is said, the leash holds
                    traceback.print_exc()
            is_too_long = False
        if len(read) > MAX_LINE_BYTES:  # none of ours: not kept, and passed over up to its end
            read, is_too_long = b"", True
        more = os.read(stdin, _READ_BYTES)
        if not more:
            os._exit(HOST_GONE)
        read += more
