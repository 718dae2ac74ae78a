"""Where the log is, and how it is opened. Runs on the driver and in tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from duolog.connector.option_text import flag
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from duolog.avro.registry.port import Registry
    from duolog.log.access import LogAccess

PATIENT_SECONDS: Final = 60.0  # of a read: a large commit keeps a log for seconds
_MARK_BYTES: Final = 128
_TOKEN_VARIABLE: Final = "DUOLOG_TOKEN"  # noqa: S105 - where a token may be, not one


@dataclass(frozen=True, slots=True)
class LogPlace:
    """A log in a folder or behind a url. Opened for milliseconds at a time: all take turns."""

    path: str | None = None
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    allow_plain_http: bool = False
    ca_path: str | None = None

    @classmethod
    def of(cls, known: Mapping[str, str]) -> LogPlace:
        """By the options path, or url and what belongs to it."""
        if ("path" in known) == ("url" in known):
            raise InvalidSetting(
                "Say where the log is: option 'path' names its folder, or 'url' its host. Give one "
                "of them."
            )
        for name in ("token", "allowPlainHttp", "caPath"):
            if name in known and "url" not in known:
                raise InvalidSetting(f"Option '{name}' belongs to 'url'; a path needs none.")
        token = known.get("token") or os.environ.get(_TOKEN_VARIABLE) or None
        return cls(
            known.get("path"),
            known.get("url"),
            token if "url" in known else None,
            flag("allowPlainHttp", known.get("allowPlainHttp", "false")),
            known.get("caPath"),
        )

    def opened(
        self,
        *,
        lock_wait_seconds: float = PATIENT_SECONDS,
        avro: Mapping[str, str] = MappingProxyType({}),
    ) -> LogAccess:
        """The log, embedded or at its host. `avro` are the options of a schema registry."""
        from duolog.log.options import LogOptions
        from duolog.reach import RemoteOptions, reach

        return reach(
            self.path,
            url=self.url,
            token=self.token,
            options=LogOptions(lock_wait_seconds=lock_wait_seconds),
            remote=RemoteOptions(allow_plain_http=self.allow_plain_http, ca_path=self.ca_path),
            avro=avro,
        )

    def is_hosted(self, log: LogAccess) -> bool:
        """Whether others may change this log while it is open here."""
        from duolog.reach import RemoteLog

        return isinstance(log, RemoteLog)

    def registry(self, log: LogAccess, options: Mapping[str, str]) -> Registry:
        """The schema registry that the options name, or the log's own."""
        from duolog.reach import registry_for

        return registry_for(log, options)

    def glance(self) -> bytes | None:
        """Bytes that change with every commit, read without opening the log. None: not known.

        A stream without a pause between its triggers asks a hundred times a second whether there
        is more; opening the log so often would keep out everybody who writes. It tells of what was
        seen only by who had the log to itself: a host writes them a moment before others can read
        what was committed.
        """
        if self.path is None:
            return None
        try:
            with (Path(self.path) / "mark").open("rb") as mark:
                return mark.read(_MARK_BYTES) or None
        except OSError:
            return None
