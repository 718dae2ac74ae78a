"""A disk that fails while staged parts are read refuses the epoch by name, and nothing more."""

from __future__ import annotations

import errno
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
import rocksdict

from duolog.errors import DamagedPart, DiskFull, UnsupportedLocation
from duolog.log import EmbeddedLog, open_log, part
from duolog.log.part import Part, PartBuilder
from duolog.log.store import names_file_in
from tests.support.records import STREAM, record_batch


class BrokenFile(FileIO):
    """A file on a disk that can be opened, and not be read."""

    def readinto(self, buffer: Any) -> int:
        del buffer
        raise OSError(errno.EIO, "Input/output error")

    def read(self, size: int | None = -1) -> bytes:
        del size
        raise OSError(errno.EIO, "Input/output error")


def staged_part(log: EmbeddedLog) -> Part:
    """One record for partition 0 of a new topic, in a file."""
    builder = PartBuilder(log.staging(STREAM, 0))
    builder.add(log.create_topic("orders"), 0, record_batch([b"1"]))
    return builder.finish()


def test_a_part_that_the_disk_does_not_give_back_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(tmp_path / "log") as log:
        staged = staged_part(log)
        with monkeypatch.context() as broken:
            broken.setattr(part, "FileIO", BrokenFile)
            with pytest.raises(DamagedPart, match=r"Input/output error.*Nothing of the write"):
                log.append(STREAM, 0, [staged])
            content = staged.open()
            with content, pytest.raises(DamagedPart, match="Input/output error"):
                staged.read_at(content, 0, staged.length)
        assert log.offsets("orders")[0].next_offset == 0
        assert not log.append(STREAM, 0, [staged]).repeated


def test_an_epoch_is_durable_although_its_parts_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(tmp_path / "log") as log:
        staged = staged_part(log)

        def fail(_: Path) -> Any:
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as broken:
            broken.setattr(Path, "iterdir", fail)
            assert not log.append(STREAM, 0, [staged]).repeated
        assert log.last_epoch(STREAM) is not None
        assert log.append(STREAM, 0, [staged]).repeated  # and now they go
        assert staged.path is not None
        assert not Path(staged.path).exists()


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("IO error: While fdatasync: /data/log/db/MANIFEST-000005: Input/output error", True),
        ("Corruption: block checksum mismatch in '/data/log/db/000012.sst'", True),
        ("IO error: While appending to file: /log/db.tmp/000012.sst", False),
        ("IO error: While appending to file: /backups/data/log/db/000012.sst", False),
        ("IO error: While open: /data/log/db.tmp/MANIFEST-000005", False),
        ("No space left on device (os error 28)", False),
    ],
)
def test_an_error_is_the_logs_own_where_it_names_one_of_its_files(
    text: str, is_named: bool
) -> None:
    assert names_file_in(Path("/data/log/db"), text) is is_named
    assert not names_file_in(Path("/log/db"), text)


def test_a_backup_that_the_disk_does_not_take_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(tmp_path / "log") as log:
        (tmp_path / "file").touch()
        with pytest.raises(UnsupportedLocation, match="Not a directory"):
            log.backup(tmp_path / "file" / "backup")

        def fail(*_: Any) -> Any:
            raise RuntimeError("IO error: No space left on device")

        monkeypatch.setattr(rocksdict, "Checkpoint", fail)
        with pytest.raises(DiskFull, match="No space left"):
            log.backup(tmp_path / "backup")
