"""Which jars, and where they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from duolog.jars.cache import cache_folder, cached
from duolog.jars.module import Module, Progress


def fetch_jars(
    organisation: str,
    module: str,
    revision: str,
    *,
    transitive: bool = True,
    progress: Progress | None = None,
) -> list[Path]:
    """The jars of a library: its own one, and those that it needs unless told otherwise."""
    wanted = Module(organisation, module, revision, transitive)
    kept = revision if transitive else f"{revision}-alone"
    return fetch([wanted], cache_folder() / "jars" / organisation / module / kept, progress)


def fetch(modules: Sequence[Module], folder: Path, progress: Progress | None = None) -> list[Path]:
    """The jars of several libraries that go together, kept in a folder of their own."""

    def fill(unfinished: Path) -> None:
        from duolog.jars.ivy import run_ivy

        run_ivy(modules, unfinished, progress)

    return cached(folder, fill)
