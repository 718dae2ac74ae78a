"""A Python that has only PySpark and what PySpark asks for, as a cluster's may be."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

_WANTED = ("pyspark", "pandas", "pyarrow", "numpy")


def bare_python(folder: Path, more: Iterable[str] = ()) -> Path:
    """The interpreter of a fresh environment with these alone, linked from the one that runs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    installed = Path(sysconfig.get_path("purelib"))
    for name in _with_requirements((*_WANTED, *more)):
        for top in {file.parts[0] for file in distribution(name).files or () if file.parts}:
            if top not in {"..", "__pycache__"} and not (site / top).exists():
                (site / top).symlink_to(installed / top)
    return folder / "bin" / "python"


def _with_requirements(names: Iterable[str]) -> set[str]:
    """These distributions and all that they cannot do without."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            needed = map(Requirement, distribution(name).requires or ())
            waiting += [one.name for one in needed if not one.marker or one.marker.evaluate()]
    return found


def spark_submit(
    python: Path,
    *arguments: str,
    folder: Path,
    python_path: Path | None = None,
    seconds: float = 240,
) -> subprocess.CompletedProcess[str]:
    """Run `spark-submit` in a folder, on two local cores; its output is kept for messages."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYSPARK", "SPARK", "DUOLOG"))
    }
    environment |= {
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({} if python_path is None else {"PYTHONPATH": str(python_path)}),
    }
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # these end before more pays
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    configured = [
        word for name, value in settings.items() for word in ("--conf", f"{name}={value}")
    ]
    return subprocess.run(
        [str(home / "bin" / "spark-submit"), "--master", "local[2]", *configured, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
