r"""Text from elsewhere, as a terminal may show it.

A character that could move the cursor, change the title, or hide or reorder what stands there is
shown as its escape: \x1b, \u202e. That is all of Unicode's control characters, half surrogate
pairs, separators of lines, marks of direction, and characters that take no room. Joiners stay:
scripts and emoji need them.
"""

from __future__ import annotations

import json
import re
from typing import Final

# Written out, since to ask for the category of each character would take longer than a command.
_C0: Final = "\x00-\x08\x0b-\x1f"  # but tabs and line ends
_OTHERS: Final = (
    "\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_UNSAFE: Final = re.compile(f"[{_C0}{_OTHERS}]")
_UNSAFE_IN_A_LINE: Final = re.compile(f"[\x00-\x1f{_OTHERS}]")
_UNSAFE_IN_JSON: Final = re.compile(f"[{_OTHERS}]")  # it has C0 between its words alone


def printable(text: str) -> str:
    """The text, with its line ends and tabs, and nothing else that a terminal would obey."""
    return _UNSAFE.sub(_escape, text)


def one_line(text: str) -> str:
    """The same of a name or a value: its line ends and tabs are escaped too."""
    return _UNSAFE_IN_A_LINE.sub(_escape, text)


def printable_json(text: str) -> str:
    """JSON of the same value, in which the same characters are written as JSON escapes them."""
    return _UNSAFE_IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
