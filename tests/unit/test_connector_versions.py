"""Versions of a table come whole and once."""

from __future__ import annotations

import pytest

from duolog.connector.stage import LastEpoch, Staged
from duolog.connector.versions import checked_note, version_of
from duolog.errors import VersionCut


def staged(*versions: tuple[int, int] | None) -> list[Staged]:
    return [Staged(versions=each) for each in versions]


@pytest.mark.parametrize(
    ("last", "versions", "note"),
    [
        (None, [(3, 5), None, (4, 9)], "version 9"),
        (None, [None], ""),
        (LastEpoch(6, 0, "version 2"), [(3, 3)], "version 3"),
        (LastEpoch(6, 0, "version 2"), [], "version 2"),  # a batch without rows
        (LastEpoch(6, 0, ""), [(3, 3)], "version 3"),
        (LastEpoch(6, 0, "somebody else's"), [(3, 3)], "version 3"),
        (LastEpoch(7, 0, "version 5"), [(3, 5)], "version 5"),  # the same epoch again
        (LastEpoch(8, 0, "version 5"), [(3, 5)], "version 5"),  # an older one: the log refuses it
    ],
)
def test_what_is_kept_of_an_epoch(
    last: LastEpoch | None, versions: list[tuple[int, int] | None], note: str
) -> None:
    assert checked_note(7, staged(*versions), last, "t") == note


@pytest.mark.parametrize("versions", [[(5, 5)], [(9, 9), (4, 6)], [(0, 0)]])
def test_a_version_that_comes_again_is_refused(versions: list[tuple[int, int]]) -> None:
    with pytest.raises(VersionCut, match=r"up to version 5, and version \d comes again"):
        checked_note(7, staged(*versions), LastEpoch(6, 0, "version 5"), "t")


@pytest.mark.parametrize(
    ("note", "version"), [("version 12", 12), ("", None), ("version x", None), ("12", None)]
)
def test_notes_are_read(note: str, version: int | None) -> None:
    assert version_of(note) == version
