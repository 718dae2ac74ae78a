"""From --log or --url to a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from duolog import output

if TYPE_CHECKING:
    from duolog.log import LogAccess
    from duolog.settings import Settings


@contextmanager
def opened(
    folder: str | None,
    url: str | None = None,
    token: str | None = None,
    *,
    create: bool = False,
) -> Iterator[LogAccess]:
    """The log that --log, --url or the settings name, in this process or at its host."""
    from duolog.reach import reach
    from duolog.settings import load_settings

    if folder is not None and url is not None:
        raise typer.BadParameter("Give --log or --url, one of them.", param_hint="--url")
    settings = load_settings({"log": folder, "url": url, "token": token})
    if url is not None or (folder is None and settings.url is not None):
        # Nobody creates a log through its host: it has one.
        place: dict[str, Any] = {"url": settings.url, "token": settings.token_text()}
    else:
        if token is not None:
            raise typer.BadParameter("A token belongs to --url.", param_hint="--token")
        place = {"path": _folder_of(settings), "create": create}
    with reach(**place, options=settings.log_options(), avro=settings.avro_options()) as log:
        yield log


def settings_with_log(
    folder: str | None, *, flags: dict[str, Any] | None = None, file: Path | None = None
) -> tuple[Settings, str]:
    """The settings in force, and the log's directory, which has to be named."""
    from duolog.settings import load_settings

    settings = load_settings({"log": folder, **(flags or {})}, file=file)
    return settings, _folder_of(settings)


def _folder_of(settings: Settings) -> str:
    if settings.log is None:
        raise typer.BadParameter(
            "Say which log: --log DIR, or DUOLOG_LOG, or log = … in duolog.toml.",
            param_hint="--log",
        )
    return settings.log


def confirmed(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone. Scripts are not asked."""
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        output.confirm(question)
