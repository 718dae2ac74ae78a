"""What `duolog doctor` looks at: this Python, its libraries, Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from importlib import metadata
from pathlib import Path

from duolog.jars.java import OLDEST_JAVA, java_version

_NEEDED = ("numpy", "pyarrow", "rocksdict", "sqlglot", "pydantic", "typer", "rich")
_OLDEST_PYTHON = (3, 11)
_JAVA_SECONDS = 10


class Status(IntEnum):
    """How a check went; the higher, the worse."""

    OK = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do about it."""

    check: str
    status: Status
    found: str
    advice: str | None = None


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("python", Status.ERROR, found, "Use Python 3.11 or newer.")
    return Finding("python", Status.OK, f"{found} ({sys.executable})")


def libraries() -> Iterator[Finding]:
    """The versions that are installed, against those that Duolog was made for."""
    always = [line for line in metadata.requires("duolog") or () if "extra ==" not in line]
    wanted = dict(map(requirement, always))
    for name in _NEEDED:
        fits = wanted.get(name, "")
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(name, Status.ERROR, "not installed", f"pip install '{name}{fits}'")
            continue
        if is_within(version, fits):
            yield Finding(name, Status.OK, version)
        else:
            yield Finding(
                name, Status.ERROR, f"{version}, not {fits}", f"pip install '{name}{fits}'"
            )


def requirement(line: str) -> tuple[str, str]:
    """`rocksdict<0.4,>=0.3.29; extra == "x"` as name and versions."""
    match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)", line)
    if match is None:
        return line, ""
    return match[1].lower(), match[2].replace(" ", "").strip("()")


def is_within(version: str, versions: str) -> bool:
    """Whether a version meets all of `>=1.2,<2`. What cannot be compared is taken to."""
    found = _numbers(version)
    for part in filter(None, versions.split(",")):
        match = re.fullmatch(r"(>=|<=|==|!=|<|>)([0-9.]+)", part)
        if match is None or not found:
            continue
        relation, limit = match[1], _numbers(match[2])
        size = max(len(found), len(limit))
        left, right = (each + (0,) * (size - len(each)) for each in (found, limit))
        meets = {
            ">=": left >= right,
            "<=": left <= right,
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
        }
        if not meets[relation]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def java() -> tuple[Finding, int | None]:
    """Only a warning: topics, groups and publishing need none. And its version, if it runs."""
    advice = f"Only Spark and a local Kafka need it: Java {OLDEST_JAVA} or newer."
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None:
        return Finding("java", Status.WARNING, "not found", advice), None
    try:
        told = subprocess.run(  # noqa: S603 - what JAVA_HOME or PATH calls java
            [program, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        where = " (of JAVA_HOME)" if home else ""
        return Finding("java", Status.WARNING, f"{program}{where} does not run", advice), None
    lines = (told.stderr or told.stdout).strip().splitlines()
    shown = next((line for line in lines if "version" in line), program)
    version = java_version(shown)
    if version is None or version < OLDEST_JAVA:
        return Finding("java", Status.WARNING, shown, advice), version
    return Finding("java", Status.OK, shown), version
