"""The site of the documents: every link leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` makes it; --strict fails on a broken link or anchor, in the README too."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    return folder


def build(folder: Path, root: Path = ROOT, *, breaks: bool = False) -> str:
    done = subprocess.run(
        [
            Path(sys.executable).with_name("mkdocs"),
            *("build", "--strict", "--site-dir", folder),
        ],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode != 0) == breaks, done.stderr
    return done.stderr


def test_every_page_is_there(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        assert (site / source.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    for page in ("readme", "examples", "changelog", "contributing", "guide/kubernetes"):
        assert "<h1" in (site / f"{page}.html").read_text()


def test_a_reader_needs_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", sheet.read_text()), sheet
    for picture in (ROOT / "docs" / "images").glob("*.svg"):
        text = picture.read_text()
        assert not re.search(r"(href|src)=|@import|url\(http|<script", text), picture
        if picture.name.startswith("way-"):
            assert "prefers-color-scheme: dark" in text
            assert "<title" in text


def test_every_page_can_be_reached(site: Path) -> None:
    home = (site / "index.html").read_text()
    for source in (ROOT / "docs").rglob("*.md"):
        page = source.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert f'href="{page}"' in home, f"{page} is not in the nav of mkdocs.yml"


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    root = tmp_path / "copy"
    root.mkdir()
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, root)
    for name in ("docs", "examples", "helm"):
        shutil.copytree(ROOT / name, root / name)
    readme = (ROOT / "README.md").read_text()
    (root / "README.md").write_text(f"{readme}\n[no such heading](docs/security.md#nothing)\n")
    assert "#nothing" in build(tmp_path / "site", root, breaks=True)
    (root / "README.md").write_text(f"{readme}\n```mermaid\nsequenceDiagram\n```\n")
    assert "Draw it as an SVG" in build(tmp_path / "site", root, breaks=True)
