"""Whether the demo can begin here: what it needs, and a folder of its own."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import typer

from duolog.errors import InvalidSetting, ToolMissing

_NEEDED: Final = (
    (("pyspark",), "spark"),
    (("fastapi", "uvicorn", "httpx"), "bridge"),
    (("aiokafka", "confluent_kafka", "google_crc32c"), "kafka"),
)


def check_machine() -> None:
    """Raise a ToolMissing that says what to install."""
    _check_extras()
    from duolog.jars import find_java

    find_java()
    check_spark(metadata.version("pyspark"))


def _check_extras() -> None:
    """All that is missing at once: one after the other would be three attempts."""
    missing = {
        extra: [module for module in modules if find_spec(module) is None]
        for modules, extra in _NEEDED
    }
    if any(missing.values()):
        modules = ", ".join(module for each in missing.values() for module in each)
        extras = ",".join(extra for extra, each in missing.items() if each)
        raise ToolMissing(f"The demo needs {modules}: pip install 'duolog[{extras}]'.")


def check_spark(version: str) -> None:
    """The demo brings a Delta, and each Delta is made for one line of Spark."""
    from duolog.demo.jars import SPARK

    if version.split(".")[:2] != SPARK.split("."):
        raise ToolMissing(
            f"The demo's Delta is made for Spark {SPARK}, and PySpark {version} is installed: "
            f"pip install 'pyspark=={SPARK}.*'. All else of Duolog takes the one that is there."
        )


def new_folder(folder: Path | None) -> Path:
    """The one that is named, if it is new or empty; else a temporary one."""
    if folder is None:
        return _temporary_folder()
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            _refuse_used(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"{folder} cannot be made: {error.strerror}. Name another one.", param_hint="--folder"
        ) from None
    return folder.absolute()


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="duolog-demo-"))
    except OSError as error:
        raise InvalidSetting(
            f"There is no place for temporary files: {error.strerror}. Name a folder with --folder."
        ) from None


def _refuse_used(folder: Path) -> None:
    from duolog.demo.children import LOCK, held

    with suppress(InvalidSetting):  # it cannot be written, and is not to be
        if (folder / LOCK).exists():
            with held(folder):  # raises, if another demo is at work there
                pass
    raise typer.BadParameter(
        f"{folder} is not an empty directory. Name a new one, or leave --folder out.",
        param_hint="--folder",
    )
