"""`duolog backup`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from duolog import output
from duolog.cli import shown
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, HostUrl, LogFolder
from duolog.cli.progress import bars

_PATIENCE_SECONDS: Final = 10.0  # another backup may be about to end


def backup(
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="A new or empty folder.", show_default=False),
    ],
    link: Annotated[
        bool,
        typer.Option(
            "--link", help="On the log's own disk: share files with it, which takes no room."
        ),
    ] = False,
    log: LogFolder = None,
    url: HostUrl = None,
    as_json: AsJson = False,
) -> None:
    """Copy a log into a folder, as it is at one moment, while it is in use.

    A log that is served makes the copy itself, without standing still for it.
    On the log's own disk a backup saves nothing when the disk is lost: give a
    folder of another one. `duolog restore` brings it back, and reads all of it
    before it calls it good.
    """
    if url is not None:
        raise typer.BadParameter(
            "A backup is made where the log's disk is: run it there, with --log DIR. A host that "
            "serves the log may go on meanwhile.",
            param_hint="--url",
        )
    settings, folder_name = settings_with_log(log)
    from duolog.errors import LogBusy
    from duolog.flock import locked
    from duolog.log.backup import (
        CHECKPOINTS,
        check_target,
        fetch_checkpoint,
        remove_checkpoints,
        size_of,
    )
    from duolog.log.location import check_location
    from duolog.reach import reach

    folder = check_location(folder_name)
    check_target(folder, target)
    with reach(folder, options=settings.log_options()) as opened:  # says when there is no log
        log_id = opened.log_id
    try:
        with locked(folder / "backup.lock", _PATIENCE_SECONDS):
            try:
                with reach(folder, options=settings.log_options()) as opened:
                    name = opened.checkpoint()
                size = size_of(folder / CHECKPOINTS / name)
                with bars(silent=as_json, of_bytes=True) as begin:
                    fetch_checkpoint(folder, name, target, begin("Copying", size), may_link=link)
            finally:
                remove_checkpoints(folder)
    except BlockingIOError:
        raise LogBusy(
            f"Another backup of the log in {folder} is being made. Begin when it has ended."
        ) from None
    if as_json:
        output.json_line({"target": str(target.absolute()), "log_id": log_id, "bytes": size})
        return
    output.note(f"{shown.size(size)} are in {target}.")
    if target.stat().st_dev == folder.stat().st_dev:
        output.note("That is the log's own disk: copy it to another one, or it is lost with it.")
