"""What is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from duolog.errors import InvalidSetting

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
