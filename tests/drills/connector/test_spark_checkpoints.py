"""A stream's checkpoint loses files, or is lost, and the stream is started again.

With the rows of the first time nothing is written twice, and it goes on. With other rows under the
same batch id it is refused by name, and so is a new checkpoint under an old name; the log stays as
it was, and the way out that the message tells works.

Mutant: content_ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.drills.connector.changes import batch, replanned
from tests.drills.connector.checker import staged_files, violations
from tests.drills.connector.driver import Driver, Ends
from tests.drills.connector.streams import Stream, add_files, streams_of, write_file

_OTHER_CONTENT = "EpochContentMismatch"
_OLD_NAME = "A new or restored checkpoint runs under an old name"


class _Losses:
    """Loses files of all checkpoints and runs the streams; keeps what is wrong by stream."""

    def __init__(self, driver: Driver, folder: Path, *names: str) -> None:
        self._driver = driver
        self._files = folder / "files"
        self._streams: Sequence[Stream] = streams_of(folder, *names)
        self.wrong: dict[str, list[str]] = {name: [] for name in names}

    def run(self, what: str, batches: int, *, refused: str | None = None) -> None:
        """Run all streams; they must end so, and the log must have so many batches."""
        ends: Ends = self._driver.run(self._streams)
        for stream in self._streams:
            error = ends[stream.name]
            found = staged_files(stream.log) if refused is None else []
            found += violations(stream, batches)
            if refused is None and error is not None:
                found.append(error)
            if refused is not None and refused not in (error or ""):
                found.append(f"not refused: {error}")
            self.wrong[stream.name] += [f"{what}: {one}" for one in found]

    def lose(self, number: int, *folders: str) -> None:
        """Files of one batch."""
        for stream in self._streams:
            for folder in folders:
                for file in (stream.checkpoint / folder).glob(f"*{number}*"):
                    file.unlink()

    def add(self, upto: int) -> None:
        add_files(self._files, upto)

    def replan(self, number: int) -> None:
        """Change a file that was read, as nobody should."""
        write_file(self._files, number, replanned(number))

    def mend(self, number: int) -> None:
        write_file(self._files, number, batch(number).lines)

    def move_checkpoints(self, *, back: bool) -> None:
        for stream in self._streams:
            aside = stream.checkpoint.with_suffix(".aside")
            if back:
                stream.checkpoint.rename(stream.checkpoint.with_suffix(".new"))
                aside.rename(stream.checkpoint)
            else:
                stream.checkpoint.rename(aside)


@pytest.mark.timeout(900)
def test_lost_checkpoint_files_lose_and_double_nothing(driver: Driver, tmp_path: Path) -> None:
    losses = _Losses(driver, tmp_path, "source", "function")
    losses.add(3)
    losses.run("first", 3)
    losses.lose(2, "commits")
    losses.run("the last commit lost", 3)
    losses.lose(2, "commits", "offsets", "sources/0")
    losses.add(4)
    losses.run("the last plan lost", 4)
    losses.lose(3, "commits", "offsets", "sources/0")
    losses.replan(3)
    losses.run("planned with other rows", 4, refused=_OTHER_CONTENT)
    losses.mend(3)
    losses.run("planned with the first rows", 4)
    losses.move_checkpoints(back=False)
    losses.run("all lost", 4, refused=_OLD_NAME)
    losses.move_checkpoints(back=True)
    losses.add(5)
    losses.run("all found again", 5)
    assert losses.wrong == {"source": [], "function": []}


def test_lost_checkpoint_files_find_the_mutant_content_ignored(
    driver: Driver, tmp_path: Path
) -> None:
    losses = _Losses(driver, tmp_path, "source+content_ignored")
    losses.add(2)
    losses.run("first", 2)
    losses.lose(1, "commits", "offsets", "sources/0")
    losses.replan(1)
    losses.run("planned with other rows", 2, refused=_OTHER_CONTENT)
    assert losses.wrong == {
        "source+content_ignored": ["planned with other rows: not refused: None"]
    }
