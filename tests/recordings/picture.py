"""Lines of a terminal as an SVG, by Rich, and the lines that are in one."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from tests.recordings.terminal import COLUMNS, Frame

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LIVE, END = FOLDER / "demo-live.svg", FOLDER / "demo-end.svg"
# Rich would have its letters fetched from afar; a reader's own fixed ones do.
_LETTERS = re.compile(r"@font-face {.*?}\s*", re.DOTALL)

_TEXTS = ".//g/g/text"  # not the window's title, which is a level higher


def plain(frame: Frame) -> list[str]:
    """The lines without colours."""
    return [Text.from_ansi(line).plain for line in frame]


def svg(frame: Frame, title: str, name: str) -> str:
    """A window with these lines, without empty ones at its end."""
    lines = list(frame)
    while lines and not plain(lines[-1:])[0].strip():
        lines.pop()
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True)
    return _LETTERS.sub("", console.export_svg(title=title, unique_id=name))


def shape(line: str) -> str:
    """A line without what is another in every run: numbers, how many, how long the bars are."""
    line = re.sub(r"\d[\d,]*(?<!,)", "#", line.replace("━", " ").rstrip())
    line = re.sub(r", last in partitions #(, #)*$", "", line)
    line = re.sub(r", (# by two|and by one alone)$", "", line)
    return " ".join(line.replace(" versions ", " version ").split())


def lines_in(picture: str) -> list[str]:
    """What one reads in it, from top to bottom."""
    found: dict[float, str] = {}
    for text in ElementTree.fromstring(picture).findall(_TEXTS, {"": "http://www.w3.org/2000/svg"}):
        height = float(text.get("y", "0"))
        found[height] = found.get(height, "") + "".join(text.itertext()).replace("\xa0", " ")
    return [found[height].rstrip() for height in sorted(found)]
