"""Staged parts go when they are committed, or when nobody can want them any more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from duolog.log.model import Mode, Writer
from duolog.log.staging import (
    ABANDONED_MS,
    REPEATED_MS,
    LocalStaging,
    staging_folder,
    sweep_all,
)

NOW_MS = 1_800_000_000_000
KNOWN = Writer(Mode.STREAM, "known", "topic:orders")
UNKNOWN = Writer(Mode.BATCH, "killed", "topic:orders")


def staged(log: Path, writer: Writer, epoch: int, *, age_ms: int) -> Path:
    """A part of this age, with its folders."""
    folder = staging_folder(log, writer, epoch)
    folder.mkdir(parents=True)
    part = folder / "a.part"
    part.touch()
    seconds = (NOW_MS - age_ms) / 1000
    for path in (part, folder, folder.parent):
        os.utime(path, (seconds, seconds))
    return part


def test_what_is_committed_goes_and_what_is_not_stays(tmp_path: Path) -> None:
    old = staged(tmp_path, KNOWN, 3, age_ms=0)
    next_one = staged(tmp_path, KNOWN, 5, age_ms=100 * ABANDONED_MS)
    assert sweep_all(tmp_path, {str(KNOWN): 4}, NOW_MS) == 1
    assert not old.exists()
    assert next_one.exists()


def test_what_a_repeat_of_the_last_epoch_stages_stays_while_it_may_be_needed(
    tmp_path: Path,
) -> None:
    part = staged(tmp_path, KNOWN, 4, age_ms=REPEATED_MS - 60_000)
    assert sweep_all(tmp_path, {str(KNOWN): 4}, NOW_MS) == 0
    assert part.exists()
    assert sweep_all(tmp_path, {str(KNOWN): 4}, NOW_MS + 120_000) == 1
    assert not part.exists()


def test_what_an_unknown_writer_left_goes_only_when_it_is_old(tmp_path: Path) -> None:
    part = staged(tmp_path, UNKNOWN, 0, age_ms=ABANDONED_MS - 60_000)
    assert sweep_all(tmp_path, {}, NOW_MS) == 0
    assert part.exists()
    assert sweep_all(tmp_path, {}, NOW_MS + 120_000) == 1
    assert list((tmp_path / "staging").iterdir()) == []


def test_one_new_part_keeps_all_of_its_writer(tmp_path: Path) -> None:
    old = staged(tmp_path, UNKNOWN, 0, age_ms=2 * ABANDONED_MS)
    staged(tmp_path, UNKNOWN, 1, age_ms=1)
    assert sweep_all(tmp_path, {}, NOW_MS) == 0
    assert old.exists()


def test_a_log_without_a_staging_folder_has_nothing_to_sweep(tmp_path: Path) -> None:
    assert sweep_all(tmp_path, {str(KNOWN): 4}, NOW_MS) == 0


class Epochs(dict[str, int]):
    """Counts how often a last epoch was read."""

    read = 0

    def get(self, writer: str, default: Any = None) -> Any:
        self.read += 1
        return super().get(writer, default)


def test_only_epochs_of_writers_that_have_staged_are_read(tmp_path: Path) -> None:
    epochs = Epochs({f"batch:job{number}:orders": 1 for number in range(1000)} | {str(KNOWN): 4})
    assert sweep_all(tmp_path, epochs, NOW_MS) == 0
    staged(tmp_path, KNOWN, 3, age_ms=0)
    assert sweep_all(tmp_path, epochs, NOW_MS) == 1
    assert epochs.read == 1


def test_an_empty_folder_of_a_known_writer_goes_when_it_is_old(tmp_path: Path) -> None:
    folder = staged(tmp_path, KNOWN, 4, age_ms=2 * REPEATED_MS).parents[1]
    assert sweep_all(tmp_path, {str(KNOWN): 4}, NOW_MS) == 1
    assert not folder.exists()
    folder = staged(tmp_path, KNOWN, 4, age_ms=REPEATED_MS - 60_000).parents[1]
    assert sweep_all(tmp_path, {str(KNOWN): 5}, NOW_MS) == 1
    assert folder.exists()


def test_what_was_handed_over_outlives_an_abort(tmp_path: Path) -> None:
    """The store may need it to open again."""
    staging = LocalStaging(tmp_path / "writer" / "0")
    (tmp_path / "writer" / "0").mkdir(parents=True)
    (tmp_path / "writer" / "1").mkdir()
    for name in ("0/a.part", "0/b.sst", "0/b.given", "1/c.part"):
        (tmp_path / "writer" / name).touch()
    staging.remove_writer()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"writer/0/b.sst", "writer/0/b.given"}
    for name in ("b.sst", "b.given"):
        (tmp_path / "writer" / "0" / name).unlink()
    staging.remove_writer()
    assert not (tmp_path / "writer").exists()
