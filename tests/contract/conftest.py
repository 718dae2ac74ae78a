"""The forms of a log that the contract suite runs on. A new form is added to `FORMS`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duolog.log.access import LogAccess
from duolog.log.embedded import open_log
from duolog.log.options import LogOptions
from tests.support.clock import ManualClock


class EmbeddedForm:
    """A log in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._options = LogOptions(clock=ManualClock(), lock_wait_seconds=0.2)
        self._opened: list[LogAccess] = []

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self._options.clock, ManualClock)
        return self._options.clock

    def configure(self, **options: Any) -> None:
        """Open with these options from now on."""
        self._options = replace(self._options, **options)

    def open(self) -> LogAccess:
        log: LogAccess = open_log(self._folder, options=self._options)
        self._opened.append(log)
        return log

    def restart(self) -> LogAccess:
        """Close the log and open it again."""
        self.close()
        return self.open()

    def now_and_restarted(self, log: LogAccess) -> Iterator[LogAccess]:
        """The log as it is, and then as it is after a restart."""
        yield log
        yield self.restart()

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()


FORMS = {"embedded": EmbeddedForm}


@pytest.fixture(params=sorted(FORMS))
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedForm]:
    form = FORMS[request.param](tmp_path / "log")
    yield form
    form.close()


@pytest.fixture
def log(form: EmbeddedForm) -> LogAccess:
    return form.open()
