"""Finding Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from duolog.errors import JavaNotFound, JavaTooOld

OLDEST_JAVA = 17
_VERSION_SECONDS = 30


def find_java() -> str:
    """The path of a Java that runs and is new enough."""
    program = _program()
    try:
        told = subprocess.run(  # noqa: S603 - what JAVA_HOME or PATH calls java
            [program, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaNotFound(f"{program} does not run: {_why(error)}. {_advice()}") from error
    version = java_version(told.stderr + told.stdout)
    if version is None or version < OLDEST_JAVA:
        shown = "of an unknown version" if version is None else f"Java {version}"
        raise JavaTooOld(f"{program} is {shown}. {_advice()}")
    return program


def _program() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        program = Path(home, "bin", "java")
        if not program.is_file():
            raise JavaNotFound(
                f"JAVA_HOME is {home}, which has no bin/java. Correct it, or unset it to use the "
                "java in PATH."
            )
        return str(program)
    found = shutil.which("java")
    if found is None:
        raise JavaNotFound(f"There is no java in PATH, and JAVA_HOME is not set. {_advice()}")
    return found


def java_version(told: str) -> int | None:
    """17 of `openjdk version "17.0.9" …`, 8 of `java version "1.8.0_392"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def _advice() -> str:
    return f"Install Java {OLDEST_JAVA} or newer, or let JAVA_HOME name one."


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr or error.stdout).strip().splitlines()
        return lines[0].rstrip(".") if lines else f"it ends with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it said nothing for {_VERSION_SECONDS} s"
    return str(error)
