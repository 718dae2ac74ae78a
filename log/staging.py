"""Where tasks stage parts, and how parts that nobody needs any more are swept."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from duolog.log.model import Writer

ABANDONED_MS = 7 * 24 * 3600 * 1000


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


def sweep_all(log_folder: Path, committed: Iterable[tuple[str, int]], now_ms: int) -> int:
    """Remove what earlier owners committed and did not come to remove.

    Also what writers left that never committed anything and have not touched it for a week: batch
    jobs without a name that were killed. Nobody else would ever remove it.
    """
    epochs = dict(committed)
    known = {_writer_folder(log_folder, writer).name for writer in epochs}
    swept = sum(sweep(log_folder, writer, epoch) for writer, epoch in epochs.items())
    staging = log_folder / "staging"
    for folder in list(staging.iterdir()) if staging.is_dir() else []:
        if folder.name not in known and now_ms - _last_touched_ms(folder) > ABANDONED_MS:
            shutil.rmtree(folder, ignore_errors=True)
            swept += 1
    return swept


def _last_touched_ms(folder: Path) -> int:
    try:
        return max(path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))) // 1_000_000
    except OSError:  # somebody else is removing it
        return 0


def _writer_folder(log_folder: Path, writer: str) -> Path:
    return log_folder / "staging" / hashlib.sha256(writer.encode()).hexdigest()[:24]
