"""What people type and read: places to begin, numbers, lines of stdin, versions."""

from __future__ import annotations

import io
import itertools
import os
import time
from collections.abc import Iterator
from typing import cast

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from duolog.cli import shown
from duolog.cli.checkup import is_within
from duolog.cli.lines import MAX_LINES, bunches
from duolog.cli.starts import start_of
from duolog.errors import RecordTooLarge
from duolog.jars.java import java_version
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Start


@pytest.fixture
def in_rome(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Earliest()),
        ("start", Earliest()),
        ("LATEST", Latest()),
        ("end", Latest()),
        ("0", AtOffset(0)),
        ("20260131", AtOffset(20260131)),
        ("@1700000000000", AtTimestamp(1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", AtTimestamp(1_700_000_000_000)),
        ("2023-11-14 22:13:20.250+00:00", AtTimestamp(1_700_000_000_250)),
        ("2023-11-14T23:13:20+01:00", AtTimestamp(1_700_000_000_000)),
    ],
)
def test_a_place_is_a_word_an_offset_or_a_time(text: str, start: Start) -> None:
    assert start_of(text, "--from") == start


@pytest.mark.usefixtures("in_rome")
def test_a_time_without_a_zone_is_local() -> None:
    assert start_of("2023-11-14T23:13:20", "--from") == AtTimestamp(1_700_000_000_000)


@pytest.mark.parametrize("text", ["", "-1", "first", "@", "@x", "1.5", "2026-13-01", "²", "1_000"])
def test_anything_else_is_refused_with_what_can_be_given(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="earliest, latest, an offset"):
        start_of(text, "--from")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_572_864, "1.5 MiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1024**3, "1.0 GiB"),
        (1024**6, "1024.0 PiB"),
    ],
)
def test_sizes_are_short(number: int, text: str) -> None:
    assert shown.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2.5, "2.5 s"),
        (60, "1 min"),
        (5400, "1 h 30 min"),
        (604_800, "7 d"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_durations_are_words(seconds: float, text: str) -> None:
    assert shown.duration(seconds) == text


def test_counts_agree_with_their_words() -> None:
    assert shown.things(1, "record") == "1 record"
    assert shown.things(0, "record") == "0 records"
    assert shown.things(12_345, "record") == "12,345 records"


@pytest.mark.usefixtures("in_rome")
def test_moments_are_local_time() -> None:
    assert shown.moment(1_700_000_000_000) == "2023-11-14 23:13:20"
    assert shown.moment(0) == ""


def test_a_moment_beyond_the_calendar_is_its_number() -> None:
    assert shown.moment(2**62) == f"@{2**62}"


# -- lines


class _Pipe:
    """What comes in piece by piece; each read returns one piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    def read1(self, _: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def _bunches(pieces: list[bytes], longest_line_bytes: int = 1000) -> Iterator[list[bytes]]:
    source = cast("io.BufferedReader", _Pipe(pieces))
    return bunches(source, longest_line_bytes=longest_line_bytes)


def test_a_bunch_is_all_lines_that_are_there_at_the_moment() -> None:
    pieces = [b"a\nb\nc", b"c\n", b"d", b"\n\n", b"e"]
    assert list(_bunches(pieces)) == [[b"a", b"b"], [b"cc"], [b"d", b""], [b"e"]]


def test_a_large_bunch_comes_in_parts() -> None:
    sizes = [len(bunch) for bunch in _bunches([b"x\n" * (2 * MAX_LINES + 1)])]
    assert sizes == [MAX_LINES, MAX_LINES, 1]


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_lines_are_the_same_however_they_come_in(content: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(content)]
    pieces = [content[a:b] for a, b in itertools.pairwise(bounds)]
    pieces.append(content[max(bounds) :])
    lines = [line for bunch in _bunches(pieces) for line in bunch]
    whole = content.split(b"\n")
    assert lines == (whole if whole[-1] else whole[:-1])


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    found = _bunches([b"a\n", b"x" * 600, b"x" * 600, b"\n"])
    assert next(found) == [b"a"]
    with pytest.raises(RecordTooLarge, match="Line 2 is longer than 1,000 bytes"):
        next(found)


def test_a_pipe_is_not_waited_for_when_there_is_a_line() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as target:  # noqa: PTH123
        found = bunches(source, longest_line_bytes=1000)
        target.write(b"first\nsec")
        assert next(found) == [b"first"]
        target.write(b"ond\n")
        assert next(found) == [b"second"]


# -- versions


@pytest.mark.parametrize(
    ("version", "versions", "fits"),
    [
        ("0.3.29", ">=0.3.29,<0.4", True),
        ("0.3.28", ">=0.3.29,<0.4", False),
        ("0.4.0", ">=0.3.29,<0.4", False),
        ("0.4", "<0.4.0", False),
        ("30.1", ">=30.0,<31", True),
        ("26.0.1", ">=15", True),
        ("9.0", ">=15", False),
        ("2.0rc1", "==2.0", True),
        ("2", "!=2.0", False),
        ("1.5", "", True),
        ("unknown", ">=1", True),
        ("1.5", "~=1.4", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, versions: str, fits: bool) -> None:
    assert is_within(version, versions) is fits


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("nonsense", None),
    ],
)
def test_java_tells_its_version_in_two_ways(line: str, version: int | None) -> None:
    assert java_version(line) == version
