"""From --log to an opened log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from duolog.log import EmbeddedLog
    from duolog.settings import Settings


@contextmanager
def opened(folder: str | None, *, create: bool = False) -> Iterator[EmbeddedLog]:
    """Open the log that --log or the settings name."""
    from duolog.avro.embedded import open_log

    settings, path = settings_with_log(folder)
    options, avro = settings.log_options(), settings.avro_options()
    with open_log(path, create=create, options=options, avro=avro) as log:
        yield log


def settings_with_log(folder: str | None) -> tuple[Settings, str]:
    """The settings in force, and the log's directory, which has to be named."""
    from duolog.settings import load_settings

    settings = load_settings({"log": folder})
    if settings.log is None:
        raise typer.BadParameter(
            "Say which log: --log DIR, or DUOLOG_LOG, or log = … in duolog.toml.",
            param_hint="--log",
        )
    return settings, settings.log


def confirmed(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone. Scripts are not asked."""
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm(question, abort=True, err=True)
