"""Files and folders that are their owner's alone, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Make it, and those above it that are missing: `mkdir` leaves the latter to the umask."""
    for above in reversed(folder.parents):
        if not above.exists():
            above.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=exist_ok)


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=opener)`."""
    return os.open(path, flags, 0o600)
