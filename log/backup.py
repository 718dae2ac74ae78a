"""A consistent copy of a log that is in use."""

from __future__ import annotations

from pathlib import Path

from duolog.errors import UnsupportedLocation
from duolog.log.identity import write_format
from duolog.log.mark import Mark
from duolog.log.owner import sync_folder
from duolog.log.store import Store


def write_backup(store: Store, log_folder: Path, folder: Path) -> Path:
    """Copy into a folder that is not there yet. Opened, the copy is a log of its own."""
    if folder.exists():
        raise UnsupportedLocation(f"{folder} is already there. Give the backup a new folder.")
    if folder.is_relative_to(log_folder):
        raise UnsupportedLocation(f"A backup of {log_folder} cannot lie inside it.")
    folder.mkdir(parents=True, mode=0o700)
    sequence = store.checkpoint(folder / "db")
    mark = Mark(folder / "mark")
    try:
        mark.read_or_create(is_new=True)
        mark.advance(sequence)
    finally:
        mark.close()
    write_format(folder)
    sync_folder(folder.parent)
    return folder
