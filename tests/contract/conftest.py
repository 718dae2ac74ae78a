"""The forms of a log that the contract suite runs on. A new form is added to `FORMS`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import duolog
from duolog.log.access import LogAccess
from duolog.log.embedded import EmbeddedLog
from duolog.log.options import LogOptions
from duolog.reach import RemoteOptions, reach
from tests.support.clock import ManualClock
from tests.support.host_server import TOKEN, ManyHosts, host_app


class Form:
    """A way to a log: how it is opened, and opened again after everything was closed."""

    def __init__(self, folder: Path, hosts: ManyHosts) -> None:
        self.folder = folder
        self._hosts = hosts
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
        log = self._open()
        self._opened.append(log)
        return log

    def restart(self) -> LogAccess:
        """Close the log, its host too, and open it again."""
        self.close()
        return self.open()

    def now_and_restarted(self, log: LogAccess) -> Iterator[LogAccess]:
        """The log as it is, and then as it is after a restart."""
        yield log
        yield self.restart()

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def owner(self) -> EmbeddedLog:
        """The log in its owner's hands, for what no reader may do to it."""
        raise NotImplementedError

    def do_duties(self, log: LogAccess) -> None:
        """What the log's owner does by itself from time to time."""
        log.enforce_retention()

    def staged_file(self, name: str | None) -> Path:
        """The file of a staged part where the log's owner has it."""
        return self.folder / "staging" / (name or "")

    def _open(self) -> LogAccess:
        raise NotImplementedError


class EmbeddedForm(Form):
    """In this process."""

    def owner(self) -> EmbeddedLog:
        (log,) = self._opened
        assert isinstance(log, EmbeddedLog)
        return log

    def _open(self) -> LogAccess:
        return reach(self.folder, create=True, options=self._options)


class HostedForm(Form):
    """In another process's hands, on this machine."""

    _host: tuple[EmbeddedLog, str] | None = None

    def owner(self) -> EmbeddedLog:
        assert self._host is not None
        return self._host[0]

    def _open(self) -> LogAccess:
        url = self._hosted()
        log = self._ask(url, RemoteOptions(cache_bytes=self._options.cache_bytes))
        assert not isinstance(log, EmbeddedLog)
        return log

    def _ask(self, url: str, remote: RemoteOptions) -> LogAccess:
        return reach(self.folder, options=self._options, remote=remote)

    def _hosted(self) -> str:
        if self._host is None:
            log = duolog.open_log(self.folder, options=self._options)
            self._host = log, self._hosts.add(host_app(log))
            log.announce(self._host[1])
        return self._host[1]

    def do_duties(self, log: LogAccess) -> None:
        assert self._host is not None
        super().do_duties(self._host[0])

    def close(self) -> None:
        super().close()
        if self._host is not None:
            log, url = self._host
            self._host = None
            self._hosts.remove(url)
            log.close()


class RemoteForm(HostedForm):
    """Behind a url."""

    def _ask(self, url: str, remote: RemoteOptions) -> LogAccess:
        return reach(url=url, token=TOKEN, remote=remote)


FORMS: dict[str, type[Form]] = {
    "embedded": EmbeddedForm,
    "hosted": HostedForm,
    "remote": RemoteForm,
}


@pytest.fixture(scope="session")
def hosts() -> Iterator[ManyHosts]:
    hosts = ManyHosts()
    yield hosts
    hosts.stop()


@pytest.fixture(params=sorted(FORMS))
def form(request: pytest.FixtureRequest, tmp_path: Path, hosts: ManyHosts) -> Iterator[Form]:
    form = FORMS[request.param](tmp_path / "log", hosts)
    yield form
    form.close()


@pytest.fixture
def log(form: Form) -> LogAccess:
    return form.open()
