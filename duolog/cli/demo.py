"""`duolog demo`"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from duolog.cli.options import AsJson
from duolog.cli.story import Story


def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A new or empty directory to work in.",
            show_default="a temporary one",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what is there so far: route, consume, Avro, kill -9, a host.

    Every line with a tick was checked. Exit code 1 if one was not so.
    """
    from duolog.avro.embedded import open_log
    from duolog.cli import demo_avro, demo_crash, demo_host, demo_routes

    where = _new_folder(folder)
    story = Story(as_json=as_json)
    story.begin("Duolog: one log, two tongues. What is there so far:")
    try:
        with open_log(where) as log:
            demo_routes.make_topic(story, log)
            demo_routes.publish_rows(story, log)
            position = demo_routes.read_and_acknowledge(story, log)
            demo_avro.change_columns(story, log)
        demo_crash.kill_a_publisher(story, where, position)
        demo_host.use_through_host(story, where)
    except BaseException:
        if folder is None:
            shutil.rmtree(where, ignore_errors=True)
        raise
    if story.failed:
        story.end([f"Not as it should be. The log is left in {where}."])
        raise typer.Exit(1)
    program, directory = _program(), shlex.quote(str(where))
    story.end(
        [
            "All of it checked. The log is still there to try:",
            "",
            f"  {program} topic list --log {directory}",
            f"  {program} consume orders --group billing --log {directory}",
        ]
    )


def _new_folder(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="duolog-demo-"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise typer.BadParameter(f"{folder} is not an empty directory.", param_hint="--folder")
    return folder


def _program() -> str:
    """How this program was called, as it can be typed again."""
    called = Path(sys.argv[0])
    if called.name != "duolog":
        return f"{shlex.quote(sys.executable)} -m duolog.cli"
    on_path = shutil.which("duolog")
    if on_path is not None and Path(on_path).resolve() == called.resolve():
        return "duolog"
    if called.is_absolute() and called.is_relative_to(Path.cwd()):
        called = called.relative_to(Path.cwd())
    return shlex.quote(str(called))
