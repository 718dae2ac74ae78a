"""What the site has beside the pages of `docs/`: documents and examples from elsewhere here.

They become pages of the site, so links to them work there as they do in the repository, and
`mkdocs build --strict` checks the links of the README too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = "examples.md"
PAGES = {  # from the root of the repository: as which page of the site
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "helm/duolog/README.md": "guide/kubernetes.md",
}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(?=[)#\s])|(?<=src=\")(?!\w+:)([^\"#]+)(?=\")")
_LANGUAGES = {".java": "java", ".py": "python"}
_SHOWN = (*_LANGUAGES, ".yml", ".yaml", "Dockerfile")


def on_files(files: Files, config: Any) -> Files:
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_linked(text, source, page)))
    files.append(File.generated(config, EXAMPLES, content=_examples()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if "```mermaid" in markdown:
        raise PluginError(
            f"{page.file.src_uri} has a mermaid block, whose program would be loaded from another "
            "site by whoever reads it. Draw it as an SVG in docs/images."
        )
    if page.file.generated_by is not None:
        return markdown
    uri = page.file.src_uri
    return _linked(markdown, f"docs/{uri}", uri)


def _linked(text: str, source: str, page: str) -> str:
    """With links as they lead from `page`, in place of from `source` in the repository."""

    def lead(found: re.Match[str]) -> str:
        target = _page_of(source, found[0])
        return found[0] if target is None else os.path.relpath(target, Path(page).parent)

    return _LINK.sub(lead, text)


def _page_of(source: str, target: str) -> str | None:
    """The page of the site that a link of a file in the repository leads to."""
    path = Path(os.path.normpath(ROOT / source / ".." / target))
    if not path.is_relative_to(ROOT):
        return None
    inside = path.relative_to(ROOT).as_posix()
    if inside in PAGES:
        return PAGES[inside]
    if inside == "LICENSE":
        return "readme.md"
    if inside.split("/")[0] == "examples":
        return EXAMPLES
    return path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else None


def _examples() -> str:
    return "\n".join(["# Examples", "", *_each_example()])


def _each_example() -> Iterator[str]:
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.is_file() and path.name.endswith(_SHOWN):
            name = path.relative_to(ROOT / "examples").as_posix()
            language = _LANGUAGES.get(path.suffix, "yaml")
            yield f"## `{name}`\n\n```{language}\n{path.read_text(encoding='utf-8')}```\n"
