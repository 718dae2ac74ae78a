"""Pictures of the program, and the small terminal that they are taken at."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from duolog.demo.screen import drawn
from duolog.demo.sight import MemberSeen, Sight
from tests.recordings.picture import END, LIVE, lines_in, plain, shape, svg
from tests.recordings.terminal import (
    COLUMNS,
    Frame,
    NotUnderstood,
    Terminal,
    run_at_terminal,
)

REDRAWN = """
from rich.live import Live
with Live(auto_refresh=False) as live:
    for count in range(3):
        live.update(f"[bold]first {count}[/]\\nsecond {count}", refresh=True)
"""
MEMBERS = (
    MemberSeen("kafka-1", 7, (0, 1)),
    MemberSeen("kafka-2", 7, (2,)),
    MemberSeen("native-1", 7, (3,)),
    MemberSeen("native-2", 7, (4, 5)),
)
KILLED = (MEMBERS[0], MemberSeen("kafka-2", 7, (), is_killed=True), *MEMBERS[2:])


@pytest.mark.parametrize(
    ("picture", "members", "doing"),
    [
        (LIVE, KILLED, "kill -9 of kafka-2: the others take its partitions"),
        (END, MEMBERS, "the rest is mirrored and acknowledged"),
    ],
    ids=["live", "end"],
)
def test_a_picture_shows_the_table_as_it_is_drawn_today(
    picture: Path, members: tuple[MemberSeen, ...], doing: str
) -> None:
    shown = [shape(line) for line in lines_in(picture.read_text())]
    console = Console(width=COLUMNS)
    with console.capture() as captured:
        console.print(drawn(Sight(9, 9, 9, 9, 9, 9, 9, members), doing))
    today = [shape(line) for line in captured.get().splitlines()]
    assert len(today) == 6 + len(members)
    at = shown.index(today[0])
    assert shown[at : at + len(today)] == today


@pytest.mark.parametrize("picture", [LIVE, END], ids=lambda path: path.stem)
def test_a_picture_is_small_and_shows_nothing_of_the_machine(picture: Path) -> None:
    text = picture.read_text()
    assert len(text) < 150_000
    assert "http" not in re.sub(r"http://127\.0\.0\.1|http://www\.w3\.org|<!--.*?-->", "", text)
    assert not re.search(r"/(tmp|home|root|work|Users)\b", text)
    assert max(map(len, lines_in(text))) <= COLUMNS


def test_what_is_drawn_again_stands_there_once() -> None:
    frames: list[Frame] = []
    terminal = Terminal(frames.append)
    assert run_at_terminal([sys.executable, "-c", REDRAWN], terminal) == 0
    assert plain(terminal.frame)[:2] == ["first 2", "second 2"]
    assert ["first 1", "second 1"] in [plain(frame) for frame in frames]


def test_it_does_not_matter_where_the_stream_is_cut() -> None:
    said = "one\r\n\x1b[1mtwo\x1b[0m\r\n\r\x1b[2K\x1b[1A\x1b[2Knew\r\n"
    whole, cut = Terminal(), Terminal()
    whole.write(said)
    for letter in said:
        cut.write(letter)
    assert plain(whole.frame) == plain(cut.frame) == ["one", "new", ""]


@pytest.mark.parametrize("said", ["\x1b[5;5H", "\x1b]0;title\x07"])
def test_what_it_cannot_show_is_refused(said: str) -> None:
    with pytest.raises(NotUnderstood):
        Terminal().write(said)


def test_a_picture_has_its_lines_and_their_colours() -> None:
    picture = svg(["a  b", "\x1b[31mred\x1b[0m & <so>", "", ""], "title", "name")
    assert lines_in(picture)[-2:] == ["a  b", "red & <so>"]
    assert "@font-face" not in picture
    assert svg(["a"], "t", "n") == svg(["a"], "t", "n")
