"""Fresh folders on the measured disk, gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TooLittleDisk(Exception):
    """The disk has not enough room for a benchmark."""


class Scratch:
    """Hands out fresh folders below one root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A folder for as long as it is needed."""
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._root))
        try:
            yield path
        finally:
            shutil.rmtree(path)

    def check_room(self, needed_bytes: int) -> None:
        free = shutil.disk_usage(self._root).free
        if free < needed_bytes:
            raise TooLittleDisk(
                f"{self._root} has {free >> 20:,} MiB free, this wants {needed_bytes >> 20:,} MiB. "
                "Name another folder with --dir, or measure less."
            )


@contextmanager
def scratch_in(parent: Path | None) -> Iterator[Scratch]:
    """Scratch space in a folder, by default the system's for temporary files."""
    with tempfile.TemporaryDirectory(prefix="duolog-bench-", dir=parent) as root:
        yield Scratch(Path(root))
