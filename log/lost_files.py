"""Puts back files that RocksDB names and has removed.

While files are handed over, RocksDB links them into its directory and adds them to its MANIFEST. If
the MANIFEST then cannot be synced it removes the links again, and leaves their names in the file
where they stand: opened again, it finds them missing, and nothing of the log can be read.

So what was handed over is kept beside the database until the write is settled. A kept file is put
back only as the file that it was: the MANIFEST's size and first and last key are its own, and
RocksDB compares the unique id that it has written into both.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from duolog.log.manifest import Table, Unreadable, tables_of
from duolog.log.owner import sync_folder

_FAMILY: Final = "records"
_KEPT: Final = "*/*/*.sst"  # below staging/: a writer, an epoch
_GIVEN: Final = ".given"
_MOST_WAYS: Final = 16


def unnamed_path(folder: Path) -> Path:
    """A file that is being made, whose keys are not known yet."""
    return folder / f"{uuid.uuid4().hex}.sst"


def named_by_keys(path: Path, first_key: bytes, last_key: bytes) -> Path:
    """How a finished file is called, so that it is known again."""
    return path.with_name(f"{path.stem}-{first_key.hex()}-{last_key.hex()}.sst")


def second_name(path: Path) -> Path:
    """A link that RocksDB may take away; where there are none, the file itself."""
    given = path.with_suffix(_GIVEN)
    try:
        given.hardlink_to(path)
    except OSError:
        return path
    return given


def left_files(staging: Path) -> list[Path]:
    """All files that were made to be handed over, and are still there."""
    return [*staging.glob(_KEPT), *staging.glob(f"*/*/*{_GIVEN}")]


class Relinked:
    """Files that were put back, until RocksDB has said whether they are the right ones."""

    def __init__(self, links: dict[Path, Path], first_keys: tuple[bytes, ...]) -> None:
        self.first_keys = first_keys
        self._links = links

    def put(self) -> bool:
        made = []
        try:
            for link, kept in self._links.items():
                link.hardlink_to(kept)
                made.append(link)
            for folder in {link.parent for link in made}:
                sync_folder(folder)
        except OSError:  # whoever wanted to open it says what is wrong
            remove_kept(made)
            return False
        return True

    def take_back(self) -> None:
        """They were not: leave the directory as it was."""
        remove_kept(list(self._links))


def relinkings(database: Path, staging: Path) -> Iterator[Relinked]:
    """Ways to put back all that the MANIFEST names and is not there. None, when some was not kept.

    There are several only where files were kept that look alike; the last ones come first.
    """
    try:
        missing = [
            table for table in tables_of(database, _FAMILY) if not _path(database, table).exists()
        ]
        kept = {table: _kept(table, staging) for table in missing}
    except (Unreadable, OSError):
        return
    if not missing or not all(kept.values()):
        return
    first_keys = tuple(table.first_key for table in missing)
    for chosen in itertools.islice(itertools.product(*kept.values()), _MOST_WAYS):
        links = {_path(database, table): path for table, path in zip(missing, chosen, strict=True)}
        yield Relinked(links, first_keys)


def remove_kept(paths: list[Path]) -> None:
    """Remove what nobody needs any more."""
    for path in paths:
        with suppress(OSError):  # the next one to open the log removes it
            path.unlink()


def _path(database: Path, table: Table) -> Path:
    return database / f"{table.number:06}.sst"


def _kept(table: Table, staging: Path) -> list[Path]:
    """The kept files that a table may be, the last one that was made first."""
    keys = f"-{table.first_key.hex()}-{table.last_key.hex()}.sst"
    alike = [
        (found.st_mtime_ns, path)
        for path in staging.glob(_KEPT)
        if path.name.endswith(keys) and (found := path.stat()).st_size == table.size_bytes
    ]
    return [path for _, path in sorted(alike, reverse=True)]
