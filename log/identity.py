"""Which log this is, and whether this directory is where it has always been.

A copy or a restored backup must not speak for the original: it gets a new log id, and with it
a new Kafka producer id, since old sequence numbers must never vouch for new content. A copy is told
by the inodes of the directory and of what is in it: moving and remounting keep them, copying does
not. (A clone of the whole block device cannot be told this way: `duolog doctor` says so.)
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from duolog.errors import DamagedLog, UnsupportedFormat
from duolog.log.owner import UNFINISHED, sync_folder, unfinished
from duolog.log.private import opener
from duolog.log.store import Store, WriteBatch

FORMAT = 1
FORMAT_FILE = "FORMAT"
_FORMAT_LINE = "duolog log format {}\n"
_BEFORE_FORMAT = {"owner.lock", "host.json", "FORMAT.new"}
_KEY = b"identity"


@dataclass(frozen=True, slots=True)
class Identity:
    """A log's id, and the id it was copied from if it was."""

    log_id: str
    copied_from: str | None = None


def check_format(folder: Path) -> None:
    """Refuse what is no log, or one that a newer Duolog has written; claim an empty folder.

    The format lies in a file of its own, so that it can be read whatever else has changed.
    """
    file = folder / FORMAT_FILE
    if not file.exists():
        others = sorted({entry.name for entry in folder.iterdir()} - _BEFORE_FORMAT)
        if UNFINISHED in others:
            raise unfinished(folder)
        if others:
            raise UnsupportedFormat(
                f"{folder} is not empty and holds no log (it has {', '.join(others[:3])}, but no "
                f"{FORMAT_FILE} file). Give a new or empty folder."
            )
        write_format(folder)
        return
    read_format(folder)


def read_format(folder: Path) -> int:
    """The format of a log or backup; refused by name when it is newer than what is known."""
    file = folder / FORMAT_FILE
    line = file.read_text(errors="replace")
    words = line.split()
    if line != _FORMAT_LINE.format(words[-1] if words else "") or not words[-1].isdigit():
        raise DamagedLog(f"{file} is not readable. Restore the log from a backup.")
    if int(words[-1]) > FORMAT:
        raise UnsupportedFormat(
            f"The log in {folder} has format {words[-1]}, this Duolog knows up to {FORMAT}. Use "
            "a newer Duolog; nothing was changed."
        )
    return int(words[-1])


def write_format(folder: Path) -> None:
    """Say durably that this is a log, and of which format."""
    new = folder / "FORMAT.new"
    with open(new, "w", opener=opener) as written:
        written.write(_FORMAT_LINE.format(FORMAT))
        written.flush()
        os.fsync(written.fileno())
    new.replace(folder / FORMAT_FILE)
    sync_folder(folder)


def establish(store: Store, folder: Path) -> Identity:
    """Read the identity; make one for a new log, and a new one for a copy."""
    stored = store.get("meta", _KEY)
    if stored is None:
        if store.scan("topics", b"", b"\xff", limit=1):
            raise DamagedLog(f"The log in {folder} has topics but no identity. Restore a backup.")
        return _write(store, folder, Identity(uuid.uuid4().hex))
    fields = json.loads(stored)
    if fields["home"] == _home(folder):
        return Identity(fields["log_id"], fields["copied_from"])
    return _write(store, folder, Identity(uuid.uuid4().hex, copied_from=fields["log_id"]))


def rehome(store: Store, folder: Path) -> Identity:
    """Let a log that was made elsewhere, and moved here piece by piece, keep its identity."""
    stored = store.get("meta", _KEY)
    if stored is None:
        raise DamagedLog(f"The log in {folder} has no identity. Restore a backup.")
    fields = json.loads(stored)
    return _write(store, folder, Identity(fields["log_id"], fields["copied_from"]))


def _write(store: Store, folder: Path, identity: Identity) -> Identity:
    batch = WriteBatch()
    fields = {
        "format": FORMAT,
        "log_id": identity.log_id,
        "copied_from": identity.copied_from,
        "home": _home(folder),
    }
    batch.put("meta", _KEY, json.dumps(fields).encode())
    store.commit(batch)
    return identity


def _home(folder: Path) -> list[int]:
    return [os.stat(path).st_ino for path in (folder, folder / "owner.lock", folder / "db")]  # noqa: PTH116
