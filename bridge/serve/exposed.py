"""What a host says once at its start of a log that others may harm."""

from __future__ import annotations

from pathlib import Path

from duolog.bridge.journal import Journal
from duolog.log.owner import open_to_others


def warn_of_open_folder(folder: Path, journal: Journal) -> None:
    """Where the log's folder is another user's, so that opening it could not close it to others."""
    exposed = open_to_others(folder)
    if exposed is not None:
        journal.warn(
            "log.open_to_others", log=str(folder), said=f"{exposed.found}. {exposed.advice}"
        )
