"""Builds the fault shim, loads it into child processes, and gives it orders from inside one."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

Call = Literal["sync", "write", "short", "read", "open", "link", "rename"]

_SOURCE = Path(__file__).with_name("fault_shim.c")
_BUILD = Path(__file__).parents[2] / "build" / "drills"
_FLAGS = ("-shared", "-fPIC", "-O2", "-o")


def system_compiler() -> list[str] | None:
    """The C compiler of this machine, if it has one."""
    found = shutil.which("cc")
    return None if found is None else [found]


def wheel_compiler() -> list[str]:
    """The C compiler that comes as a wheel with the development dependencies."""
    return [sys.executable, "-m", "ziglang", "cc"]


def built_shim(compiler: list[str] | None = None) -> Path:
    """The shared library, built once for each state of its source and compiler."""
    compiler = compiler or system_compiler() or wheel_compiler()
    state = hashlib.sha256(_SOURCE.read_bytes() + " ".join(compiler).encode()).hexdigest()[:16]
    library = _BUILD / f"fault_shim-{state}.so"
    if not library.exists():
        _BUILD.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        command = [*compiler, *_FLAGS, str(unfinished), str(_SOURCE), "-ldl", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"The fault shim cannot be built: {done.stderr}")
        unfinished.replace(library)
    return library


def preloaded() -> dict[str, str]:
    """The environment of a process that runs under the shim."""
    return {"LD_PRELOAD": str(built_shim())}


class Shim:
    """The shim of this process."""

    def __init__(self) -> None:
        loaded = ctypes.CDLL(None)
        if not hasattr(loaded, "shim_watch"):
            raise RuntimeError("This process was not started under the fault shim.")
        self._calls = loaded
        loaded.shim_syncs.restype = ctypes.c_long
        loaded.shim_seen.restype = ctypes.c_long

    def watch(self, folder: Path, journal: Path | None = None) -> None:
        """Follow what happens below a folder from now on; forget all earlier orders."""
        self._calls.shim_watch(os.fsencode(folder), b"" if journal is None else bytes(journal))

    def note(self, text: bytes) -> None:
        """Put a text into the journal."""
        self._calls.shim_note(text, ctypes.c_size_t(len(text)))

    def fail_syncs(self, first: int, count: int = 1) -> None:
        """Let `count` syncs fail, from the `first` one from now on (1 is the next); 0: none."""
        self._calls.shim_fail_syncs(ctypes.c_long(first), ctypes.c_long(count))

    def fail_calls(
        self, call: Call, text: str, *, first: int = 1, count: int = 1_000_000, error: int
    ) -> None:
        """Let a kind of call fail with an errno, on files with this text in their path.

        `short`: writes do not fail, and write half of their bytes.
        """
        self._calls.shim_fail_calls(
            call.encode(), text.encode(), ctypes.c_long(first), ctypes.c_long(count), error
        )

    def heal(self) -> None:
        """Forget what `fail_calls` has ordered."""
        self._calls.shim_fail_calls(b"", b"", ctypes.c_long(0), ctypes.c_long(0), 0)

    @property
    def seen(self) -> int:
        """How many calls the first order of `fail_calls` has met."""
        return int(self._calls.shim_seen())

    @property
    def syncs(self) -> int:
        """The syncs since the folder is watched."""
        return int(self._calls.shim_syncs())

    def limit(self, quota_bytes: int | None) -> None:
        """Refuse writes that let the folder grow beyond this."""
        self._calls.shim_quota(ctypes.c_long(-1 if quota_bytes is None else quota_bytes))
