"""Names of staged parts, what a full disk is called, and how far a cache holds on."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.errors import DiskFull, DuologError, InvalidRequest, NotWritten
from duolog.log.cache import BatchCache
from duolog.log.model import Mode, TopicPartition, Writer
from duolog.log.staging import (
    LocalStaging,
    check_staged_name,
    epoch_name,
    not_staged,
    staged_name,
    staged_path,
    staging_folder,
)
from tests.support.records import record_batch

HASH, UUID = "0123456789abcdef01234567", "f" * 32
WRITER = Writer(Mode.STREAM, "query", "topic:orders")


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "/", f"{HASH}/3/{UUID}.part\n", f"{HASH}/3/{UUID}.part/",
        f"{HASH}//{UUID}.part", f"{HASH}/3/..", f"{HASH}/../{UUID}.part",
        f"{HASH}/³/{UUID}.part", f"{HASH}/3/{UUID}.parts",
        f"{HASH}/3\x00/{UUID}.part", f"\\{HASH}/3/{UUID}.part", None, 7, b"x",
    ],
)  # fmt: skip
def test_what_is_no_name_of_a_part(name: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no name of a staged part"):
        check_staged_name(name)
    with pytest.raises(InvalidRequest):
        staged_path(tmp_path, name)


@settings(deadline=None)
@given(st.text())
def test_no_text_leads_out_of_the_staging_folder(name: str) -> None:
    log = Path("/nowhere/log")
    try:
        path = staged_path(log, name)
    except InvalidRequest:
        return
    assert path.resolve().is_relative_to(log / "staging")


def test_a_part_is_named_by_its_writer_and_epoch(tmp_path: Path) -> None:
    folder = staging_folder(tmp_path, WRITER, 12)
    file = LocalStaging(folder).begin()
    path = file.finish()
    name = staged_name(tmp_path, path)
    assert name.startswith(f"{epoch_name(WRITER, 12)}/")
    assert staged_path(tmp_path, name) == Path(path)
    for elsewhere in ("/etc/passwd", f"{tmp_path}/db/x", f"{tmp_path}/staging/../db/x", name):
        with pytest.raises(InvalidRequest):
            staged_name(tmp_path, elsewhere)


@pytest.mark.parametrize(
    ("number", "named"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, NotWritten),
     (errno.EACCES, NotWritten)],
)  # fmt: skip
def test_what_a_failing_disk_is_called(number: int, named: type[DuologError]) -> None:
    error = not_staged(Path("/data/log/staging/x.part"), OSError(number, "it said so"))
    assert type(error) is named
    assert "/data/log/staging" in str(error)
    assert "run it again" in str(error)


def test_a_file_that_cannot_grow_is_not_written(tmp_path: Path) -> None:
    program = f"""
import resource
from pathlib import Path
from duolog.errors import NotWritten
from duolog.log.staging import LocalStaging
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
file = LocalStaging(Path({str(tmp_path)!r}) / "1").begin()
try:
    file.write(b"x" * 100_000)
    file.finish()
except NotWritten as error:
    print(error)
file.abort()
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "File too large" in run.stdout
    assert list((tmp_path / "1").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotWritten, match="staged"):
        LocalStaging(tmp_path / "file" / "1").begin()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=12),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_a_cache_holds_on_up_to_the_first_gap(
    batches: list[tuple[int, bool]], offset: int, end: int
) -> None:
    """Against a plain set of the offsets that are held."""
    where, cache, held = TopicPartition(1, 0), BatchCache(1 << 20), set[int]()
    base = 0
    for count, kept in batches:
        if count and kept:
            cache.add(where, base, record_batch([b"v"] * count))
            held.update(range(base, base + count))
        base += count
    expected = offset
    while expected in held and expected < end:
        expected += 1
    assert cache.held_upto(where, offset, end) == min(expected, end)
    assert cache.held_upto(TopicPartition(2, 0), offset, end) == min(offset, end)
    assert (cache.hits, cache.misses) == (0, 0)
