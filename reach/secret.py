"""A token that is kept out of whatever is printed."""

from __future__ import annotations

import re
from typing import Final

from duolog.errors import InvalidSetting

_TOKEN: Final = re.compile(r"[!-~]{1,4096}")


class Secret:
    """Shows itself only when asked to. Picklable: tasks that upload need it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or not _TOKEN.fullmatch(text):
            raise InvalidSetting(
                "A token must be 1 to 4096 printable ASCII characters without spaces. Give it as "
                "it was printed when it was made."
            )
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret(**********)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
