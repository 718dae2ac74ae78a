"""A table's versions come whole and once: each write begins behind the version that the last ended.

Delta's limits on a trigger may cut a version in two, and a read of its changes may begin too early.
Either way the log would tell a row's story wrong, so the highest version of each epoch is kept
with it, as its note, and what comes next is held to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from duolog.connector.stage import LastEpoch, Staged
from duolog.errors import VersionCut

_PREFIX = "version "


def checked_note(
    epoch: int, staged: Sequence[Staged], last: LastEpoch | None, table: str | None
) -> str:
    """The note for this epoch. Raises VersionCut when a version comes again."""
    told = [each.versions for each in staged if each.versions is not None]
    written = None if last is None else version_of(last.note)
    if last is not None and epoch <= last.epoch:
        return last.note  # a repeat, or too old: the log judges that by what it holds
    if not told:
        return "" if written is None else f"{_PREFIX}{written}"
    lowest, highest = min(low for low, _ in told), max(high for _, high in told)
    if written is not None and lowest <= written:
        raise VersionCut(
            f"Table '{table}' was written up to version {written}, and version {lowest} comes "
            "again. Either a limit on the stream's trigger cut it in two: set maxFilesPerTrigger "
            "to 2147483647 where the changes are read, as follow_delta does. Or they are read from "
            "too early a version. Nothing of this write is in the log; what it has of the version "
            "may lack rows. Clear the topics and write the table anew under another name."
        )
    return f"{_PREFIX}{highest}"


def version_of(note: str) -> int | None:
    """The version that a note tells."""
    digits = note.removeprefix(_PREFIX)
    return int(digits) if note.startswith(_PREFIX) and digits.isdigit() else None
