"""Changes to the host's side of the product that its drill must notice. Each would be one line.

Applied by name inside the host's process, before it opens the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duolog.log import appends, embedded
from tests.drills.mutants import MUTANTS as MUTANTS_OF_THE_LOG


def epochs_unchecked() -> None:
    """An epoch is appended, whatever was before."""
    appends.is_repeat = lambda *_, **__: False  # type: ignore[attr-defined]


def staging_cleared() -> None:
    """A host that starts removes all that is staged, also what a sink has yet to append."""

    def clear(log_folder: Path, *_: Any) -> int:
        shutil.rmtree(log_folder / "staging", ignore_errors=True)
        return 0

    embedded.sweep_all = clear  # type: ignore[assignment, attr-defined]


MUTANTS: dict[str, Callable[[], None]] = {
    "epochs_unchecked": epochs_unchecked,
    "sequences_forgotten": MUTANTS_OF_THE_LOG["sequences_forgotten"],
    "staging_cleared": staging_cleared,
}
