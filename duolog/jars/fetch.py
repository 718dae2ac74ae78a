"""Which jars, and where they are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from duolog.errors import InvalidSetting
from duolog.jars.cache import cache_folder, cached

Progress = Callable[[str], None]
"""Is told, again and again while a fetch goes on, how far it is."""

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


@dataclass(frozen=True, slots=True)
class Module:
    """One library in a Maven repository; transitive: with all that it needs."""

    organisation: str
    module: str
    revision: str
    transitive: bool = True

    def __post_init__(self) -> None:
        for word in (self.organisation, self.module, self.revision):
            if not _WORD.fullmatch(word):
                raise InvalidSetting(f"'{word}' is no word in the coordinates of a library.")


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


def fetch(
    modules: Sequence[Module], folder: Path, progress: Progress | None = None
) -> list[Path]:
    """The jars of several libraries that go together, kept in a folder of their own."""

    def fill(unfinished: Path) -> None:
        from duolog.jars.ivy import run_ivy

        run_ivy(modules, unfinished, progress)

    return cached(folder, fill)
