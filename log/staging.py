"""Where tasks stage parts, and how parts that nobody needs any more are swept."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from duolog.log.model import Writer


def staging_folder(log_folder: Path, writer: Writer, epoch: int) -> Path:
    """The folder for the parts of one epoch."""
    return _writer_folder(log_folder, str(writer)) / str(epoch)


def sweep(log_folder: Path, writer: str, upto_epoch: int) -> int:
    """Remove the parts of a writer's epochs up to a committed one; how many folders went."""
    folder = _writer_folder(log_folder, writer)
    if not folder.is_dir():
        return 0
    done = [
        epoch
        for epoch in folder.iterdir()
        if epoch.name.isdigit() and int(epoch.name) <= upto_epoch
    ]
    for epoch in done:
        shutil.rmtree(epoch, ignore_errors=True)
    return len(done)


def sweep_all(log_folder: Path, committed: Iterable[tuple[str, int]]) -> int:
    """Remove what earlier owners committed and did not come to remove."""
    return sum(sweep(log_folder, writer, epoch) for writer, epoch in committed)


def _writer_folder(log_folder: Path, writer: str) -> Path:
    return log_folder / "staging" / hashlib.sha256(writer.encode()).hexdigest()[:24]
