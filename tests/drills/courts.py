"""Asks a judging process about logs; starts another one when a log has killed it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.drills import worker
from tests.support.children import Child, ChildFailed


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found. `refused` is the code of the error, None when the log could be read."""

    refused: str | None
    message: str
    violations: list[str]
    log_id: str | None = None

    def wrong_unless_whole(self) -> list[str]:
        """All that is wrong with a log that must open and be whole."""
        if self.refused is not None:
            return [f"refused: {self.refused}: {self.message}"]
        return self.violations


class Court:
    """One judging process, for as long as it lives."""

    def __init__(self, mutant: str | None = None) -> None:
        self._mutant = mutant
        self._judge: Child | None = None

    def verdict(self, folder: Path, ledger: Path, *, go_on: bool = False) -> Verdict:
        """Let it open and read a log, and with `go_on` write into it."""
        judge = self._judge or self._start()
        judge.tell({"folder": str(folder), "ledger": str(ledger), "go_on": go_on})
        try:
            return Verdict(**judge.said())
        except ChildFailed as failed:
            self.close()
            return Verdict(None, "", [f"the process that opened it died: {failed}"])

    def _start(self) -> Child:
        self._judge = Child(worker.__name__, {"role": "judge", "mutant": self._mutant})
        self._judge.said()
        return self._judge

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
