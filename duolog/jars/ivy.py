"""Running Ivy, which every PySpark brings with it."""

from __future__ import annotations

import importlib.util
import os
import re
import select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from duolog.errors import DownloadFailed, PySparkNotFound
from duolog.jars.cache import cache_folder
from duolog.jars.java import find_java
from duolog.jars.mirrors import SETTINGS_VARIABLE, URL_VARIABLE, java_options, settings_file
from duolog.jars.module import Module, Progress

_SILENCE_SECONDS = 120  # beyond the time-outs of the generated settings
_LAST_LINES = 12
_FRAMES = r"[-|.]|:: [a-z]+ |:: +UNRES|:: USE|:{3}|====|https?:|confs:|at "
_RETRIEVED = "jars/[artifact]-[revision](-[classifier]).[ext]"


def run_ivy(modules: Sequence[Module], folder: Path, progress: Progress | None) -> None:
    """Fetch libraries into `jars/` below an empty folder."""
    title = f"{modules[0].module} {modules[0].revision}"
    (folder / "ivy.xml").write_text(_wanted(modules), encoding="utf-8")
    # In a file, because other users see a command's arguments, and a proxy's password may be there.
    options = folder / "java-options"
    options.touch(mode=0o600)
    options.write_text(java_options(), encoding="utf-8")
    command = [find_java(), f"@{options.name}", "-jar", str(_ivy()), "-settings"]
    command += [str(settings_file(folder)), "-ivy", "ivy.xml", "-confs", "default"]
    command += ["-types", "jar", "bundle", "-cache", "ivy", "-retrieve", _RETRIEVED]
    process = subprocess.Popen(  # noqa: S603 - our own arguments
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said: list[str] = []
    count = _Count(title)
    with process:
        try:
            for line in _lines(cast("IO[bytes]", process.stdout), title):
                said.append(line)
                if count.takes(line) and progress is not None:
                    progress(str(count))
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise DownloadFailed(f"Could not fetch {title}. {_advice()} Ivy said:\n{_end_of(said)}")


def _ivy() -> Path:
    """Ivy's jar in PySpark, which is not imported for that."""
    homes = [os.environ.get("SPARK_HOME", "")]
    found = importlib.util.find_spec("pyspark")
    if found is not None:
        homes[:0] = found.submodule_search_locations or ()
    for home in filter(None, homes):
        for jar in sorted(Path(home, "jars").glob("ivy-*.jar")):
            return jar
    raise PySparkNotFound(
        "Jars are fetched by the Ivy inside PySpark, which is not installed here: "
        f"pip install 'pyspark>=3.5,<5', or let SPARK_HOME name a Spark, or copy {cache_folder()} "
        "from a machine that has fetched them."
    )


def _wanted(modules: Sequence[Module]) -> str:
    dependencies = "".join(
        f'<dependency org="{module.organisation}" name="{module.module}" rev="{module.revision}" '
        f'conf="default->default" transitive="{str(module.transitive).lower()}"/>'
        for module in modules
    )
    return (
        '<ivy-module version="2.0"><info organisation="duolog" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _lines(told: IO[bytes], title: str) -> Iterator[str]:
    """Line by line. A large jar on a slow line shows as dots, so it is bytes that break silence."""
    unfinished = b""
    while select.select([told], [], [], _SILENCE_SECONDS)[0]:
        come = os.read(told.fileno(), 1 << 16)
        if not come:
            return
        *lines, unfinished = (unfinished + come).split(b"\n")
        yield from (line.decode(errors="replace").rstrip() for line in lines)
    raise DownloadFailed(
        f"Could not fetch {title}: nothing came for {_SILENCE_SECONDS} s. {_advice()}"
    )


def _end_of(lines: Sequence[str]) -> str:
    """What Ivy last said, without its frames and headings."""
    said = [line.strip() for line in lines]
    telling = [line for line in said if line and not re.match(_FRAMES, line)]
    return "\n".join(f"  {line}" for line in telling[-_LAST_LINES:])


def _advice() -> str:
    return (
        "Look whether the repository can be reached from here and has it. A mirror is named by "
        f"{URL_VARIABLE} or {SETTINGS_VARIABLE}, a proxy by HTTPS_PROXY; or copy {cache_folder()} "
        "from a machine that has the jars: `duolog demo --fetch` fetches all that the demo needs."
    )


class _Count:
    """How far a fetch is, from what Ivy says line by line."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._modules = self._jars = self._kilobytes = 0

    def takes(self, line: str) -> bool:
        """Whether this line brings the fetch further."""
        if line.startswith("\tfound "):
            self._modules += 1
        elif line.startswith("\t[SUCCESSFUL ]"):
            self._jars += 1
        elif size := re.fullmatch(r"\.+ \((\d+)kB\)", line):
            self._kilobytes += int(size[1])
        else:
            return False
        return True

    def __str__(self) -> str:
        """Ivy first finds all modules, then fetches their jars."""
        libraries = "library" if self._modules == 1 else "libraries"
        told = f"Fetching {self._title}: {self._modules} {libraries}"
        if self._jars:
            told += f", {self._jars} fetched, {self._kilobytes / 1000:.0f} MB"
        return told
