"""What `duolog doctor` looks at: the libraries of each extra, and whether Spark's fit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata

from duolog.cli.checkup import Finding, Status, is_within
from duolog.cli.extras import EXTRAS, libraries_of_extras

_DATA_SOURCE = ">=4.1"
_NEWEST_PANDAS = "<3"


def extras() -> Iterator[Finding]:
    """Which are installed, which are not, and which have a library that does not fit."""
    wanted = libraries_of_extras()
    complete, missing = [], []
    for extra in EXTRAS:
        found = {name: _version(name) for name in wanted.get(extra, {})}
        if not all(found.values()):
            missing.append(extra)
            continue
        complete.append(extra)
        for name, fits in wanted[extra].items():
            version = found[name] or ""
            if not is_within(version, fits):
                yield Finding(
                    name,
                    Status.ERROR,
                    f"{version}, not {fits} (for duolog[{extra}])",
                    f"pip install '{name}{fits}'",
                )
    advice = None
    if missing:
        advice = f"Not installed: {', '.join(missing)}. pip install 'duolog[{','.join(missing)}]'"
    yield Finding("extras", Status.OK, ", ".join(complete) or "none", advice)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def spark(java_version: int | None) -> Iterator[Finding]:
    """PySpark, with the Java, the Python and the pandas that it is to run with."""
    version = _version("pyspark")
    if version is None:
        yield Finding(
            "pyspark", Status.OK, "not installed", "Only Spark jobs need it: duolog[spark]."
        )
        return
    yield judged_spark(version, java_version, _version("pandas"), os.environ, sys.executable)


def judged_spark(
    version: str,
    java_version: int | None,
    pandas: str | None,
    environment: Mapping[str, str],
    python: str,
) -> Finding:
    """What is wrong with them, if anything. Pure."""
    oldest_java = 17 if is_within(version, ">=4") else 8
    if java_version is None or java_version < oldest_java:
        runs = "no Java runs" if java_version is None else f"Java {java_version} is too old"
        advice = f"Install Java {max(17, oldest_java)}, or let JAVA_HOME name one."
        return Finding("pyspark", Status.ERROR, f"{version}, and {runs}", advice)
    if java_version > 17 and not is_within(version, ">=4"):
        return Finding(
            "pyspark",
            Status.WARNING,
            f"{version} with Java {java_version}",
            "Spark 3.5 runs on Java 8, 11 and 17. Let JAVA_HOME name one of these.",
        )
    if pandas is None or not is_within(pandas, _NEWEST_PANDAS):
        found = "no pandas" if pandas is None else f"pandas {pandas}"
        return Finding(
            "pyspark",
            Status.WARNING,
            f"{version} with {found}",
            "Spark's Arrow functions ask for pandas below 3: pip install 'pandas>=2,<3'",
        )
    worker = environment.get("PYSPARK_PYTHON")
    if worker is None:
        return Finding(
            "pyspark",
            Status.OK,
            f"{version}, Java {java_version}, pandas {pandas}",
            f"Workers take the python3 in PATH: set PYSPARK_PYTHON={python} if it is another.",
        )
    if not is_within(version, _DATA_SOURCE):
        return Finding(
            "pyspark",
            Status.OK,
            f"{version}, Java {java_version}, pandas {pandas}",
            'format("duolog") takes 4.1 or newer; write_stream() and write_batch() take this one.',
        )
    return Finding("pyspark", Status.OK, f"{version}, Java {java_version}, pandas {pandas}")
