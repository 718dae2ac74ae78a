"""Settings that name things by regular expressions."""

from __future__ import annotations

import re

from duolog.errors import InvalidSetting


def patterns_of(setting: str, text: str) -> tuple[re.Pattern[str], ...]:
    """The expressions of a setting, with commas between. Raises InvalidSetting, which names it."""
    patterns = []
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            patterns.append(re.compile(part))
        except re.error as error:
            raise InvalidSetting(
                f"{setting} takes regular expressions with commas between; '{part}' is none: "
                f"{error}."
            ) from None
    return tuple(patterns)
