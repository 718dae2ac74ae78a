"""Where to begin, as people type it: `earliest`, `latest`, an offset, or a time.

A whole number is always an offset. A time is ISO 8601 (`2026-01-31T12:00:00Z`; without a zone it is
local time) or `@` and milliseconds since 1970, as `consume` prints them.
"""

from __future__ import annotations

from datetime import datetime

import typer

from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Start

_WORDS: dict[str, Start] = {
    "earliest": Earliest(),
    "start": Earliest(),
    "latest": Latest(),
    "end": Latest(),
}


def start_of(text: str, option: str) -> Start:
    """What `text`, the value of this option, means."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if word.isascii() and word.isdigit():
        return AtOffset(int(word))
    if word[:1] == "@" and word[1:].isascii() and word[1:].isdigit():
        return AtTimestamp(int(word[1:]))
    try:
        return AtTimestamp(int(datetime.fromisoformat(text.strip()).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"'{text}' is no place to begin. Give earliest, latest, an offset, an ISO 8601 time "
            "like 2026-01-31T12:00:00Z, or @ and milliseconds since 1970.",
            param_hint=option,
        ) from None
