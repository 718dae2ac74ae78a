"""A token provider for tests, named by settings as a user's own would be.

In this process a test says what it answers; in a child it reads a file that the test has written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMED = f"{__name__}:token"
FILE_VARIABLE = "TESTS_TOKEN_FILE"

answers: Callable[[], Any] | None = None


def token() -> Any:
    """(token, when it ends)"""
    if answers is not None:
        return answers()
    return tuple(json.loads(Path(os.environ[FILE_VARIABLE]).read_text()))


def no_function_at_all() -> None:
    """Answers what is no token."""


NOTHING = None
